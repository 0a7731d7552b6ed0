"""What earlier commits and labels of a pull request left under way."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from infx.ci.stored import Stored
from infx.domain.plan import Origin

__all__ = ["goes_on", "left_by"]


def left_by(runs: Iterable[Stored], repository: str, number: int) -> tuple[Stored, ...]:
    """Return the runs that were made for a pull request, the newest first."""
    made = [
        run
        for run in runs
        if run.origin and (run.origin.repository, run.origin.pull_request) == (repository, number)
    ]
    return tuple(sorted(made, key=lambda run: (run.created_s, run.run_id), reverse=True))


def goes_on(
    runs: Iterable[Stored], wanted: Collection[str], asked: Origin | None = None
) -> Stored | None:
    """Return the first run that will have measured every ``wanted`` point by its end: each is ok
    there, or has no end yet; None where nothing is wanted, or no run will. A run that labels kept
    from being reused or submitted does not where those of ``asked`` do not any more."""
    fit = (run for run in runs if asked is None or _is_worth(run.origin, asked))
    return next((run for run in fit if wanted and _will_measure(run, wanted)), None)


def _is_worth(made: Origin | None, asked: Origin) -> bool:
    if made is None:
        return True
    return made.reusable >= asked.reusable and made.submission_valid >= asked.submission_valid


def _will_measure(run: Stored, wanted: Collection[str]) -> bool:
    found = [run.states.get(key) for key in wanted]
    return all(status and (status.state == "ok" or not status.terminal) for status in found)
