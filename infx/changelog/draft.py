"""A draft entry for perf-changelog.yaml, in the public format, from what a run measured."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from infx.analysis.accuracy import judge_record
from infx.analysis.curves import Line, line_of, lines_of
from infx.analysis.metrics import NORTH_STAR, THROUGHPUT
from infx.changelog.entry import PLACEHOLDER
from infx.domain.acceptance import Acceptance
from infx.domain.plan import Plan
from infx.domain.point import Accuracy, Agentic, FixedLengths, Point
from infx.domain.record import PointRecord
from infx.report.baseline import TOLD
from infx.report.charts import on_frontiers
from infx.report.figures import count
from infx.report.model import Baseline, PointRow, Shown
from infx.report.points import rows_of, series_of
from infx.report.scores import told_apart

__all__ = ["draft_entry"]

_TYPES: Mapping[type, str] = {FixedLengths: "fixed-seq-len", Agentic: "agentic-coding"}

_BARE = re.compile(r"XXX|https://[\w./-]+|[A-Za-z][\w.]*-[\w.-]*\w")


def draft_entry(
    records: Sequence[PointRecord],
    plan: Plan,
    pr_link: str = PLACEHOLDER,
    since: Baseline | None = None,
) -> str:
    """Return one entry as YAML text: keys, what was measured, headline numbers, accuracy, coverage,
    and what changed ``since`` a baseline: image and settings old to new, points added and dropped.

    Descriptions are double-quoted, so that no text can be read as something else; the entry ends
    with one newline and holds no tab. A run of evaluations alone says ``evals-only``.
    """
    entries = list(dict.fromkeys(point.entry for point in plan.points))
    types = dict.fromkeys(_TYPES[type(p.workload)] for p in plan.points if p.mode == "throughput")
    lines = ["- config-keys:", *(f"    - {_name(entry)}" for entry in entries)]
    lines += ["  scenario-type:", *(f"    - {name}" for name in types)] if types else []
    told = [*(_since(since) if since else ()), *_description(records, plan, entries)]
    lines += ["  description:", *(f"    - {_quoted(text)}" for text in told)]
    lines += [] if types else ["  evals-only: true"]
    return "\n".join([*lines, f"  pr-link: {_name(pr_link)}"]) + "\n"


def _since(since: Baseline) -> Iterable[str]:
    """Tell what the report says of its baseline, then the settings and points in full."""
    runs = ", ".join(facts.run_id for facts in since.runs)
    yield f"since run {runs}: {since.headline}"
    yield from since.sentences[1:]
    for setting, pairs in [*since.settings.items()][TOLD:]:
        yield f"{setting} ({count(pairs, 'pair')})"
    told = {"added": since.added, "dropped": since.dropped, "valid no more": since.broken}
    for name, labels in told.items():
        if labels:
            yield f"{count(len(labels), 'point')} {name}: {', '.join(labels)}"


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
    series = series_of([*plan.points, *(record.point for record in records)])
    rows = on_frontiers(rows_of(records, series, {}, {}), {})
    for entry in entries:
        planned = [point for point in plan.points if point.entry == entry]
        yield f"{entry}: {_setting(planned[0].arm.image, [p.arm.acceptance for p in planned])}"
        lines = lines_of(planned)
        for line in lines:
            name = ", ".join(filter(None, (entry, line.apart(lines))))
            on_line = [row for row in rows if row.series == series[line]]
            yield from _curve(name, on_line, _planned(planned, line))
        mine = [record for record in records if record.point.entry == entry]
        yield from _scores(entry, mine, planned)


def _planned(points: Sequence[Point], line: Line) -> set[str]:
    return {p.point_id for p in points if p.mode == "throughput" and line_of(p) == line}


def _setting(image: str, acceptances: Sequence[Acceptance]) -> str:
    synthetic = sorted({a.length for a in acceptances if a.mode == "synthetic" and a.length})
    lengths = ", ".join(f"{length:g}" for length in synthetic)
    return f"image {image}" + (f", synthetic acceptance length {lengths}" if lengths else "")


def _curve(name: str, rows: Sequence[PointRow], planned: set[str]) -> Iterable[str]:
    """Tell one line of the report: its best points, and what became of all that were planned.

    A point that ran again counts once, with the mean of its figures.
    """
    valid = [row for row in rows if row.valid]
    for title, row in _headlines(valid):
        yield f"{name}: {title} {_headline(row)}"
    ids = {row.record.point.point_id for row in rows}
    lost = ["without figures" if r.faults else str(r.record.status) for r in rows if not r.valid]
    reasons = Counter(lost) + Counter({"not run": len(planned - ids)})
    told = "".join(f", {number} {status}" for status, number in reasons.most_common())
    on, total = sum(row.on_frontier for row in rows), len(planned | ids)
    yield f"{name}: {count(on, 'frontier point')} out of {total} planned, {len(valid)} valid{told}"


def _headlines(valid: Sequence[PointRow]) -> list[tuple[str, PointRow]]:
    """Return the two ends of a curve; one when the same point is both."""
    if not valid:
        return []
    fastest = max(valid, key=lambda row: row.figures[NORTH_STAR.key].value)
    fullest = max(valid, key=lambda row: row.figures[THROUGHPUT.key].value)
    if fastest is fullest:
        return [("highest throughput and interactivity", fullest)]
    return [("highest throughput", fullest), ("highest interactivity", fastest)]


def _headline(row: PointRow) -> str:
    fast, full = (row.figures[metric.key] for metric in (NORTH_STAR, THROUGHPUT))
    return (
        f"{full.value:.4g} {THROUGHPUT.unit}{_interval(full)} at {fast.value:.4g} "
        f"{NORTH_STAR.unit}{_interval(fast)} ({NORTH_STAR.title}), conc {row.record.point.conc}"
    )


def _interval(shown: Shown) -> str:
    """Return the 95 % interval of a figure, nothing where one run has none."""
    if shown.low is None or shown.high is None:
        return ""
    return f" (95 % {shown.low:.4g} … {shown.high:.4g}, {shown.runs} runs)"


def _scores(entry: str, records: Sequence[PointRecord], planned: Sequence[Point]) -> Iterable[str]:
    seen = {record.point.point_id for record in records}
    points = [*planned, *(record.point for record in records)]
    apart = told_apart([point for point in points if point.mode == "evaluation"])
    named = {point_id: ", ".join(filter(None, (entry, told))) for point_id, told in apart.items()}
    for record in records:
        if record.point.mode == "evaluation":
            yield f"{named[record.point.point_id]}: {_task(record.point)}: {_judged(record)}"
    for point in planned:
        if point.mode == "evaluation" and point.point_id not in seen:
            yield f"{named[point.point_id]}: {_task(point)}: not run"


def _judged(record: PointRecord) -> str:
    verdicts = judge_record(record)
    if not verdicts:
        return f"not judged, {record.status} {record.status.sentence}".rstrip()
    return "; ".join(f"{found.filter} {found.sentence}" for found in verdicts)


def _task(point: Point) -> str:
    assert isinstance(point.workload, Accuracy)
    return f"{point.workload.task}, {point.workload.shots}-shot"
