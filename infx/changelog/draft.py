"""A draft entry for perf-changelog.yaml, in the public format, from what a run measured."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from infx.analysis.accuracy import judge_record
from infx.analysis.curves import Line, line_frontiers, line_of, lines_of
from infx.analysis.pareto import NORTH_STAR
from infx.domain.acceptance import Acceptance
from infx.domain.plan import Plan
from infx.domain.point import Accuracy, Agentic, FixedLengths, Point
from infx.domain.record import Measurement, PointRecord

__all__ = ["PLACEHOLDER", "draft_entry"]

PLACEHOLDER = "XXX"
"""Stands for the pull request's address until it has one."""

_TYPES: Mapping[type, str] = {FixedLengths: "fixed-seq-len", Agentic: "agentic-coding"}

_BARE = re.compile(r"XXX|https://[\w./-]+|[A-Za-z][\w.]*-[\w.-]*\w")

Pair = tuple[PointRecord, Measurement]


def draft_entry(records: Sequence[PointRecord], plan: Plan, pr_link: str = PLACEHOLDER) -> str:
    """Return one entry as YAML text: keys, what was measured, headline numbers, accuracy, coverage.

    Descriptions are double-quoted, so that no text can be read as something else; the entry ends
    with one newline and holds no tab. A run of evaluations alone says ``evals-only``.
    """
    entries = list(dict.fromkeys(point.entry for point in plan.points))
    types = dict.fromkeys(_TYPES[type(p.workload)] for p in plan.points if p.mode == "throughput")
    lines = ["- config-keys:", *(f"    - {_name(entry)}" for entry in entries)]
    lines += ["  scenario-type:", *(f"    - {name}" for name in types)] if types else []
    told = _description(records, plan, entries)
    lines += ["  description:", *(f"    - {_quoted(text)}" for text in told)]
    lines += [] if types else ["  evals-only: true"]
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
        lines = lines_of(planned)
        for line in lines:
            name = ", ".join(filter(None, (entry, line.apart(lines))))
            yield from _curve(name, _on_line(mine, line), _planned(planned, line))
        yield from _scores(entry, mine, planned)


def _on_line(records: Sequence[PointRecord], line: Line) -> list[PointRecord]:
    return [r for r in records if r.point.mode == "throughput" and line_of(r.point) == line]


def _planned(points: Sequence[Point], line: Line) -> set[str]:
    return {p.point_id for p in points if p.mode == "throughput" and line_of(p) == line}


def _setting(image: str, acceptances: Sequence[Acceptance]) -> str:
    synthetic = sorted({a.length for a in acceptances if a.mode == "synthetic" and a.length})
    lengths = ", ".join(f"{length:g}" for length in synthetic)
    return f"image {image}" + (f", synthetic acceptance length {lengths}" if lengths else "")


def _curve(name: str, records: Sequence[PointRecord], planned: set[str]) -> Iterable[str]:
    """Tell one line of the report: its best points, and what became of all that were planned.

    A point that ran again counts once.
    """
    valid = [(r, r.measurement) for r in records if r.measurement and r.status.state == "ok"]
    for title, pair in _headlines(valid):
        yield f"{name}: {title} {_headline(pair)}"
    good = {record.point.point_id for record, _ in valid}
    on = {records[index].point.point_id for index in line_frontiers(records, [NORTH_STAR])}
    lost = {r.point.point_id: str(r.status) for r in records if r.point.point_id not in good}
    absent = planned - {record.point.point_id for record in records}
    reasons = Counter(lost.values()) + Counter({"not run": len(absent)})
    told = "".join(f", {number} {status}" for status, number in reasons.most_common())
    total = len(planned | good | lost.keys())
    yield f"{name}: {len(on)} frontier points out of {total} planned, {len(good)} valid{told}"


def _headlines(valid: Sequence[Pair]) -> list[tuple[str, Pair]]:
    """Return the two ends of a curve; one when the same point is both."""
    if not valid:
        return []
    fastest = max(valid, key=lambda pair: NORTH_STAR.x(pair[1]))
    fullest = max(valid, key=lambda pair: pair[1].tput_tok_s_gpu)
    if fastest is fullest:
        return [("highest throughput and interactivity", fullest)]
    return [("highest throughput", fullest), ("highest interactivity", fastest)]


def _headline(pair: Pair) -> str:
    record, seen = pair
    return (
        f"{seen.tput_tok_s_gpu:.4g} tok/s/GPU at {NORTH_STAR.x(seen):.4g} tok/s/user "
        f"({NORTH_STAR.x_label}), conc {record.point.conc}"
    )


def _scores(entry: str, records: Sequence[PointRecord], planned: Sequence[Point]) -> Iterable[str]:
    seen = {record.point.point_id for record in records}
    for record in records:
        if record.point.mode == "evaluation":
            yield f"{entry}: {_task(record.point)}: {_judged(record)}"
    for point in planned:
        if point.mode == "evaluation" and point.point_id not in seen:
            yield f"{entry}: {_task(point)}: not run"


def _judged(record: PointRecord) -> str:
    verdicts = judge_record(record)
    if not verdicts:
        return f"not judged, {record.status} {record.status.sentence}".rstrip()
    return "; ".join(f"{found.filter} {found.sentence}" for found in verdicts)


def _task(point: Point) -> str:
    assert isinstance(point.workload, Accuracy)
    return f"{point.workload.task}, {point.workload.shots}-shot"
