"""The numbers of a text that have a meaning of their own, each derived again from the records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from infx.review.bundle import CheckRun
from infx.review.claim import Claim, Reader, claimed
from infx.review.texts import Line
from infx.review.truth import Truth, Values

__all__ = ["FIGURES"]

# Nothing here may take longer than a line is long: anyone writes a pull request's text.
_NUMBER = r"(\d++(?:,\d{3})*+(?:\.\d++)?+(?:e[+-]?\d++)?+)"
_LIST = rf"{_NUMBER}((?:[ ]?(?:,|/|–|…|and|or|to|&)[ ]?(?:and[ ])?{_NUMBER}(?![\w%]|\.\d))*+)"
_BEFORE = r"(?<![\w.,/-])"
_COUNTED = re.compile(
    rf"{_BEFORE}{_NUMBER}[ \t]+(?:throughput |measured |planned |agentic |frontier )*+"
    r"(points?|planned|evaluations?|evals?|questions?|layers?|runs?|valid|invalid|new|gone)\b|"
    rf"\b(new|gone|planned|invalid|valid): ?{_NUMBER}|{_BEFORE}{_NUMBER}(-shot)\b",
    re.IGNORECASE,
)
_NOUNS = {
    **{"point": "points", "planned": "points", "evaluation": "evaluations"},
    **{
        "eval": "evaluations",
        "question": "questions",
        "run": "runs",
        "layer": "layers",
        "-shot": "shots",
    },
}
_FRONTIER = re.compile(
    r"(?<![\w.,-])(\d+)[ \t]*(?:frontier points? )?(?:of|out of|/)[ \t]*(\d+)[^.;\n]{0,30}?"
    r"(?:\bfrontier\b|(?<=planned)|(?<=measured))"
)
_JOBS = re.compile(
    r"(?<![\w.,-])(\d+)/(\d+)[ \t]+(?:agentic[ \t]+)?(throughput|evaluation|eval|agentic)\b",
    re.IGNORECASE,
)
_SHARE = r"(0\.\d+|1\.0+|\d{1,2}(?:\.\d+)?[ ]?%)"
_SHARES = rf"{_SHARE}(?:[ ]?(?:–|…|to)[ ]?{_SHARE})?(?:[ ]?±[ ]?(0\.\d+))?"
_INTERVAL = re.compile(rf"\b95[ ]?%[ ]{_NUMBER}[ ]?(?:…|–|to)[ ]?{_NUMBER}")
_BAR = re.compile(r"\bbar(?: of| is|:)?[ ]+(0\.\d+|1\.0+|1)(?!\w|\.\d)")
_RATE = re.compile(rf"{_BEFORE}{_NUMBER}[ ]?(?:tokens?|tok)/s/(GPU|user)\b", re.IGNORECASE)
_ENERGY = re.compile(rf"{_BEFORE}{_NUMBER}[ ]?J/(?:tok|token)\b")
_LATENCY = re.compile(
    r"\b(?:P(50|75|90|95|99)|(mean|median|average))[ ]+(E2EL|TTFT|ITL|TPOT)\b[^\n|;]{0,40}?"
    rf"{_BEFORE}{_NUMBER}[ ]?(ms|s)\b",
    re.IGNORECASE,
)
_PLAIN_LATENCY = re.compile(
    rf"\b(E2EL|TTFT|ITL|TPOT)\b[^\n|;]{{0,40}}?{_BEFORE}{_NUMBER}[ ]?(ms|s)\b", re.IGNORECASE
)
_LENGTH = re.compile(r"\bacceptance length(?: of| is|:)?[ ]+(\d+\.\d+)", re.IGNORECASE)
_AXIS = re.compile(
    r"\b(concurrenc(?:y|ies)|conc|C|TP|EP|PP|DP|K|ISL|OSL|max-num-seqs|duration)"
    rf"(?:[ ]?=[ ]?|[ ]|(?<=[A-Z])(?=\d)|(?<=\bc)(?=\d)){_LIST}(?!\w|\.\d)"
)
_AXES = {
    **dict.fromkeys(("concurrency", "concurrencies", "conc", "c"), "conc"),
    **{"tp": "tp", "ep": "ep", "pp": "pp", "dp": "dp", "k": "k", "isl": "isl", "osl": "osl"},
    **{"max-num-seqs": "max-num-seqs", "duration": "duration-s"},
}
_COMPARED = re.compile(
    r"\b(?:from|was|were|before|previous(?:ly)?|baseline|than|versus|vs|since|over|old)\b|→|->"
)
_STATISTIC = {"median": "p50", "mean": "mean", "average": "mean"}


def _figure(kind: str, span: tuple[int, int], line: Line, truth: str) -> Claim:
    """Return the claim of a figure. One that stands beside its past may be the past, of which a
    bundle holds no measurements: it is not derivable."""
    past = bool(truth) and _COMPARED.search(line.text) is not None
    return Claim(
        kind=kind,
        text=line.text[slice(*span)].strip(),
        where=line.where,
        span=span,
        truth="" if past else truth,
        derivable=not past,
        figure=True,
    )


def _judged(
    kind: str, hit: re.Match[str], line: Line, known: Values, number: str, unit: str = ""
) -> Claim:
    truth = "" if known.hold(number) else known.told(unit)
    return _figure(kind, hit.span(), line, truth)


def _counts(line: Line, truth: Truth) -> Iterator[Claim]:
    for hit in _COUNTED.finditer(line.text):
        number, noun = hit[1] or hit[4] or hit[5], (hit[2] or hit[3] or hit[6]).lower()
        kind = _NOUNS.get(noun.removesuffix("s"), noun)
        if not _is_narrowed(line, hit):
            yield _judged(kind, hit, line, truth.counts[kind], number)


def _is_narrowed(line: Line, hit: re.Match[str]) -> bool:
    """Return True where the words count some of the points: ``two TP4 points``, ``9 of 19``."""
    around = line.text[max(0, hit.start() - 8) : hit.end() + 16]
    return bool(re.search(r"\b(?:of|out of|TP\d)[ ]|\bfrontier|\b(?:with|at) TP", around))


def _frontiers(line: Line, truth: Truth) -> Iterator[Claim]:
    for hit in _FRONTIER.finditer(line.text):
        known = truth.frontiers
        held = (int(hit[1]), int(hit[2])) in known
        told = " or ".join(f"{on} of {of}" for on, of in sorted(known)) or "not measured"
        yield _figure("frontier", hit.span(), line, "" if held else told)


def _jobs(line: Line, truth: Truth) -> Iterator[Claim]:
    for hit in _JOBS.finditer(line.text):
        kind = "evaluation" if hit[3].lower().startswith("eval") else "throughput"
        seen = [_passed(run.checks, kind) for run in truth.runs]
        told = " or ".join(f"{passed}/{of}" for passed, of in seen) or "no run"
        held = (int(hit[1]), int(hit[2])) in seen
        yield _figure("jobs", hit.span(), line, "" if held else told)


def _passed(checks: Sequence[CheckRun], kind: str) -> tuple[int, int]:
    ends = [one.conclusion for one in checks if one.kind == kind]
    return ends.count("success"), len(ends)


def _scores(line: Line, truth: Truth) -> Iterator[Claim]:
    names = "|".join(map(re.escape, sorted(truth.scores, key=len, reverse=True)))
    said = rf"\b({names})\b[^\d\n;]{{0,40}}?{_SHARES}"
    for hit in re.finditer(said, line.text, re.IGNORECASE):
        known = truth.scores[hit[1].lower()]
        held = all(_share(known, share) for share in (hit[2], hit[3]) if share)
        held = held and (not hit[4] or truth.errors.hold(hit[4]))
        told = known.told() if known else "not evaluated"
        yield _figure("score", hit.span(), line, "" if held else told)


def _share(known: Values, said: str) -> bool:
    return known.hold(said.rstrip("% "), 100 if said.endswith("%") else 1)


def _bars(line: Line, truth: Truth) -> Iterator[Claim]:
    for hit in _BAR.finditer(line.text):
        yield _judged("bar", hit, line, truth.bars, hit[1])


def _intervals(line: Line, truth: Truth) -> Iterator[Claim]:
    for hit in _INTERVAL.finditer(line.text):
        held = truth.bounds.hold(hit[1]) and truth.bounds.hold(hit[2])
        yield _figure("interval", hit.span(), line, "" if held else "no figure's interval")


def _rates(line: Line, truth: Truth) -> Iterator[Claim]:
    names = truth.points_named(line.text)
    for hit in _RATE.finditer(line.text):
        kind = "rate" if hit[2].lower() == "gpu" else "pace"
        held = truth.values(kind, names).hold(hit[1])
        told = truth.values("total" if kind == "rate" else kind, names).told(f"tok/s/{hit[2]}")
        yield _figure(kind, hit.span(), line, "" if held else told)
    for hit in _ENERGY.finditer(line.text):
        yield _judged("energy", hit, line, truth.values("energy", names), hit[1], "J/token")


def _latencies(line: Line, truth: Truth) -> Iterator[Claim]:
    names, taken = truth.points_named(line.text), set()
    for hit in _LATENCY.finditer(line.text):
        statistic = f"p{hit[1]}" if hit[1] else _STATISTIC[hit[2].lower()]
        taken.add(hit.start(3))
        yield _latency(hit, line, truth.values(f"{hit[3].upper()} {statistic}", names), hit[4])
    for hit in _PLAIN_LATENCY.finditer(line.text):
        if hit.start(1) not in taken:
            yield _latency(hit, line, truth.values("latency", names), hit[2])


def _latency(hit: re.Match[str], line: Line, known: Values, number: str) -> Claim:
    scale = 0.001 if hit[hit.lastindex or 0] == "s" else 1.0
    held = known.hold(number, scale)
    return _figure("latency", hit.span(), line, "" if held else known.told("ms"))


def _lengths(line: Line, truth: Truth) -> Iterator[Claim]:
    for hit in _LENGTH.finditer(line.text):
        yield _judged("acceptance length", hit, line, truth.lengths, hit[1])


def _axes(line: Line, truth: Truth) -> Iterator[Claim]:
    """Yield what is said of axes; a value that nothing has may be history, or what went."""
    for hit in _AXIS.finditer(line.text):
        known = truth.axes.get(_AXES[hit[1].lower()], Values(()))
        said = re.findall(r"\d[\d,]*", hit[0][len(hit[1]) :])
        claim = claimed("axis", hit.span(), line)
        if all(known.hold(number) for number in said):
            yield claim
        else:
            yield Claim(
                kind="axis", text=claim.text, where=line.where, span=hit.span(), derivable=False
            )


FIGURES: tuple[Reader, ...] = (
    *(_frontiers, _jobs, _scores, _bars, _intervals, _rates, _latencies, _lengths, _counts, _axes),
)
"""The readers of numbers."""
