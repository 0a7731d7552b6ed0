"""What changed since the baseline: settings, points, figures, and each line's frontier."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from infx.analysis import line_changes
from infx.analysis.changes import VERDICTS
from infx.analysis.compare import Compared, compare_runs
from infx.analysis.metrics import NORTH_STAR, THROUGHPUT
from infx.analysis.pairing import Seen
from infx.domain.errors import UsageError
from infx.domain.status import PENDING
from infx.report.charts import charts_of
from infx.report.figures import count, signed
from infx.report.model import Baseline, LineChange, PointRow, RunData, Series

__all__ = ["baseline_of", "compared_with", "with_changes"]

_DIGEST = re.compile(r"(sha256:[0-9a-f]{12})[0-9a-f]{52}")

TOLD = 4
"""Settings of a sentence; the table has all."""


def compared_with(runs: Sequence[RunData], baseline: Sequence[RunData]) -> Compared | str:
    """Return how the runs' figures changed since the baseline's, or why nothing can be compared."""
    try:
        return compare_runs(_seen(baseline), _seen(runs))
    except UsageError as error:
        return f"{error.message}: {error.hint}" if error.hint else error.message


def with_changes(rows: Sequence[PointRow], found: Compared | str) -> list[PointRow]:
    """Return the rows with their changes since the baseline."""
    if isinstance(found, str):
        return list(rows)
    changes = {p.b: {c.metric: c for c in p.comparison.changes} for p in found.points}
    return [replace(row, baseline=changes.get(row.record.point.label, {})) for row in rows]


def baseline_of(
    runs: Sequence[RunData],
    found: Compared | str,
    now: Sequence[PointRow],
    before: Sequence[PointRow],
) -> Baseline:
    """Return the baseline of ``runs``; ``now`` and ``before`` are the rows of the report and its
    own."""
    lines = tuple(_line_changes(now, before, found))
    good = {row.record.point.point_id for row in before if row.valid}
    lost = [row.record.point for row in now if not row.valid]
    bare = Baseline(
        runs=tuple(run.facts for run in runs),
        charts=charts_of(before, {}),
        rows=tuple(before),
        lines=lines,
        broken=tuple(point.label for point in lost if point.point_id in good),
    )
    if isinstance(found, str):
        headline = f"nothing is compared: {found}."
        return replace(bare, headline=headline, sentences=(headline, *map(_grown, lines)))
    mine = {run.facts.run_id for run in runs}
    alone = [one for one in found.left_out if one.alone]
    whole = replace(
        bare,
        compared=len(found.points),
        same=sum(pair.a == pair.b for pair in found.points),
        itself=sum(row.reused in {run.facts.run_id for run in runs} for row in now),
        settings=_settings(found),
        added=tuple(one.label for one in alone if one.run_id not in mine),
        dropped=tuple(one.label for one in alone if one.run_id in mine),
        verdicts=_verdicts(found),
        left_out=tuple(one for one in found.left_out if not one.alone),
        scores=found.scores,
    )
    whole = replace(whole, headline=_headline(whole))
    return replace(whole, sentences=tuple(_sentences(whole)))


def _seen(runs: Sequence[RunData]) -> list[Seen]:
    return [one for run in runs for one in _seen_in(run)]


def _seen_in(run: RunData) -> Iterable[Seen]:
    """Yield every record, then the planned points that have none."""
    run_id, folder = run.facts.run_id, run.folder
    groups = {job.job_id: job.group for job in run.plan.jobs}
    for record in run.records:
        point, status = record.point, record.status
        repeat, group = record.attempt.repeat, groups.get(record.attempt.job_id, "")
        yield Seen(
            run_id=run_id, folder=folder, point=point, status=status, record=record,
            repeat=repeat, group=group,
        )  # fmt: skip
    told = {record.point.point_id for record in run.records}
    for point in run.plan.expected:
        if point.point_id not in told:
            yield Seen(run_id=run_id, folder=folder, point=point, status=PENDING)


def _settings(found: Compared) -> dict[str, int]:
    differences = [pair.differences for pair in found.points]
    differences += [pair.differences for pair in found.scores]
    names = (_DIGEST.sub(r"\1…", str(one)) for told in differences for one in told)
    return dict(Counter(names).most_common())


def _verdicts(found: Compared) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for change in (c for point in found.points for c in point.comparison.changes):
        counts.setdefault(change.metric, Counter())[change.verdict] += 1
    return {key: {v: counted[v] for v in VERDICTS if counted[v]} for key, counted in counts.items()}


def _line_changes(
    now: Sequence[PointRow], before: Sequence[PointRow], found: Compared | str
) -> Iterable[LineChange]:
    """Yield the change of each line that both have."""
    sides = [_by_series(rows) for rows in (before, now)]
    areas = {} if isinstance(found, str) else _areas(found, now)
    for series in sides[1]:
        if series in sides[0]:
            had, has = (side[series] for side in sides)
            line = areas.get(series)
            yield LineChange(
                series=series,
                points=(len(had), len(has)),
                on_frontier=(_on(had), _on(has)),
                compared=line.points if line else 0,
                area=_share(line.ratio) if line else None,
                area_low=_share(line.low) if line else None,
                area_high=_share(line.high) if line else None,
            )


def _areas(found: Compared, now: Sequence[PointRow]) -> dict[Series, line_changes.LineChange]:
    """Return the lines that were compared by their series: their points stand in their order."""
    series = {row.record.point.label: row.series for row in now}
    points = iter(found.points)
    members = [(line, list(islice(points, line.points))) for line in found.lines]
    return {series[some[0].b]: line for line, some in members}


def _share(ratio: float | None) -> float | None:
    return None if ratio is None or math.isnan(ratio) else ratio - 1


def _by_series(rows: Sequence[PointRow]) -> Mapping[Series, list[PointRow]]:
    found: dict[Series, list[PointRow]] = {}
    for row in rows:
        found.setdefault(row.series, []).append(row)
    return found


def _on(rows: Sequence[PointRow]) -> int:
    return sum(row.on_frontier for row in rows)


def _headline(found: Baseline) -> str:
    """Return the verdicts on what decides: ``12 points compared. Throughput: better on 3; …``."""
    told = [
        f"{metric.title}: {_counted(found.verdicts[metric.key])}"
        for metric in (THROUGHPUT, NORTH_STAR)
        if metric.key in found.verdicts
    ]
    scores = Counter[str](
        change.verdict.change for score in found.scores for change in score.changes
    )
    told += [f"accuracy filters: {_counted(scores)}"] if scores else []
    if not told:
        return "nothing could be compared."
    told += [", ".join(f"{count(len(of), 'point')} {name}" for name, of in found.moved.items())]
    compared = f"{count(found.compared, 'point')} compared. " if found.compared else ""
    return f"{compared}{'; '.join(filter(None, told))}."


def _counted(verdicts: Mapping[str, int]) -> str:
    """Return ``better on 3, no difference seen on 9``; ``better on all 12`` where all agree."""
    every = "all " if len(verdicts) == 1 else ""
    return ", ".join(f"{name.replace('-', ' ')} on {every}{n}" for name, n in verdicts.items())


def _sentences(found: Baseline) -> Iterable[str]:
    yield f"{found.headline[:1].upper()}{found.headline[1:]}"
    yield from map(_grown, found.lines)
    if found.compared:
        yield f"{found.same} of {count(found.compared, 'compared point')} are the same by content."
    if found.itself:
        yield f"{count(found.itself, 'point')} reused from it: the same measurement, so no change."
    if found.settings:
        yield f"Servers differ in {_differing(found.settings)}."
    if found.left_out:
        yield f"{count(len(found.left_out), 'measurement')} on either side could not be compared."


def _differing(settings: Mapping[str, int]) -> str:
    """Return the settings with most pairs: ``image a → b (12 pairs), k 3 → 2 (4 pairs)``."""
    told = [f"{text} ({count(pairs, 'pair')})" for text, pairs in settings.items()]
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    return f"{', '.join(told[:TOLD])}{more}"


def _grown(line: LineChange) -> str:
    (had, has), (was_on, on) = line.points, line.on_frontier
    told = f"{line.series.label}: {was_on} of {had} → {on} of {has} points on the frontier"
    if line.area is None:
        return f"{told}."
    told += f"; over {count(line.compared, 'compared point')} the area that it dominates"
    if line.area_low is None or line.area_high is None:
        return f"{told} {signed(line.area)}, of which nobody can tell how much is noise."
    return f"{told} {signed(line.area)} ({signed(line.area_low)} … {signed(line.area_high)})."
