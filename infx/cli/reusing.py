"""Measurements of other runs that stand for points of a plan: found, and taken from the store."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.domain.plan import Plan, Reused
    from infx.domain.point import Point
    from infx.domain.record import PointRecord
    from infx.domain.status import Status
    from infx.store import Store

__all__ = [
    "check_reused",
    "homes",
    "reused_data",
    "reused_from",
    "reused_statuses",
    "with_reused",
    "without_measured",
]

LOST = "reused-lost"


def without_measured(plan: Plan, results: Path) -> Plan:
    """Return the plan without the points that a run in ``results`` has measured already; of several
    runs the newest stands for a point. Nothing is there to reuse before the first run."""
    from infx.ci.reuse import reused
    from infx.ci.stored import measured_by
    from infx.cli.stored_runs import stored_runs
    from infx.store import FILE

    if not (results / FILE).is_file():
        return plan
    runs = sorted(stored_runs(results), key=lambda run: run.created_s, reverse=True)
    return reused(plan, measured_by(runs))


def check_reused(store: Store, plan: Plan) -> None:
    """Raise UsageError ``unknown-run`` where the store lacks what the plan reuses."""
    from infx.domain.errors import UsageError

    lost = [r for r in with_reused(store, Path(), plan, ()) if r.status.code == LOST]
    if lost:
        runs = " ".join(dict.fromkeys(record.attempt.run_id for record in lost))
        sentence = f"{lost[0].point.label} is to be reused, but {lost[0].status.sentence}"
        hint = f"infx store pull PLACE {runs}, or plan again"
        raise UsageError("unknown-run", sentence, hint=hint)


def reused_from(folder: Path) -> dict[str, int]:
    """Return how many points a run's plan reuses, by the run that measured them."""
    from infx.plan.saved import read_plan
    from infx.store.layout import PLAN

    path = folder / PLAN
    return Counter(one.run_id for one in read_plan(path).reused) if path.is_file() else {}


def reused_statuses(plan: Plan, records: Sequence[PointRecord]) -> list[Status]:
    """Return how each point stands that the plan reuses, of the records that `with_reused` gave."""
    standing = {record.point.point_id: record.status for record in records}
    return [standing[one.point.point_id] for one in plan.reused]


def reused_data(plan: Plan, records: Sequence[PointRecord]) -> list[dict[str, object]]:
    """Return each point that the plan reuses, its run and how it stands, for JSON."""
    return [
        {
            "point_id": one.point.point_id,
            "label": one.point.label,
            "run_id": one.run_id,
            "status": status,
        }
        for one, status in zip(plan.reused, reused_statuses(plan, records), strict=True)
    ]


def with_reused(
    store: Store, folder: Path, plan: Plan, records: Sequence[PointRecord]
) -> list[PointRecord]:
    """Return the records of a run with those of other runs that stand for points of its plan, in
    the order of its ledger. Their artifacts are relative to ``folder``, the run's own, as well.

    A point of which the store has no valid record is ``skipped:reused-lost``.
    """
    if not plan.reused:
        return list(records)
    folders = homes(store, plan)
    held = {run: _valid(store, run) for run in _runs(plan)}
    taken: list[PointRecord] = []
    for one in plan.reused:
        home = folders.get(one.run_id, folder)
        found = held[one.run_id].get(one.point.point_id) or [_lost(one, store.path.parent)]
        taken += [_placed(_as_planned(record, one.point, home), home, folder) for record in found]
    return _in_order(plan, [*records, *taken])


def homes(store: Store, plan: Plan) -> dict[str, Path]:
    """Return the folders of the runs that the plan reuses, as far as the store knows them."""
    runs = _runs(plan)
    return {row.run_id: Path(row.folder) for row in store.runs() if row.run_id in runs}


def _runs(plan: Plan) -> list[str]:
    return list(dict.fromkeys(one.run_id for one in plan.reused))


def _valid(store: Store, run: str) -> dict[str, list[PointRecord]]:
    """Return the valid records of a run by their point: several where it measured one again."""
    found: dict[str, list[PointRecord]] = {}
    for record in store.records(run):
        if record.status.state == "ok":
            found.setdefault(record.point.point_id, []).append(record)
    return found


def _lost(reused: Reused, results: Path) -> PointRecord:
    from infx.domain.record import Attempt, PointRecord
    from infx.domain.status import Status

    sentence = f"the store in {results} has no valid measurement of it in run {reused.run_id}"
    attempt = Attempt(run_id=reused.run_id, job_id="", number=0)
    return PointRecord(
        point=reused.point, status=Status("skipped", LOST, sentence), attempt=attempt
    )


def _in_order(plan: Plan, records: Sequence[PointRecord]) -> list[PointRecord]:
    places: dict[str, int] = {}
    for number, row in enumerate(plan.ledger):
        places.setdefault(row.point_id, number)
    return sorted(records, key=lambda record: places.get(record.point.point_id, len(places)))


def _as_planned(record: PointRecord, point: Point, home: Path) -> PointRecord:
    """Return the record as the plan judges it: limits and bars are no part of an identity."""
    from infx.analysis.validity import judge
    from infx.domain.point import Accuracy
    from infx.domain.status import Status

    planned = replace(record, point=point)
    if record.point.workload == point.workload:
        return planned
    if isinstance(point.workload, Accuracy):
        return _with_bars(planned, point.workload.bars)
    return judge(replace(planned, status=Status("measured")), home)


def _with_bars(record: PointRecord, bars: Mapping[str, float]) -> PointRecord:
    if record.score is None:
        return record
    filters = {name: replace(f, bar=bars.get(name)) for name, f in record.score.filters.items()}
    return replace(record, score=replace(record.score, filters=filters))


def _placed(record: PointRecord, home: Path, folder: Path) -> PointRecord:
    paths = record.artifacts.items()
    placed = {name: os.path.relpath(home / path, folder) for name, path in paths}
    return replace(record, artifacts=placed)
