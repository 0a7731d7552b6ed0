"""The live curves: the points of each entry that are published, and who measured them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from infx.domain.errors import ConfigError, UsageError
from infx.domain.findings import Finding, Where
from infx.domain.plan import Plan
from infx.domain.point import Point
from infx.domain.record import PointRecord
from infx.domain.serial import decode, encode

__all__ = [
    "LIVE",
    "Live",
    "LivePoint",
    "check_whole",
    "planned",
    "published",
    "read_live",
    "with_entries",
    "write_live",
]

LIVE = "live.json"
"""The file's name in a place, and in a results folder."""

SCHEMA = "1"

Records = Callable[[str], Sequence[PointRecord]]
"""Returns the records of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePoint:
    """A point of a curve, and the run whose record of it is shown."""

    run_id: str
    point: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """live.json: the points of each entry, in the order of their plan."""

    schema_version: str = SCHEMA
    entries: Mapping[str, tuple[LivePoint, ...]] = field(default_factory=dict)

    @property
    def points(self) -> tuple[Point, ...]:
        """All points."""
        return tuple(one.point for points in self.entries.values() for one in points)

    def runs_of(self, entries: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return the runs that these entries are shown from, and the identities of the points that
        each is shown for; the newest run comes last."""
        found: dict[str, set[str]] = {}
        for name in entries:
            for one in self.entries.get(name, ()):
                found.setdefault(one.run_id, set()).add(one.point.point_id)
        return {run_id: frozenset(found[run_id]) for run_id in sorted(found)}


def read_live(path: Path | None) -> Live:
    """Return the live curves in a file; none where there is no file. Raises ConfigError."""
    if path is None or not path.is_file():
        return Live()
    live = decode(path.read_bytes(), Live, source=str(path))
    if live.schema_version != SCHEMA:
        sentence = f"live curves of schema {live.schema_version}; this infx reads schema {SCHEMA}"
        raise ConfigError([Finding("bad-record", "error", sentence, Where(str(path)))])
    return live


def write_live(live: Live, path: Path) -> None:
    """Write live curves, whole or not at all, with sorted names."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(encode(live))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def published(run_id: str, plan: Plan, records: Records) -> tuple[LivePoint, ...]:
    """Return what a run has to publish: its points that are ok, and those ok elsewhere that it
    reuses. Raises UsageError ``not-publishable`` as `check_whole` does, or where nothing is ok."""
    check_whole(plan, f"run {run_id}")
    found = [*_own(run_id, records), *_reused(plan, records)]
    if not found:
        text = f"run {run_id} has no point that is ok"
        raise UsageError("not-publishable", text, hint="infx status shows what became of them")
    return tuple({one.point.point_id: one for one in reversed(found)}.values())[::-1]


def _own(run_id: str, records: Records) -> list[LivePoint]:
    ok = (record.point for record in records(run_id) if record.status.state == "ok")
    return [LivePoint(run_id=run_id, point=point) for point in ok]


def _reused(plan: Plan, records: Records) -> list[LivePoint]:
    """Points that are ok in the run that they are taken from; one without a record is none."""
    ok = {
        run_id: {r.point.point_id for r in records(run_id) if r.status.state == "ok"}
        for run_id in {one.run_id for one in plan.reused}
    }
    return [
        LivePoint(run_id=one.run_id, point=one.point)
        for one in plan.reused
        if one.point.point_id in ok[one.run_id]
    ]


def check_whole(plan: Plan, what: str) -> None:
    """Raise UsageError ``not-publishable`` where a label shortened the plan of ``what``."""
    if plan.origin and not plan.origin.submission_valid:
        text = f"{what} was shortened by a label: what it measures is not valid for submission"
        raise UsageError("not-publishable", text, hint="measure it whole, then publish that run")


def planned(plan: Plan, records: Records) -> tuple[LivePoint, ...]:
    """Return what a plan that measures nothing reuses, as it is published. Raises UsageError
    ``not-publishable`` as `check_whole` does, or where a point of it is to be measured, or is not
    ok in its run."""
    check_whole(plan, "the plan")
    found = _reused(plan, records)
    if plan.points or len(found) < len(plan.reused):
        lacking = len(plan.points) + len(plan.reused) - len(found)
        text = f"no run here has measured {lacking} of the plan's {len(plan.expected)} points"
        raise UsageError("not-publishable", text, hint="plan again: infx ci plan … -o plan.json")
    return tuple(found)


def with_entries(live: Live, points: Sequence[LivePoint]) -> Live:
    """Return the live curves with those of the entries of ``points`` in the place of theirs."""
    entries: dict[str, tuple[LivePoint, ...]] = {}
    for one in points:
        entries[one.point.entry] = (*entries.get(one.point.entry, ()), one)
    return replace(live, entries=dict(sorted({**live.entries, **entries}.items())))
