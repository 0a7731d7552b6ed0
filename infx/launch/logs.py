"""Where the logs of a point are: of its server, client, evaluation, job, and of the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from infx.config.sites import Cluster
from infx.domain.errors import UsageError
from infx.domain.record import Attempt
from infx.job.result import FILE as RESULT
from infx.launch.executor import Order
from infx.launch.executors import transport_to
from infx.launch.slurm.evidence import Files
from infx.launch.slurm.script import TASKS
from infx.launch.slurm.submission import BATCHES
from infx.launch.srt.outputs import Outputs
from infx.launch.srt.outputs import logs as srt_logs
from infx.store import PointRow, RunRow, Store, attempt_dir, holder, read_run

__all__ = ["Kind", "Log", "find_log"]

Kind = Literal["", "server", "client", "eval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One log. ``newest`` brings what is new of it here, where the cluster's folder is another, and
    returns its path, or that of a deeper log which the attempt has begun since; ``grows`` asks
    whether its job may still write: nobody has seen its end, and somebody runs it.
    """

    path: Path
    newest: Callable[[], Path]
    grows: Callable[[], bool]


def find_log(
    store: Store, run: RunRow, point: PointRow, kind: Kind, cluster: Callable[[str], Cluster]
) -> Log:
    """Return the log of that kind of the point's newest attempt that has one; without a kind the
    deepest one that the attempt got to. ``cluster`` finds a cluster by its name.

    Raises UsageError ``unknown-point`` when there is none yet, InfraError as transports do.
    """
    run_dir = Path(run.folder)
    job = next(j for j in read_run(run_dir)[1].jobs if j.job_id == point.job_id)
    attempts = [a for a in store.attempts(run.run_id) if a.job_id == point.job_id]
    for attempt in sorted(attempts, key=lambda a: -a.number):
        folder = attempt_dir(run_dir, job, attempt.number)
        order = Order(attempt=attempt, job=job, folder=folder)
        fetch = _fetcher(order, cluster) if attempt.batch and not attempt.ended_s else _nothing
        places = partial(_places, order, run_dir, point.label, kind)
        fetch()
        if path := _deepest(places()):
            newest = partial(_newest, fetch, places, path)
            return Log(path=path, newest=newest, grows=partial(_grows, store, order, run_dir))
    what = f"{kind} log" if kind else "log"
    tried = f" in {len(attempts)} attempts" if len(attempts) > 1 else ""
    raise UsageError("unknown-point", f"{point.label} has no {what} yet{tried}")


def _newest(fetch: Callable[[], None], places: Callable[[], list[Path]], known: Path) -> Path:
    fetch()
    return _deepest(places()) or known


def _deepest(places: list[Path]) -> Path | None:
    return next((path for path in places if path.is_file()), None)


def _grows(store: Store, order: Order, run_dir: Path) -> bool:
    attempt = order.attempt
    if (order.folder / RESULT).exists() or not (attempt.batch or holder(run_dir)):
        return False
    open_ = store.attempts(attempt.run_id, open_only=True)
    return attempt.unique_name in {a.unique_name for a in open_}


def _fetcher(order: Order, cluster: Callable[[str], Cluster]) -> Callable[[], None]:
    site = cluster(order.job.cluster)
    if site.srt and site.srt.ssh:
        outputs = Outputs(transport_to(site), site.srt.folder)
        return lambda: outputs.fetch(order)
    if site.slurm is None or not site.slurm.ssh:
        return _nothing
    files = Files(transport_to(site), site.slurm.folder)
    return lambda: files.fetch([order], [order])


def _nothing() -> None:
    pass


def _places(order: Order, run_dir: Path, label: str, kind: Kind) -> list[Path]:
    point = order.folder / "points" / label
    logs = {
        "eval": point / "lm-eval" / "lm-eval.log",
        "client": point / "aiperf" / "aiperf.log",
        "server": order.folder / "server.log",
        "job": order.folder / "infx.log",
    }
    of_srt = srt_logs(order, label)
    if kind:
        return [logs[kind], *of_srt.get(kind, ())]
    more = [path for paths in of_srt.values() for path in paths]
    return [*logs.values(), *more, *_scheduler_logs(run_dir, order.attempt)]


def _scheduler_logs(run_dir: Path, attempt: Attempt) -> list[Path]:
    """Return what the scheduler itself wrote: all there is of a job that could not start."""
    batch = run_dir / BATCHES / attempt.batch
    if not attempt.batch or not (batch / TASKS).is_file():
        return []
    pattern = "*.log" if attempt.task is None else f"*_{attempt.task}.log"
    return sorted(batch.glob(pattern), reverse=True)
