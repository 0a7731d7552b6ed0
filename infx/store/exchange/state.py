"""How far a run is, as a store knows it, and which of two states of one run is the newer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where
from infx.domain.identity import content_id
from infx.domain.record import PointRecord
from infx.domain.serial import decode
from infx.domain.status import PENDING, Status
from infx.store.kept import rank
from infx.store.rows import PointKey
from infx.store.store import Rows, Store

__all__ = ["Relation", "State", "checked", "relation", "state_of"]

Relation = Literal["same", "newer", "older", "apart"]

_OF_THE_MACHINE = ("folder", "project")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The rows of a run, and the digests of the states that it is known to come from."""

    run_id: str
    rows: Rows
    lineage: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What tells it from other states, on whatever machine: 16 hex digits."""
        runs = [_anywhere(row) for row in self.rows.get("runs", ())]
        return content_id({**self.rows, "runs": runs})[:16]

    @property
    def descent(self) -> tuple[str, ...]:
        """The lineage of a state that comes from this one."""
        return tuple(dict.fromkeys((*self.lineage, self.digest)))

    @property
    def statuses(self) -> dict[PointKey, Status]:
        """How each point stands."""
        return {_key(row): _status(row) for row in self.rows.get("points", ())}

    @property
    def done(self) -> tuple[int, int]:
        """Points that have a result or a failure, and all of them."""
        statuses = self.statuses.values()
        return sum(status != PENDING for status in statuses), len(statuses)

    @property
    def under_way(self) -> bool:
        """True when an attempt is open: somebody launched it, and nobody saw it end."""
        return not all(self.attempts.values())

    @property
    def attempts(self) -> dict[str, bool]:
        """Every attempt by its unique name, and whether it has ended."""
        return {row["unique_name"]: bool(row["ended_s"]) for row in self.rows.get("attempts", ())}

    def placed(self, folder: str, project: str) -> State:
        """Return the state with the places of this machine."""
        here = {"folder": folder, "project": project}
        runs = tuple({**row, **here} for row in self.rows.get("runs", ()))
        return replace(self, rows={**self.rows, "runs": runs})


def state_of(store: Store, run_id: str, lineage: tuple[str, ...] = ()) -> State:
    """Return how the run stands in ``store``."""
    return State(run_id=run_id, rows=store.rows(run_id), lineage=lineage)


def relation(mine: State, theirs: State) -> Relation:
    """Return what ``mine`` is, seen from ``theirs``.

    The one that comes from the other is the newer. Of two that come from a third, it is the one
    that knows every attempt, every end and every result that the other knows. ``apart``: each knows
    something that the other does not, as when a run was driven at two places.
    """
    here, there = mine.digest, theirs.digest
    if here == there:
        return "same"
    if there in mine.lineage and _knows(mine, theirs):
        return "newer"
    if here in theirs.lineage and _knows(theirs, mine):
        return "older"
    ahead, behind = _covers(mine, theirs), _covers(theirs, mine)
    if ahead and behind:
        return "same"
    return "newer" if ahead else "older" if behind else "apart"


def checked(state: State, source: str) -> State:
    """Return ``state``. Raises ConfigError ``bad-parcel`` where its rows are not of one run, or a
    record in them is none."""
    faults = [_fault(name, row, state.run_id) for name, rows in state.rows.items() for row in rows]
    faults += [] if len(state.rows.get("runs", ())) == 1 else ["it does not tell of one run"]
    if first := next(filter(None, faults), ""):
        finding = Finding("bad-parcel", "error", first, Where(source), hint="push the run again")
        raise ConfigError([finding])
    return state


def _fault(table: str, row: Mapping[str, Any], run_id: str) -> str:
    if row.get("run_id") != run_id:
        return f"a row of {table} is not of run {run_id}"
    if table == "attempts" and not {"unique_name", "ended_s"} <= row.keys():
        return "an attempt lacks its name"
    return _point_fault(row, run_id) if table == "points" else ""


def _point_fault(row: Mapping[str, Any], run_id: str) -> str:
    try:
        _status(row), row["attempt"]
        if row["record"] is None:
            return ""
        record = decode(row["record"], PointRecord)
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        return f"a point of it cannot be read: {error}"
    if (record.attempt.job_id, record.point.point_id) == _key(row):
        return "" if record.attempt.run_id == run_id else "a record is of another run"
    return "a record is of another point"


def _knows(one: State, other: State) -> bool:
    """Return True when ``one`` has every attempt and every end of ``other``, as whatever comes from
    it has. Lineage alone does not tell: it stands in the run's folder, which two stores may share.
    """
    known = one.attempts
    return all(name in known and known[name] >= ended for name, ended in other.attempts.items())


def _covers(one: State, other: State) -> bool:
    results = _results(one)
    better = all(results.get(key, (0, 0)) >= told for key, told in _results(other).items())
    return better and _knows(one, other)


def _results(state: State) -> dict[PointKey, tuple[int, int]]:
    """What `kept.best` orders records by: a point only ever gets a better one."""
    return {
        _key(row): (rank(_status(row)) if row["record"] is not None else 0, row["attempt"])
        for row in state.rows.get("points", ())
    }


def _key(row: Mapping[str, Any]) -> PointKey:
    return row["job_id"], row["point_id"]


def _status(row: Mapping[str, Any]) -> Status:
    return Status(row["state"], row["code"], row["sentence"])


def _anywhere(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _OF_THE_MACHINE}
