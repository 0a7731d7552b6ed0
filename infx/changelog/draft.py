"""A draft entry for perf-changelog.yaml, in the public format, from what a run measured."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from infx.analysis.accuracy import judge_score
from infx.analysis.pareto import NORTH_STAR, view_frontier
from infx.domain.acceptance import Acceptance
from infx.domain.plan import Plan
from infx.domain.record import Measurement, PointRecord

__all__ = ["PLACEHOLDER", "draft_entry"]

PLACEHOLDER = "XXX"
"""Stands for the pull request's address until it has one."""

_BARE = re.compile(r"XXX|https://[\w./-]+|[A-Za-z][\w.]*-[\w.-]*\w")

Pair = tuple[PointRecord, Measurement]


def draft_entry(records: Sequence[PointRecord], plan: Plan, pr_link: str = PLACEHOLDER) -> str:
    """Return one entry as YAML text: keys, what was measured, headline numbers, accuracy, coverage.

    Descriptions are double-quoted, so that no text can be read as something else; the entry ends
    with one newline and holds no tab. A run of evaluations alone says ``evals-only``.
    """
    entries = list(dict.fromkeys(point.entry for point in plan.points))
    throughput = any(point.mode == "throughput" for point in plan.points)
    lines = ["- config-keys:", *(f"    - {_name(entry)}" for entry in entries)]
    lines += ["  scenario-type:", "    - fixed-seq-len"] if throughput else []
    told = _description(records, plan, entries)
    lines += ["  description:", *(f"    - {_quoted(text)}" for text in told)]
    lines += [] if throughput else ["  evals-only: true"]
    return "\n".join([*lines, f"  pr-link: {_name(pr_link)}"]) + "\n"


def _quoted(text: str) -> str:
    """Return a YAML double-quoted scalar: JSON's, with what cannot be printed as a YAML escape.

    JSON escapes a character outside the first plane as two surrogates, which YAML does not join.
    """
    printed = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in printed)


def _name(text: str) -> str:
    """Return a key or address as it is usually written: bare where nothing else can be read."""
    return text if _BARE.fullmatch(text) else _quoted(text)


def _description(
    records: Sequence[PointRecord], plan: Plan, entries: Sequence[str]
) -> Iterable[str]:
    for entry in entries:
        planned = [point for point in plan.points if point.entry == entry]
        mine = [record for record in records if record.point.entry == entry]
        yield f"{entry}: {_setting(planned[0].arm.image, [p.arm.acceptance for p in planned])}"
        if any(point.mode == "throughput" for point in planned):
            yield from _curve(entry, mine, sum(p.mode == "throughput" for p in planned))
        yield from _scores(entry, mine)


def _setting(image: str, acceptances: Sequence[Acceptance]) -> str:
    synthetic = sorted({a.length for a in acceptances if a.mode == "synthetic" and a.length})
    lengths = ", ".join(f"{length:g}" for length in synthetic)
    return f"image {image}" + (f", synthetic acceptance length {lengths}" if lengths else "")


def _curve(entry: str, records: Sequence[PointRecord], planned: int) -> Iterable[str]:
    valid = [(r, r.measurement) for r in records if r.measurement and r.status.state == "ok"]
    lost = Counter(
        str(r.status) for r in records if r.point.mode == "throughput" and r.status.state != "ok"
    )
    for name, pair in _headlines(valid):
        yield f"{entry}: {name} {_headline(pair)}"
    on = sum(_on_frontier(group) for group in _workloads(valid))
    reasons = "".join(f", {number} {status}" for status, number in lost.most_common())
    yield f"{entry}: {on} frontier points out of {planned} planned, {len(valid)} valid{reasons}"


def _headlines(valid: Sequence[Pair]) -> list[tuple[str, Pair]]:
    if not valid:
        return []
    fastest = max(valid, key=lambda pair: NORTH_STAR.x(pair[1]))
    fullest = max(valid, key=lambda pair: pair[1].tput_tok_s_gpu)
    return [("highest throughput", fullest), ("highest interactivity", fastest)]


def _headline(pair: Pair) -> str:
    record, seen = pair
    return (
        f"{seen.tput_tok_s_gpu:.4g} tok/s/GPU at {NORTH_STAR.x(seen):.4g} tok/s/user "
        f"({NORTH_STAR.x_label}), conc {record.point.conc}"
    )


def _workloads(valid: Sequence[Pair]) -> Iterable[list[Measurement]]:
    groups: dict[str, list[Measurement]] = {}
    for record, seen in valid:
        groups.setdefault(repr(record.point.workload), []).append(seen)
    return groups.values()


def _on_frontier(measurements: Sequence[Measurement]) -> int:
    return len(view_frontier(measurements, NORTH_STAR))


def _scores(entry: str, records: Sequence[PointRecord]) -> Iterable[str]:
    for record in records:
        score = record.score
        if score and score.questions:
            told = "; ".join(f"{v.filter} {v.sentence}" for v in judge_score(score))
            yield f"{entry}: {score.task}, {score.shots}-shot: {told}"
