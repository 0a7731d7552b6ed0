"""The command that cancels attempts: by name, or by ids of that name where others go on. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from shlex import quote

from infx.launch.executor import Order
from infx.launch.slurm.watch import key_of

__all__ = ["cancel_script"]


def cancel_script(orders: Sequence[Order], held: Collection[Order]) -> str:
    """Return POSIX sh that cancels ``orders`` and nothing else of what is ``held``; "" for none.

    A task whose id is not known (yet) cannot be cancelled while others of its array go on.
    """
    groups: dict[str, list[Order]] = {}
    for order in orders:
        groups.setdefault(key_of(order)[0], []).append(order)
    names = {order.name for order in orders}
    mixed = {key_of(order)[0] for order in held if order.name not in names}
    lines = [line for name, group in groups.items() if (line := _line(name, group, name in mixed))]
    return "\n".join(["user=$(id -un)", *lines, ""]) if lines else ""


def _line(name: str, group: Sequence[Order], mixed: bool) -> str:
    ids = [order.attempt.scheduler_id for order in group if order.attempt.scheduler_id]
    if mixed and not ids:
        return ""
    some = " ".join(map(quote, ids)) if mixed else ""
    return f'scancel --user="$user" --name={quote(name)} {some}'.rstrip()
