"""The numbers of a text, each derived again from the records: points, scores, rates, latencies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from statistics import fmean

from infx.domain.record import PointRecord
from infx.review.bundle import Bundle, CheckRun
from infx.review.claim import Claim, Reader
from infx.review.curves import curves
from infx.review.facts import affected, affected_runs, evaluations, throughput

__all__ = ["FIGURES", "rounds_to"]

_POINTS = re.compile(
    r"\b(\d+)[ \t]+(?:throughput |measured |agentic )?points?\b(?![ \t]+(?:with|at))"
)
_FRONTIER = re.compile(r"\b(\d+)[ \t]*(?:of|out of|/)[ \t]*(\d+)[^.\n]{0,30}?\bfrontier\b")
_JOBS = re.compile(r"\b(\d+)/(\d+)[ \t]+(?:agentic[ \t]+)?(throughput|evaluation|eval)\b")
_SHARE = r"(0\.\d+|1\.0+|\d{1,2}(?:\.\d+)?[ ]?%)"
_RATE = re.compile(r"(?<![\d,.])(\d[\d,]*(?:\.\d+)?)[ ]?tok(?:en)?s?/s/GPU\b", re.IGNORECASE)
_LATENCY = re.compile(
    r"\bP(50|75|90|95|99) (E2EL|TTFT|ITL|TPOT)\D{0,12}?(\d[\d,]*(?:\.\d+)?)[ ]?(ms|s)\b"
)
_LENGTH = re.compile(r"\bacceptance length(?: of| is|:)?[ ]+(\d+\.\d+)", re.IGNORECASE)

_RATES = ("tput_tok_s_gpu", "output_tput_tok_s_gpu", "input_tput_tok_s_gpu")
_FIELDS = {"E2EL": "e2el_ms", "TTFT": "ttft_ms", "ITL": "itl_ms", "TPOT": "itl_ms"}


def rounds_to(value: float, text: str) -> bool:
    """Return True when ``value`` rounds to ``text`` with the digits that it is written with; a
    percentage is of a share."""
    digits = text.rstrip("% ").replace(",", "")
    scale = 100 if text.endswith("%") else 1
    return f"{value * scale:.{len(digits.partition('.')[2])}f}" == digits


def _figure(kind: str, hit: re.Match[str], where: str, truth: str) -> Claim:
    return Claim(kind, hit[0].strip(), where, truth, figure=True)


def _counts(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    keys = {entry.key for entry in affected(bundle)}
    planned = sum(point.entry in keys for point in bundle.points.head)
    known = (planned, len(throughput(bundle)))
    for hit in _POINTS.finditer(line):
        # "two TP4 points" and "9 of 19 points on the frontier" count something else.
        if not _FRONTIER.search(line) and not re.search(r"\bTP\d", line):
            yield _figure(
                "points", hit, where, "" if int(hit[1]) in known else f"{planned} planned"
            )


def _frontiers(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    pairs = [(len(one.on_frontier), len(one.spots)) for one in curves(bundle)]
    truth = " or ".join(f"{on} of {of}" for on, of in pairs) or "not measured"
    for hit in _FRONTIER.finditer(line):
        held = (int(hit[1]), int(hit[2])) in pairs
        yield _figure("frontier", hit, where, "" if held else truth)


def _jobs(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    for hit in _JOBS.finditer(line):
        kind = "throughput" if hit[3] == "throughput" else "evaluation"
        seen = [_passed(run.checks, kind) for run in affected_runs(bundle)]
        truth = " or ".join(f"{passed}/{of}" for passed, of in seen) or "no run"
        held = (int(hit[1]), int(hit[2])) in seen
        yield _figure("jobs", hit, where, "" if held else truth)


def _passed(checks: Sequence[CheckRun], kind: str) -> tuple[int, int]:
    ends = [one.conclusion for one in checks if one.kind == kind]
    return ends.count("success"), len(ends)


def _scores(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    for task, known in _known_scores(bundle).items():
        name = re.escape(task)
        for hit in re.finditer(rf"\b{name}\b[^\d\n]{{0,40}}?{_SHARE}", line, re.IGNORECASE):
            held = any(rounds_to(value, hit[1]) for value in known)
            said = f"{min(known):.3f} – {max(known):.3f}" if known else "not evaluated"
            yield _figure(task, hit, where, "" if held else said)


def _known_scores(bundle: Bundle) -> Mapping[str, Sequence[float]]:
    known: dict[str, list[float]] = {"gsm8k": []}
    for record in evaluations(bundle):
        if record.score:
            values = (one.score for one in record.score.filters.values())
            known.setdefault(record.score.task, []).extend(values)
    return known


def _rates(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    for hit in _RATE.finditer(line):
        total, *others = [_values(line, bundle, name) for name in _RATES]
        held = any(rounds_to(value, hit[1]) for value in chain(total, *others))
        truth = f"{total[0]:.1f} tok/s/GPU" if len(set(total)) == 1 else "no point's rate"
        yield _figure("rate", hit, where, "" if held else truth)


def _latencies(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    for hit in _LATENCY.finditer(line):
        scale = 1000 if hit[4] == "s" else 1
        known = [value / scale for value in _values(line, bundle, f"{_FIELDS[hit[2]]}.p{hit[1]}")]
        held = any(rounds_to(value, hit[3]) for value in known)
        truth = f"{known[0]:.4g} {hit[4]}" if len(set(known)) == 1 else "no point's latency"
        yield _figure("latency", hit, where, "" if held else truth)


def _values(line: str, bundle: Bundle, name: str) -> list[float]:
    """Return a figure of the point that a line names, or of all where it names none: each repeat's,
    and their mean."""
    repeats: dict[str, list[float]] = {}
    for record in _named(throughput(bundle), line):
        if record.measurement:
            value = attrgetter(name)(record.measurement)
            repeats.setdefault(record.point.point_id, []).append(value)
    return [*chain.from_iterable(repeats.values()), *map(fmean, repeats.values())]


def _named(records: Sequence[PointRecord], line: str) -> Sequence[PointRecord]:
    words = set(re.findall(r"[\w.-]+", line))
    named = [one for one in records if {one.point.name, one.point.label} & words]
    return named or records


def _lengths(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    asked = {record.point.arm.acceptance.length for record in throughput(bundle)}
    known = sorted(length for length in asked if length is not None)
    for hit in _LENGTH.finditer(line):
        held = any(rounds_to(value, hit[1]) for value in known)
        truth = " or ".join(f"{value:.4g}" for value in known) or "not injected"
        yield _figure("acceptance length", hit, where, "" if held else truth)


FIGURES: tuple[Reader, ...] = (_counts, _frontiers, _jobs, _scores, _rates, _latencies, _lengths)
"""The readers of numbers."""
