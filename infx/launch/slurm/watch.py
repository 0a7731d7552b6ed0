"""One question to the scheduler for all open attempts, and not often."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from shlex import quote

from infx.domain.errors import InfraError
from infx.launch.executor import Order
from infx.launch.slurm.queue import (
    SACCT_FIELDS,
    SQUEUE_FORMAT,
    Row,
    choose,
    parse_jobs,
    parse_sacct,
    parse_squeue,
)
from infx.launch.slurm.states import DROPPED, UNTOLD, phase
from infx.launch.transport import Transport

__all__ = ["Key", "Pace", "Silence", "key_of", "look", "takes_turns"]

Key = tuple[str, int | None]
"""What names an attempt in Slurm's answers: its batch and its number in that array."""

MOST_NAMES = 500
"""More names than this are not listed: every job of the user is asked for instead."""


CURT = frozenset({"FAILED", "CANCELLED"})
"""Ends of which squeue tells less than there is to know."""


class Pace:
    """When to ask: 10 s after the last time, growing to 60 s while nothing changes, with jitter."""

    def __init__(
        self,
        least_s: float = 10.0,
        most_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._least_s, self._most_s, self._clock = least_s, most_s, clock
        self._wait_s, self._last = least_s, float("-inf")

    def due(self) -> bool:
        """Return True when it is time; the caller asks then and tells with `asked`."""
        return self._clock() - self._last >= self._wait_s

    def asked(self, *, changed: bool) -> None:
        """Note a question and whether its answer was news."""
        grown = self._least_s if changed else min(self._most_s, self._wait_s * 1.5)
        self._wait_s = max(self._least_s, grown * random.uniform(0.9, 1.1))
        self._last = self._clock()

    def hurry(self) -> None:
        """Ask as soon as the least wait is over: something has happened."""
        self._wait_s = self._least_s


class Silence:
    """Says once that the scheduler of cluster ``name`` does not answer, and once that it does."""

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self._name, self._tell, self._silent = name, tell, False

    def heard(self, rows: Mapping[Key, Row] | None) -> None:
        """Note what `look` returned."""
        silent = rows is None or any(row.state == UNTOLD for row in rows.values())
        if silent != self._silent:
            self._silent = silent
            how = "does not answer: nothing is concluded from that" if silent else "answers again"
            self._tell(f"the scheduler of {self._name} {how}")


def key_of(order: Order) -> Key:
    """Return how Slurm's answers name an attempt."""
    return order.attempt.batch or order.name, order.attempt.task


def takes_turns(order: Order) -> bool:
    """Return True when other attempts run in the same job, before it or after it."""
    attempt = order.attempt
    return attempt.task is None and attempt.batch not in ("", attempt.unique_name)


def look(
    transport: Transport, orders: Sequence[Order], *, accounting: bool
) -> Mapping[Key, Row] | None:
    """Return Slurm's row of each attempt that it knows; None when it did not answer.

    Accounting is asked only for what is not in the queue any more, failed or was cancelled (squeue
    tells neither exit code nor by whom), and believed only about ends: it shows jobs as running for
    ever that a crashed controller has forgotten. Without its answer scontrol tells the exit codes,
    and what is not in the queue has the state UNTOLD; DROPPED is a task that is not, while others
    of its array are.
    """
    keys = {key_of(order) for order in orders}
    answer = _run(transport, _squeue({name for name, _ in keys}))
    if answer is None:
        return None
    found = parse_squeue(answer)
    rows = choose(found)
    gone = keys - rows.keys()
    curt = {key: rows[key].state for key in keys & rows.keys() if rows[key].state in CURT}
    books = None
    if accounting and (gone or curt):
        books = _run(transport, _sacct({name for name, _ in gone | curt.keys()}, orders))
    if books is not None:
        told = parse_sacct(books)
    else:
        failed = [key for key, state in curt.items() if state == "FAILED"]
        told = _codes(transport, [rows[key].shown_id for key in failed])
    rows = choose([*found, *(row for row in told if phase(row.state) == "ended")])
    silent = accounting and books is None
    arrays = {row.name for row in found}
    left = gone if silent else {key for key in gone if key[0] in arrays}
    unseen = {key: _unseen(key, UNTOLD if silent else DROPPED) for key in left}
    return unseen | {key: row for key, row in rows.items() if key in keys}


def _codes(transport: Transport, ids: Sequence[str]) -> list[Row]:
    return parse_jobs(_run(transport, _scontrol(ids)) or "") if ids else []


def _unseen(key: Key, state: str) -> Row:
    return Row(name=key[0], job_id="", task=None, state=state, source="sacct")


def _run(transport: Transport, command: str) -> str | None:
    try:
        answer = transport.run(f"export LC_ALL=C TZ=UTC\n{command}\n")
    except InfraError:
        return None
    return answer.out if answer.code == 0 else None


def _squeue(names: Collection[str]) -> str:
    return f"squeue --me -h -r -t all -o {quote(SQUEUE_FORMAT)}{_only(names)}"


def _sacct(names: Collection[str], orders: Sequence[Order]) -> str:
    """Without a start sacct looks at today only; an hour more is for clocks that differ."""
    known = [o.attempt.started_s for o in orders if o.attempt.started_s]
    start_s = min(known, default=time.time()) - 3600
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(start_s))
    return f"sacct -X -P -n -D -S {start} -o {SACCT_FIELDS}{_only(names)}"


def _scontrol(ids: Sequence[str]) -> str:
    listed = " ".join(map(quote, ids[:MOST_NAMES]))
    return f"for i in {listed}; do scontrol -o show job $i; done; true"


def _only(names: Collection[str]) -> str:
    return f" --name={','.join(sorted(names))}" if len(names) <= MOST_NAMES else ""
