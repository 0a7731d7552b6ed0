"""A draft entry for perf-changelog.yaml, in the public format, from what a run measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from infx.analysis.accuracy import judge_record
from infx.analysis.curves import Line, line_of, lines_of
from infx.analysis.metrics import NORTH_STAR, THROUGHPUT
from infx.changelog.entry import PLACEHOLDER, SCENARIO_TYPES, SINCE, of_run
from infx.changelog.moves import moves
from infx.changelog.written import written
from infx.domain.plan import Plan
from infx.domain.point import Accuracy, Point
from infx.domain.record import PointRecord
from infx.report.baseline import TOLD
from infx.report.charts import on_frontiers
from infx.report.figures import count, figure, image
from infx.report.model import Baseline, PointRow, Shown
from infx.report.points import rows_of, series_of
from infx.report.scores import told_apart

__all__ = ["draft_entry"]


def draft_entry(
    records: Sequence[PointRecord],
    plan: Plan,
    pr_link: str = PLACEHOLDER,
    since: Baseline | None = None,
    run: str = "",
) -> str:
    """Return one entry as YAML text: keys, what was measured, headline numbers, accuracy, coverage,
    and what changed ``since`` a baseline: image and settings old to new, arms added and dropped.
    The last sentence names the ``run``, and those that points are reused from. A run of evaluations
    alone says ``evals-only``.
    """
    points = plan.expected
    entries = list(dict.fromkeys(point.entry for point in points))
    types = dict.fromkeys(
        SCENARIO_TYPES[type(p.workload)] for p in points if p.mode == "throughput"
    )
    measured = [*points, *(record.point for record in records)]
    told = [*(_since(since, measured) if since else ())]
    told += _description(records, points, entries, since)
    told += [f"{of_run(run)}{_measured(records, plan)}"] if run else []
    return written(entries, types, told, pr_link)


def _measured(records: Sequence[PointRecord], plan: Plan) -> str:
    """Tell how much of the plan this run has records of, and what it reuses of others."""
    taken: dict[str, list[Point]] = {}
    for one in plan.reused:
        taken.setdefault(one.run_id, []).append(one.point)
    told = [f"reused from run {name}: {_share(some, plan)}" for name, some in taken.items()]
    ran = {record.point.point_id for record in records}
    own = [point for point in plan.points if point.point_id in ran]
    return "; ".join([_share(own, plan), *told])


def _share(some: Sequence[Point], plan: Plan) -> str:
    """Return ``3 of 10 points, 0 of 1 evaluations``."""
    nouns = {"throughput": "points", "evaluation": "evaluations"}
    mine, every = (Counter[str](p.mode for p in points) for points in (some, plan.expected))
    told = (f"{mine[mode]} of {every[mode]} {noun}" for mode, noun in nouns.items() if every[mode])
    return ", ".join(told)


def _since(since: Baseline, points: Sequence[Point]) -> Iterable[str]:
    """Tell what the report says of its baseline, then the settings and arms in full."""
    begins = f"{SINCE}{', '.join(facts.run_id for facts in since.runs)}: "
    more = [*since.settings.items()][TOLD:]
    settings = (f"{setting} ({count(pairs, 'pair')})" for setting, pairs in more)
    for text in (since.headline, *since.sentences[1:], *settings, *moves(since, points)):
        yield f"{begins}{text}"


def _description(
    records: Sequence[PointRecord],
    points: Sequence[Point],
    entries: Sequence[str],
    since: Baseline | None,
) -> Iterable[str]:
    before = [record for row in since.rows for record in row.counted] if since else []
    series = series_of([*points, *(record.point for record in records)])
    rows = on_frontiers(rows_of(records, series, {}, {}), {})
    for entry in entries:
        planned = [point for point in points if point.entry == entry]
        mine, old = ([r for r in some if r.point.entry == entry] for some in (records, before))
        yield f"{entry}: {_setting(planned, mine, old)}"
        lines = lines_of(planned)
        for line in lines:
            name = ", ".join(filter(None, (entry, line.apart(lines))))
            on_line = [row for row in rows if row.series == series[line]]
            yield from _curve(name, on_line, _planned(planned, line))
        yield from _scores(entry, mine, planned)


def _planned(points: Sequence[Point], line: Line) -> set[str]:
    return {p.point_id for p in points if p.mode == "throughput" and line_of(p) == line}


def _setting(
    planned: Sequence[Point], records: Sequence[PointRecord], before: Sequence[PointRecord]
) -> str:
    """Tell the image and what its server says of its version, as they were ``before`` and are now,
    and the acceptance lengths that are simulated."""
    old, new = ([image(record.point.arm) for record in before], [image(p.arm) for p in planned])
    told = [f"image {_moved(old, new)}"]
    if versions := _versions(records):
        told.append(f"{planned[0].arm.framework} {_moved(_versions(before), versions)}")
    acceptances = (point.arm.acceptance for point in planned)
    lengths = sorted({a.length for a in acceptances if a.mode == "synthetic" and a.length})
    if lengths:
        told.append(f"synthetic acceptance length {', '.join(f'{n:g}' for n in lengths)}")
    return ", ".join(told)


def _versions(records: Sequence[PointRecord]) -> list[str]:
    told = (record.provenance.server.get("version") for record in records)
    return [str(version) for version in told if version]


def _moved(before: Sequence[str], now: Sequence[str]) -> str:
    """Return ``a → b``; ``b`` where it is as it was, or was not."""
    old, new = (" and ".join(dict.fromkeys(texts)) for texts in (before, now))
    return f"{old} → {new}" if old and old != new else new


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
        f"{figure(full.value)} {THROUGHPUT.unit}{_interval(full)} at {figure(fast.value)} "
        f"{NORTH_STAR.unit}{_interval(fast)} ({NORTH_STAR.title}), conc {row.record.point.conc}"
    )


def _interval(shown: Shown) -> str:
    """Return the 95 % interval of a figure, nothing where one run has none."""
    if shown.low is None or shown.high is None:
        return ""
    return f" (95 % {figure(shown.low)} … {figure(shown.high)}, {shown.runs} runs)"


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
