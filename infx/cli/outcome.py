"""What came out of a run, as an exit code and one sentence for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from infx.domain.codes import CODES

if TYPE_CHECKING:
    from infx.domain.record import PointRecord
    from infx.domain.status import Status
    from infx.store import PointRow

__all__ = ["counted", "exit_code"]

FINDINGS, INFRA, PARTIAL, NOT_ENDED, INTERRUPTED = 1, 3, 4, 6, 130


def exit_code(
    rows: Sequence[PointRow],
    records: Sequence[PointRecord],
    *,
    whole: bool,
    reused: Sequence[Status] = (),
) -> int:
    """Return 0 when every point is ok, 1 when a score is below its bar, 3 when the machine failed
    every point that is missing and none is ok, else 4; 130 when the run was not ``whole``.

    ``reused`` is how the points stand that were measured in other runs.
    """
    if not whole:
        return INTERRUPTED
    every = [*(row.status for row in rows), *reused]
    missing = [status for status in every if status.state != "ok"]
    if not missing:
        return FINDINGS if any(_misses_a_bar(record) for record in records) else 0
    if len(missing) == len(every) and all(_infra(status) for status in missing):
        return INFRA
    return PARTIAL


def counted(rows: Sequence[PointRow], reused: Sequence[Status] = ()) -> str:
    """Return ``12 of 14 points ok, 2 failed:server-died, 3 reused``; with repeats it counts
    measurements."""
    what = "measurements" if any(row.repeat > 1 for row in rows) else "points"
    states = Counter([*(str(row.status) for row in rows), *map(str, reused)])
    rest = [f"{n} {state}" for state, n in states.most_common() if state != "ok"]
    told = [f"{states['ok']} of {states.total()} {what} ok", *rest]
    return ", ".join([*told, f"{len(reused)} reused"] if reused else told)


def _infra(status: Status) -> bool:
    return status.code in CODES and CODES[status.code].family == "infra"


def _misses_a_bar(record: PointRecord) -> bool:
    from infx.analysis.accuracy import judge_score

    verdicts = judge_score(record.score) if record.score and record.score.questions else []
    return any(verdict.answer == "fail" for verdict in verdicts)
