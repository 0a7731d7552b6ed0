"""Cancelling attempts by name, or by ids of that name: in order, and at once where that fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from shlex import quote

from infx.domain.errors import InfraError
from infx.launch.executor import Order
from infx.launch.slurm.watch import key_of
from infx.launch.transport import Transport

__all__ = ["Cancels", "cancel_script"]

NO_CONTACT = "Unable to contact"
"""What Slurm's commands say of a controller that is not there; a cancel that met it got lost."""

STOP_S = 60.0
"""A job that was asked to stop ends its client and its server, and writes its record, in 20 s."""

SCANCEL = 'scancel --user="$user"'


class Cancels:
    """What is to be cancelled until it has ended: a command may get lost, a job may be deaf.

    ``tell`` is told what people should know.
    """

    def __init__(self, transport: Transport, tell: Callable[[str], None]) -> None:
        self._transport, self._tell = transport, tell
        self._due: dict[str, tuple[float, bool]] = {}

    def want(self, order: Order) -> None:
        """Have an order cancelled at once at the next `again`, unless it was done lately."""
        self._due.setdefault(order.name, (0.0, True))

    def send(self, orders: Sequence[Order], held: Collection[Order], *, at_once: bool) -> None:
        """Cancel ``orders`` and nothing else of what is ``held``.

        One that is asked in order and does not end in a minute is cancelled at once then.
        """
        script = cancel_script(orders, held, at_once=at_once)
        if not script:
            return
        try:
            said = self._transport.run(script).err
        except InfraError as error:
            said = f"{NO_CONTACT} the cluster: {error}"
        due = (time.monotonic() + STOP_S, True)
        if NO_CONTACT in said:
            due = (0.0, at_once)
            self._tell(f"cannot cancel yet: {said.strip()}")
        self._due |= {order.name: due for order in orders}

    def again(self, open_: Sequence[Order], held: Collection[Order]) -> None:
        """Cancel what is due of the orders that are still open."""
        for at_once in (False, True):
            self.send([o for o in open_ if self._is_due(o, at_once)], held, at_once=at_once)

    def _is_due(self, order: Order, at_once: bool) -> bool:
        due_s, how = self._due.get(order.name, (float("inf"), False))
        return how is at_once and due_s <= time.monotonic()


def cancel_script(orders: Sequence[Order], held: Collection[Order], *, at_once: bool) -> str:
    """Return POSIX sh that cancels ``orders`` and nothing else of what is ``held``; "" for none.

    Slurm's own way (``at_once``) sends TERM to every process of a job: the client dies before it
    can write its summary. Asked in order, only the batch process, which is the orchestrator, is
    told. A task whose id is not known (yet) cannot be cancelled while others of its array go on.
    """
    groups: dict[str, list[Order]] = {}
    for order in orders:
        groups.setdefault(key_of(order)[0], []).append(order)
    names = {order.name for order in orders}
    mixed = {key_of(order)[0] for order in held if order.name not in names}
    hows = [""] if at_once else ["--state=PENDING", "--state=RUNNING --batch --signal=TERM"]
    chosen = [c for name, group in groups.items() if (c := _chosen(name, group, name in mixed))]
    lines = [" ".join(filter(None, [SCANCEL, how, c])) for c in chosen for how in hows]
    return "\n".join(["user=$(id -un)", *lines, ""]) if lines else ""


def _chosen(name: str, group: Sequence[Order], mixed: bool) -> str:
    ids = [order.attempt.scheduler_id for order in group if order.attempt.scheduler_id]
    if mixed and not ids:
        return ""
    some = " ".join(map(quote, ids)) if mixed else ""
    return f"--name={quote(name)} {some}".rstrip()
