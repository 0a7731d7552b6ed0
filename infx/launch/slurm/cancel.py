"""Cancelling attempts, and nothing beside them: in order, and at once where that fails; on request,
and those that can never start."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from infx.domain.errors import InfraError
from infx.launch.executor import JobState, Order
from infx.launch.slurm.watch import key_of, takes_turns
from infx.launch.transport import Transport

__all__ = ["Cancels", "Hopeless", "cancel_script"]

LOST = ("Unable to contact", "timed out", "Zero Bytes", "connection failure")
"""What Slurm's commands say when nobody knows whether the controller heard them."""

STOP_S = 60.0
"""A job that was asked to stop ends its client and its server, and writes its record, in 20 s."""

GOING = "PENDING,RUNNING,SUSPENDED,CONFIGURING"

# In 22.05 a filter (--user, --name, --state) with the id of one waiting task cancels its whole
# array: a part of an array is looked up, and cancelled by its bare ids.
_PICK = """\
user=$(id -un)
pick() { squeue --me -h -r -t "$1" --name="$2" -o '%K %i' | grep -E "^($3) " | cut -d' ' -f2; }
"""


@dataclass(frozen=True, slots=True)
class _Due:
    """``when_s`` (monotonic) 0: as soon as it goes, since no command has arrived yet."""

    order: Order
    when_s: float
    at_once: bool


class Cancels:
    """What is to be cancelled until it has ended: a command may get lost, a job may be deaf.

    ``tell`` is told what people should know.
    """

    def __init__(self, transport: Transport, tell: Callable[[str], None]) -> None:
        self._transport, self._tell = transport, tell
        self._due: dict[str, _Due] = {}

    def want(self, order: Order) -> None:
        """Have an order cancelled at once at the next `again`, unless it was done lately."""
        self._due.setdefault(order.name, _Due(order, 0.0, True))

    def send(self, orders: Sequence[Order], held: Collection[Order], *, at_once: bool) -> None:
        """Cancel ``orders`` and nothing else of what is ``held``.

        One that is asked in order and does not end in a minute is cancelled at once then.
        """
        if not orders:
            return
        try:
            said = self._transport.run(cancel_script(orders, held, at_once=at_once)).err
        except InfraError as error:
            said = f"{LOST[0]} the cluster: {error}"
        when_s, how = time.monotonic() + STOP_S, True
        if any(text in said for text in LOST):
            when_s, how = 0.0, at_once
            self._tell(f"cannot cancel yet: {said.strip()}")
        self._due |= {order.name: _Due(order, when_s, how) for order in orders}

    def again(self, held: Collection[Order]) -> None:
        """Cancel what is due. What has ended for infx (a lost job) is due until it was heard."""
        open_, now_s = {order.name for order in held}, time.monotonic()
        self._due = {n: due for n, due in self._due.items() if n in open_ or not due.when_s}
        due = [due for due in self._due.values() if due.when_s <= now_s]
        for at_once in (False, True):
            orders = [each.order for each in due if each.at_once is at_once]
            self.send(orders, held, at_once=at_once)


class Hopeless:
    """Attempts that Slurm says can never start: cancelled when it says so twice running, since a
    first reason may be stale."""

    def __init__(self, cancels: Cancels) -> None:
        self._cancels = cancels
        self._seen: dict[str, JobState] = {}

    def settled(self, order: Order, state: JobState) -> JobState:
        """Return where ``order`` is: one that was cancelled here ends as what kept it waiting."""
        if state.phase == "queued" and state.code:
            if order.name in self._seen:
                self._cancels.want(order)
            self._seen[order.name] = state
            return replace(state, code="")
        if state.phase in ("queued", "running"):
            self._seen.pop(order.name, None)
        reason = self._seen.get(order.name)
        if reason and state.code == "cancelled-outside":
            return replace(state, code=reason.code, sentence=reason.sentence)
        return state


def cancel_script(orders: Sequence[Order], held: Collection[Order], *, at_once: bool) -> str:
    """Return POSIX sh that cancels ``orders`` and nothing else of what is ``held``, but those that
    take turns with one of them.

    Slurm's own way (``at_once``) sends TERM to every process of a job: the client dies before it
    can write its summary. Asked in order, only the batch process, which is the orchestrator, is
    told.
    """
    groups: dict[str, list[Order]] = {}
    for order in orders:
        groups.setdefault(key_of(order)[0], []).append(order)
    names = {order.name for order in orders}
    arrays = (order for order in held if not takes_turns(order))  # else they are one job
    mixed = {key_of(order)[0] for order in arrays if order.name not in names}
    hows = [(GOING, "")] if at_once else [("PENDING", ""), ("RUNNING", " --batch --signal=TERM")]
    lines = [
        _part(name, group, states, how) if name in mixed else _whole(name, states, how)
        for name, group in groups.items()
        for states, how in hows
    ]
    return _PICK + "\n".join([*lines, ""])


def _whole(name: str, states: str, how: str) -> str:
    state = "" if states == GOING else f" --state={states}"
    return f'scancel --user="$user" --name={quote(name)}{state}{how}'


def _part(name: str, group: Sequence[Order], states: str, how: str) -> str:
    tasks = "|".join(str(key_of(order)[1]) for order in group)
    ids = f"ids=$(pick {states} {quote(name)} {quote(tasks)})"
    return f'{ids}; [ -z "$ids" ] || scancel{how} $ids'
