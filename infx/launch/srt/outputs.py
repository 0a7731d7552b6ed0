"""The files of an attempt that srt runs: brought there, fetched from there, found by listing.

An attempt's folder holds ``srt.yaml``, the recipe, and ``srt``, which srtctl is told to put outputs
below: srt/<id>/ with config.yaml, <id>.json, and ``logs`` (sweep_<id>.log, benchmark.out,
workers/*.out, and what the client wrote; core/log_layout.py of NVIDIA/srt-slurm).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from infx.domain.artifacts import RECORDS, SUMMARY
from infx.job.log_lines import exception_line, fault_line
from infx.launch.executor import Order
from infx.launch.slurm.evidence import Files, run_dir_of
from infx.launch.srt.client import EVIDENCE
from infx.launch.transport import Transport
from infx.store import writing

__all__ = [
    "BENCHMARK_LOG",
    "OUTPUT",
    "RECIPE",
    "Outputs",
    "exports",
    "job_folder",
    "logs",
    "quiet_s",
    "useful_line",
    "worker_logs",
]

RECIPE = "srt.yaml"
OUTPUT = "srt"
LOGS = "logs"
BENCHMARK_LOG = f"{LOGS}/benchmark.out"

# A file in the place of the folder keeps a job that surfaces late from running: Slurm cannot open
# its log there. Not given up where a job has put something below the folder already.
_GIVE_UP = """\
mkdir -p {folder} && cd {folder} || exit 1
[ -f {output} ] && exit 0
rmdir {output} 2>/dev/null || [ ! -e {output} ] || exit 1
(set -C; : >{output}) 2>/dev/null
"""


@dataclass(frozen=True, slots=True)
class Outputs:
    """Folders of attempts on both sides; ``folder`` is the site's ("": they are shared)."""

    transport: Transport
    folder: str

    def there(self, order: Order) -> str:
        """Return where the attempt's folder is on the cluster."""
        run_dir = run_dir_of(order)
        root = Files(self.transport, self.folder).there(run_dir)
        return f"{root}/{order.folder.relative_to(run_dir)}"

    def bring(self, order: Order, recipe: str) -> None:
        """Write the recipe and the empty folder of outputs, and bring both there.

        Raises InfraError: ``disk-full``, ``results-unwritable``, and as the transport does.
        """
        with writing(order.folder):
            (order.folder / OUTPUT).mkdir(exist_ok=True)
            (order.folder / RECIPE).write_text(recipe)
        if self.transport.host:
            self.transport.push(order.folder, self.there(order), [RECIPE, OUTPUT])

    def fetch(self, order: Order) -> None:
        """Fetch all outputs of an attempt. Raises InfraError."""
        if self.transport.host:
            self.transport.pull(self.there(order), order.folder, [OUTPUT])

    def give_up(self, order: Order) -> bool:
        """Return True when no job of the attempt can run any more. Raises InfraError."""
        script = _GIVE_UP.format(folder=quote(self.there(order)), output=OUTPUT)
        return self.transport.run(script).code == 0


def job_folder(order: Order) -> Path | None:
    """Return the folder of the attempt's job: of its id, else the newest; None without one.

    The folder is listed: NFS remembers for a while that a name was not there.
    """
    with suppress(OSError):
        found = {entry.name: Path(entry) for entry in os.scandir(order.folder / OUTPUT)}
        jobs = {name: path for name, path in found.items() if name.isdecimal() and path.is_dir()}
        return jobs.get(order.attempt.scheduler_id) or jobs[max(jobs, key=int)] if jobs else None
    return None


def exports(job: Path) -> list[Path]:
    """Return every folder below a job's that aiperf wrote an export into, wherever it is."""
    found = (Path(place) for place, _, names in os.walk(job) if {SUMMARY, RECORDS} & {*names})
    return sorted(found)


def worker_logs(job: Path) -> list[Path]:
    """Return the logs of the processes that served: all but the client's and the job's own."""
    named = (path for path in _files(job / LOGS) if path.suffix in (".out", ".err"))
    return sorted(path for path in named if path != job / BENCHMARK_LOG)


def logs(order: Order, label: str) -> dict[str, list[Path]]:
    """Return where the logs of a point may be: ``client``, ``server``, ``job``; none before srt
    runs the attempt."""
    job = job_folder(order)
    if job is None:
        return {}
    return {
        "client": [job / LOGS / EVIDENCE / label / "aiperf.log"],
        "server": worker_logs(job),
        "job": [job / BENCHMARK_LOG, *sorted((job / LOGS).glob("sweep_*.log"))],
    }


def useful_line(job: Path) -> str:
    """Return the line that says why a job measured nothing: an engine's exception first, then what
    the client, an engine and srt's own log name as a fault; "" where none does."""
    workers, benchmark = worker_logs(job), job / BENCHMARK_LOG
    own = sorted((job / LOGS).glob("sweep_*.log"))
    lines = [exception_line(path) for path in workers]
    lines += [fault_line(path) for path in (benchmark, *workers, *own)]
    return next((line for line in lines if line), "")


def quiet_s(job: Path) -> float:
    """Return the seconds since anything below ``job`` was written; infinity for an empty one."""
    times = []
    for path in _files(job):
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return time.time() - max(times) if times else float("inf")


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(place, name) != folder / EVIDENCE]
        yield from (Path(place, name) for name in names)
