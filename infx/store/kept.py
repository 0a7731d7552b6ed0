"""Which of several records of a point stands, and whether the point is done."""

from __future__ import annotations

from collections.abc import Iterable

from infx.domain.codes import CODES
from infx.domain.record import PointRecord
from infx.domain.status import Status

__all__ = ["best", "kept", "rank"]


def rank(status: Status) -> int:
    """Return 3 for ok, 2 for another result of a complete attempt, 1 for no result.

    A failure of the machine (a lost job, a full disk) is no result: the same work may succeed.
    """
    if status.state == "ok":
        return 3
    infra = status.code in CODES and CODES[status.code].family == "infra"
    return 2 if status.state in ("invalid", "failed") and not infra else 1


def kept(status: Status) -> bool:
    """Return True when a resumed run does not measure the point again."""
    return rank(status) >= 2


def best(records: Iterable[PointRecord]) -> PointRecord:
    """Return the record that stands: ok before failed before nothing, then the newest attempt.

    Of two equal ones the first stands.
    """
    return max(records, key=lambda record: (rank(record.status), record.attempt.number))
