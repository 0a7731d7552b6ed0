"""Runs of a store, and which of them may stand for what a change asks to measure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from infx.domain.plan import Origin
from infx.domain.point import Point
from infx.domain.status import OK, Status

__all__ = ["Stored", "covering", "followed", "measured_by", "standing", "unfit", "whole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A run of a store: what became of its points by identity (ok, where one of several times was).

    ``created_s`` is seconds since the epoch; ``origin`` the change that it was made for (None: a
    person made it). ``reused`` maps a planned point to the run that it was taken from instead.
    ``points`` reads all that it planned, when a comment names the run.
    """

    run_id: str
    created_s: float
    origin: Origin | None
    states: Mapping[str, Status]
    reused: Mapping[str, str] = field(default_factory=dict)
    points: Callable[[], Sequence[Point]]

    @property
    def measured(self) -> frozenset[str]:
        """The identities of its points that are ok."""
        return frozenset(key for key, status in self.states.items() if status.state == "ok")


def unfit(run: Stored, repository: str, *, valid: bool) -> str:
    """Return why the run may stand for nothing of ``repository``, or ``""``. ``valid``: what it is
    to stand for is valid for submission. A run that a person made is judged by its content alone.
    """
    origin = run.origin
    if origin is None:
        return ""
    if origin.repository != repository:
        return f"it is of {origin.repository}, not of {repository}"
    if not origin.reusable:
        return "its labels asked for what stands for no other run"
    if valid and not origin.submission_valid:
        return "it is not valid for submission"
    return ""


def standing(runs: Iterable[Stored], repository: str, *, valid: bool) -> tuple[Stored, ...]:
    """Return the runs that may stand for something of ``repository``, the newest first."""
    fit = (run for run in runs if not unfit(run, repository, valid=valid))
    return tuple(sorted(fit, key=lambda run: (run.created_s, run.run_id), reverse=True))


def followed(run: Stored, runs: Iterable[Stored]) -> Stored:
    """Return the run with the points that it took from others of ``runs``, where they are ok."""
    held = {one.run_id: one.measured for one in runs}
    taken = (key for key, name in run.reused.items() if key in held.get(name, ()))
    return replace(run, states={**run.states, **dict.fromkeys(taken, OK)})


def measured_by(runs: Sequence[Stored]) -> dict[str, str]:
    """Return the run that measured each point that is ok in one of ``runs``; of several the first,
    or the one that this took it from (see `followed`)."""
    return {key: run.reused.get(key, run.run_id) for run in reversed(runs) for key in run.measured}


def whole(runs: Sequence[Stored], wanted: Collection[str]) -> Stored | None:
    """Return the first run that has measured all that is ``wanted``, or None."""
    return next((run for run in runs if run.measured.issuperset(wanted)), None)


def covering(
    runs: Sequence[Stored], wanted: Collection[str]
) -> tuple[tuple[Stored, ...], frozenset[str]]:
    """Return runs that together have measured what is ``wanted``, and what none of them has: the
    first that has it all, or else the first that has each point."""
    if alone := whole(runs, wanted):
        return (alone,), frozenset()
    taken: list[Stored] = []
    left = frozenset(wanted)
    for run in runs:
        if more := left & run.measured:
            taken.append(run)
            left -= more
    return tuple(taken), left
