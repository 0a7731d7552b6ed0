"""What an attempt itself left: brought there, fetched from there, read here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from infx.domain.errors import ConfigError
from infx.job import claim
from infx.job.result import FILE as RESULT
from infx.job.result import Result, damage, read_result
from infx.launch.events import FILE as EVENTS
from infx.launch.executor import Order
from infx.launch.slurm.queue import Row
from infx.launch.slurm.states import phase
from infx.launch.slurm.submission import BATCHES
from infx.launch.slurm.verdict import Sight, alive
from infx.launch.slurm.watch import key_of, takes_turns
from infx.launch.transport import Transport
from infx.store import writing

__all__ = ["Files", "has_result", "result", "run_dir_of", "sight"]

GROWING = (EVENTS, "infx.log", "server.log")
SMALL = (EVENTS, RESULT, claim.FILE)
"""What is fetched of an attempt while it runs."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files of attempts on both sides. ``folder`` is the site's ("": folders are shared).

    Paths there: ``folder``/runs/RUN, with the same names below as here.
    """

    transport: Transport
    folder: str

    @property
    def at_once(self) -> int | None:
        """Ended attempts whose files are fetched in one look (None: all, they are here): each may
        hold hundreds of MB."""
        return 8 if self.transport.host else None

    def there(self, run_dir: Path) -> str:
        """Return where a run's folder is on the cluster."""
        return (
            f"{self.folder.rstrip('/')}/runs/{run_dir.name}"
            if self.transport.host
            else str(run_dir)
        )

    def bring(self, orders: Sequence[Order]) -> None:
        """Bring the attempts' and their batches' files there. Raises InfraError."""
        run_dir = run_dir_of(orders[0])
        folders = [str(order.folder.relative_to(run_dir)) for order in orders]
        batches = dict.fromkeys(f"{BATCHES}/{order.attempt.batch}" for order in orders)
        if self.transport.host:
            self.transport.push(run_dir, self.there(run_dir), [*folders, *batches])

    def fetch(self, orders: Sequence[Order], ended: Sequence[Order] = ()) -> None:
        """Fetch what running attempts say, and all that ended ones left. Raises InfraError."""
        if not self.transport.host or not orders:
            return
        run_dir = run_dir_of(orders[0])
        names = [f"{o.folder.relative_to(run_dir)}/{name}" for o in orders for name in SMALL]
        names += [str(order.folder.relative_to(run_dir)) for order in ended]
        names += [log for order in ended if (log := _scheduler_log(order))]
        self.transport.pull(self.there(run_dir), run_dir, names)

    def give_up(self, order: Order) -> bool:
        """Return True when the attempt can surely not start any more: no job has claimed it.

        An infx that was killed may not have made its folder. Raises InfraError.
        """
        if not self.transport.host:
            with writing(order.folder):
                order.folder.mkdir(parents=True, exist_ok=True)
            return claim.abandon(order.folder)
        run_dir = run_dir_of(order)
        folder = f"{self.there(run_dir)}/{order.folder.relative_to(run_dir)}"
        script = f"mkdir -p {quote(folder)}\n{claim.abandon_script(folder)}"
        return self.transport.run(script).code == 0


def _scheduler_log(order: Order) -> str:
    """Return where a job that could not start says why; "" where its id is not known."""
    known = order.attempt.scheduler_id
    return f"{BATCHES}/{order.attempt.batch}/{known}.log" if known else ""


def run_dir_of(order: Order) -> Path:
    """Return the run's folder, in which the attempt is at jobs/JOB/aN."""
    return order.folder.parents[2]


def sight(order: Order, row: Row | None, patience_s: float, others: Iterable[Order] = ()) -> Sight:
    """Return what is to be seen of an attempt; of one that waits its files say nothing.

    ``others`` are open attempts, among which are those of its job that it takes turns with.
    """
    in_turn = takes_turns(order)
    if row is not None and phase(row.state) == "queued":
        return Sight(row=row, result=None, in_turn=in_turn)
    found = result(order) if has_result(order) else None
    if alive(row) and not in_turn:
        return Sight(row=row, result=found)
    one_job = [order, *(o for o in others if in_turn and key_of(o) == key_of(order))]
    quiet = min(map(quiet_s, one_job)) > patience_s
    return Sight(
        row=row,
        result=found,
        claimed=claimed(order),
        doubled=not in_turn and doubled(order, row),
        quiet=quiet,
        in_turn=in_turn,
    )


def result(order: Order) -> Result | None:
    """Return the job's own record, whole and with all that it lists; else None."""
    try:
        found = read_result(order.folder)
    except (ConfigError, OSError):  # half fetched, or a stale handle of a shared disk
        return None
    return None if found is None or damage(order.folder, found) else found


def has_result(order: Order) -> bool:
    """Return True when the job has written its record. The folder is listed: NFS remembers for a
    while that a file was not there, and forgets it when it lists."""
    with suppress(OSError):
        return RESULT in os.listdir(order.folder)  # noqa: PTH208
    return False


def claimed(order: Order) -> bool:
    """Return True when a job has started: the claim may be infx's own, of an attempt given up."""
    holder = claim.holder(order.folder)
    return holder is not None and holder.by != "infx"


def doubled(order: Order, row: Row | None) -> bool:
    """Return True when another job than the row's has the attempt."""
    holder = claim.holder(order.folder)
    known = holder.scheduler_id if holder else ""
    return row is not None and known not in ("", row.shown_id)


def quiet_s(order: Order) -> float:
    """Return the seconds since the attempt last wrote anything; infinity when it never did."""
    times = []
    for name in GROWING:
        with suppress(OSError):
            times.append((order.folder / name).stat().st_mtime)
    return time.time() - max(times) if times else float("inf")
