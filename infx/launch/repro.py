"""A recorded point, and the plan that measures it again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from infx.config.sites import Cluster
from infx.domain.errors import UsageError
from infx.domain.plan import Plan
from infx.domain.point import Point
from infx.domain.record import PointRecord
from infx.plan.repeats import only, repeated
from infx.store import PointRow, RunRow, Store, find_point, find_recorded, find_run, read_run

__all__ = ["Recorded", "plan_again", "recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A point of a run with its valid records, one for each time that it was measured."""

    run: RunRow
    plan: Plan
    point: Point
    records: tuple[PointRecord, ...]

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return Path(self.run.folder)


def recorded(store: Store, text: str, run: str | None) -> Recorded:
    """Return the point that ``text`` names, in the run of that name (None: see `find_recorded`).

    Raises UsageError: ``unknown-run``, ``unknown-point``, ``not-a-run`` where the run's plan is
    gone, ``nothing-to-reproduce`` where no valid figures are recorded.
    """
    if run is None:
        row, named = find_recorded(store, text)
    else:
        row = find_run(store, run)
        named = find_point(store.points(row.run_id), text)
    plan = read_run(Path(row.folder))[1]
    point = next(p for j in plan.jobs for p in j.points if p.point_id == named.point_id)
    those = [r for r in store.records(row.run_id) if r.point.point_id == point.point_id]
    records = tuple(record for record in those if record.status.state == "ok")
    if not records:
        raise _nothing(row, named)
    return Recorded(run=row, plan=plan, point=point, records=records)


def plan_again(found: Recorded, runs: int, cluster: Cluster | None = None) -> Plan:
    """Return the plan that measures the point ``runs`` times as recorded; on another cluster, too.

    Raises UsageError ``bad-option`` for a cluster with other hardware: it would be another point.
    """
    arm = found.point.arm
    if cluster and cluster.hardware != arm.hardware:
        text = f"cluster {cluster.name!r} has {cluster.hardware}"
        hint = f"{found.point.label} was measured on {arm.hardware}: choose a cluster that has it"
        raise UsageError("bad-option", text, hint=hint)
    return repeated(only(found.plan, found.point.point_id, cluster), runs, evaluations=True)


def _nothing(run: RunRow, point: PointRow) -> UsageError:
    status = point.status
    why = f": {status.sentence}" if status.sentence else ""
    text = f"{point.label} of run {run.run_id} is {status}{why}"
    again = " --retry-failed" if status.state in ("failed", "invalid") else ""
    hint = f"measure it first: infx resume {run.run_id}{again}"
    return UsageError("nothing-to-reproduce", text, hint=hint)
