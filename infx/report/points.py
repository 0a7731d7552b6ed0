"""The rows of a report: each throughput point once, with all measurements of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite

from infx.analysis.curves import Line, line_of, lines_of, priced
from infx.analysis.metrics import METRICS, Metric, Priced
from infx.analysis.repeats import interval_of, mean_of
from infx.domain.point import Point, short
from infx.domain.record import PointRecord
from infx.report.model import PointRow, RunData, Series, Shown

__all__ = ["records_of", "reused_of", "rows_of", "series_of"]


def series_of(points: Iterable[Point]) -> dict[Line, Series]:
    """Return the lines of the throughput points among ``points``, numbered in their order."""
    lines = lines_of(points)
    return {
        line: Series(
            number=number,
            label=f"{line.entry} ({apart})" if (apart := line.apart(lines)) else line.entry,
            entry=line.entry,
            workload=line.workload,
        )
        for number, line in enumerate(lines)
    }


def records_of(runs: Sequence[RunData]) -> list[tuple[RunData, PointRecord, str]]:
    """Return every record beside its run and the one that it is reused from ("": it is the run's
    own), each measurement once: several runs may reuse one, and the run that made it may be among
    them."""
    mine = {run.facts.run_id for run in runs}
    found: list[tuple[RunData, PointRecord, str]] = []
    seen = set()
    for run in runs:
        ids = _reused_ids(run)
        for record in run.records:
            made = record.attempt
            if record.point.point_id not in ids:
                found.append((run, record, ""))
                continue
            key = made.run_id, made.job_id, made.number, record.point.point_id
            if made.run_id not in mine and key not in seen:
                seen.add(key)
                found.append((run, record, made.run_id))
    return found


def reused_of(runs: Sequence[RunData]) -> dict[str, str]:
    """Return the run that each reused point was measured in, by the point's id: of those that none
    of ``runs`` measured."""
    every = records_of(runs)
    own = {record.point.point_id for _, record, origin in every if not origin}
    taken = {record.point.point_id: origin for _, record, origin in every if origin}
    return {point_id: origin for point_id, origin in taken.items() if point_id not in own}


def _reused_ids(run: RunData) -> set[str]:
    return {row.point_id for row in run.plan.ledger if row.disposition == "reused"}


def rows_of(
    records: Sequence[PointRecord],
    series: Mapping[Line, Series],
    usd_gpu_hour: Mapping[str, float],
    reused: Mapping[str, str],
) -> list[PointRow]:
    """Return a row for each throughput point among ``records``, in the order of their first.

    ``usd_gpu_hour`` is the price of an accelerator by hardware; ``reused`` maps the id of a point
    to the run that it was taken from.
    """
    groups: dict[str, list[PointRecord]] = {}
    for record in records:
        if record.point.mode == "throughput":
            groups.setdefault(record.point.point_id, []).append(record)
    rows = [_row(group, series, usd_gpu_hour) for group in groups.values()]
    return [replace(row, reused=reused.get(row.record.point.point_id, "")) for row in rows]


def _row(
    group: Sequence[PointRecord], series: Mapping[Line, Series], usd_gpu_hour: Mapping[str, float]
) -> PointRow:
    group = sorted(group, key=lambda record: record.attempt.started_s)
    repeats = tuple(record for record in group if _counts(record))
    standing = (repeats or group)[-1]
    seen = [told for r in (repeats or [standing]) if (told := priced(r, usd_gpu_hour))]
    return PointRow(
        anchor=short(standing.point.point_id),
        series=series[line_of(standing.point)],
        record=standing,
        repeats=repeats,
        lost=tuple(record for record in group if not _counts(record)),
        figures=_figures(seen, counted=bool(repeats)),
        faults=_faults(standing),
        repro=f"infx repro {short(standing.point.point_id)}",
    )


def _counts(record: PointRecord) -> bool:
    return record.status.state == "ok" and not _faults(record)


def _faults(record: PointRecord) -> tuple[str, ...]:
    """Return why a point that is ``ok`` cannot compete: no measurement, or a figure that is no
    number, which is neither better nor worse than another."""
    if record.status.state != "ok":
        return ()
    seen = priced(record)
    if seen is None:
        return ("it has no measurement",)
    told = ((metric.title, metric.of(seen)) for metric in METRICS.values())
    return tuple(f"its {title} is {v}" for title, v in told if v is not None and not isfinite(v))


def _figures(seen: Sequence[Priced], *, counted: bool) -> dict[str, Shown]:
    shown = ((key, _shown(metric, seen, counted=counted)) for key, metric in METRICS.items())
    return {key: figure for key, figure in shown if figure}


def _shown(metric: Metric, seen: Sequence[Priced], *, counted: bool) -> Shown | None:
    told = (metric.of(one) for one in seen)
    values = [value for value in told if value is not None and isfinite(value)]
    if not values:
        return None
    low, high = interval_of(values) or (None, None)
    runs = len(values) if counted else 0
    return Shown(value=mean_of(values), low=low, high=high, runs=runs)
