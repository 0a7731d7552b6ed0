"""Where the logs of a point are: of its server, client, evaluation, job, and of the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from infx.config.sites import Cluster
from infx.domain.errors import UsageError
from infx.domain.record import Attempt
from infx.job.result import FILE as RESULT
from infx.launch.executor import Order
from infx.launch.executors import transport_to
from infx.launch.slurm.evidence import Evidence
from infx.launch.slurm.script import TASKS
from infx.launch.slurm.submission import BATCHES
from infx.store import PointRow, RunRow, Store, attempt_dir, holder, read_run

__all__ = ["Kind", "Log", "find_log"]

Kind = Literal["", "server", "client", "eval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One log. ``fetch`` brings what is new of it here, where the cluster's folder is another;
    ``grows`` asks whether its job may still write: nobody has seen its end, and somebody runs it.
    """

    path: Path
    fetch: Callable[[], None]
    grows: Callable[[], bool]


def find_log(
    store: Store, run: RunRow, point: PointRow, kind: Kind, cluster: Callable[[str], Cluster]
) -> Log:
    """Return the log of that kind of the point's newest attempt; without a kind the deepest one
    that the attempt got to. ``cluster`` finds a cluster by its name.

    Raises UsageError ``unknown-point`` when there is none yet, InfraError as transports do.
    """
    run_dir = Path(run.folder)
    job = next(j for j in read_run(run_dir)[1].jobs if j.job_id == point.job_id)
    attempts = [a for a in store.attempts(run.run_id) if a.job_id == point.job_id]
    if not attempts:
        raise UsageError("unknown-point", f"{point.label} has no attempt yet, so no log")
    attempt = max(attempts, key=lambda a: a.number)
    folder = attempt_dir(run_dir, job, attempt.number)
    order = Order(attempt=attempt, job=job, folder=folder)
    fetch = _fetcher(order, cluster) if attempt.batch and not attempt.ended_s else _nothing
    fetch()
    path = _first(folder, point.label, kind, run_dir, attempt)

    def grows() -> bool:
        if (folder / RESULT).exists() or not (attempt.batch or holder(run_dir)):
            return False
        open_ = store.attempts(run.run_id, open_only=True)
        return attempt.unique_name in {a.unique_name for a in open_}

    return Log(path=path, fetch=fetch, grows=grows)


def _fetcher(order: Order, cluster: Callable[[str], Cluster]) -> Callable[[], None]:
    site = cluster(order.job.cluster)
    if site.slurm is None or not site.slurm.ssh:
        return _nothing
    files = Evidence(transport_to(site), site.slurm.folder)
    return lambda: files.fetch([order], [order])


def _nothing() -> None:
    pass


def _first(folder: Path, label: str, kind: Kind, run_dir: Path, attempt: Attempt) -> Path:
    point = folder / "points" / label
    logs = {
        "eval": point / "lm-eval" / "lm-eval.log",
        "client": point / "aiperf" / "aiperf.log",
        "server": folder / "server.log",
        "job": folder / "infx.log",
    }
    wanted = [logs[kind]] if kind else [*logs.values(), *_scheduler_logs(folder, run_dir, attempt)]
    found = next((path for path in wanted if path.is_file()), None)
    if found is None:
        raise UsageError("unknown-point", f"{label} has no such log yet: {wanted[0]}")
    return found


def _scheduler_logs(folder: Path, run_dir: Path, attempt: Attempt) -> list[Path]:
    """Return what the scheduler itself wrote: all there is of a job that could not start."""
    batch = run_dir / BATCHES / attempt.batch
    if not attempt.batch or not (batch / TASKS).is_file():
        return []
    pattern = "*.log" if attempt.task is None else f"*_{attempt.task}.log"
    return sorted(batch.glob(pattern), reverse=True)
