"""The runs of a results folder, as CI takes them to be reused or published."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from infx.domain.plan import Origin

if TYPE_CHECKING:
    from infx.ci.stored import Stored
    from infx.domain.point import Point
    from infx.domain.status import Status
    from infx.store import PointRow, RunRow

__all__ = ["stored_runs"]


@dataclass(frozen=True, slots=True)
class _Identity:
    """What is read of a point."""

    point_id: str


@dataclass(frozen=True, slots=True)
class _Reused:
    """What is read of a point that a plan takes from another run."""

    point: _Identity
    run_id: str


@dataclass(frozen=True, slots=True)
class _Head:
    """What is read of a plan: the rest of it may be megabytes."""

    origin: Origin | None = None
    reused: tuple[_Reused, ...] = ()


def stored_runs(results: Path) -> tuple[Stored, ...]:
    """Return the runs of the store in ``results``; none where there is none yet, which is told.
    Raises ConfigError for a run's plan that is none."""
    from infx.cli.output import say
    from infx.store import FILE, Store

    if not (results / FILE).is_file():
        say(f"there are no runs in {results}: nothing is reused")
        return ()
    with Store(results / FILE) as store:
        return tuple(_stored(row, store.points(row.run_id), store.path) for row in store.runs())


def _stored(row: RunRow, points: Iterable[PointRow], store: Path) -> Stored:
    from infx.ci.stored import Stored

    head = _head(Path(row.folder))
    return Stored(
        run_id=row.run_id,
        created_s=row.created_s,
        origin=head.origin,
        states=_states(points),
        reused={one.point.point_id: one.run_id for one in head.reused},
        points=partial(_planned, row, store),
    )


def _head(folder: Path) -> _Head:
    """Return what a run's plan says of it; nothing where the run has lost its folder."""
    from infx.domain.serial import decode
    from infx.store.layout import PLAN

    path = folder / PLAN
    return decode(path.read_bytes(), _Head, source=str(path)) if path.is_file() else _Head()


def _states(points: Iterable[PointRow]) -> dict[str, Status]:
    states: dict[str, Status] = {}
    for point in points:
        if point.status.state == "ok" or point.point_id not in states:
            states[point.point_id] = point.status
    return states


def _planned(row: RunRow, store: Path) -> tuple[Point, ...]:
    """Return what the run planned; where it has lost its folder, what the store has records of."""
    from infx.plan.saved import read_plan
    from infx.store import Store
    from infx.store.layout import PLAN

    path = Path(row.folder) / PLAN
    if path.is_file():
        return read_plan(path).expected
    with Store(store) as found:
        return tuple(record.point for record in found.records(row.run_id))
