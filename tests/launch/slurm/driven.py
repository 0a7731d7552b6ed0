"""A sweep of stand-in jobs in a process of its own, for tests that watch, signal or kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from infx.domain.plan import Job
from infx.domain.record import Attempt
from infx.store import FILE, Store
from tests.launch.lab_fixture import Lab, until
from tests.launch.slurm import bench

ROOT = Path(__file__).parents[3]
LIMIT_S = 120.0


class Driven:
    """``python -m tests.launch.slurm.bench`` of one results folder, started as often as one likes.

    ``programs`` is a folder that comes first in its PATH.
    """

    def __init__(self, lab: Lab, results: Path, programs: Path | None = None) -> None:
        self.lab, self.results, self._programs = lab, results, programs
        self._log = results / "said.txt"
        self._log.touch()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *words: str) -> None:
        """Make or resume the run; ``words`` are arguments of bench."""
        environment = self.lab.environment
        if self._programs:
            environment["PATH"] = f"{self._programs}:{environment['PATH']}"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.launch.slurm.bench", str(self.results), *words],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def ended(self, limit_s: float = LIMIT_S) -> int:
        """Wait for the end; return the exit code (-9 when it was killed)."""
        assert self.process
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"after {limit_s} s: {self.said[-3000:]}") from None

    def finish(self, *words: str, limit_s: float = LIMIT_S) -> None:
        """Start it and wait for its good end."""
        self.start(*words)
        assert self.ended(limit_s) == 0, self.said[-3000:]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, and to it alone."""
        assert self.process
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL, if it still runs."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def said(self) -> str:
        """All that the processes of this folder wrote."""
        return self._log.read_text(errors="replace")

    def hear(self, text: str, limit_s: float = LIMIT_S, times: int = 1) -> None:
        """Wait until it has said ``text`` so often."""

        self._await(lambda: self.said.count(text) >= times, limit_s, text)

    def _await(self, done: Callable[[], bool], limit_s: float, what: str) -> None:
        def seen() -> bool:
            alive = self.process and self.process.poll() is None
            found = done()
            assert found or alive, f"it ended without {what}: {self.said[-3000:]}"
            return found

        until(seen, limit_s, lambda: f"no {what}: {self.said[-3000:]}")

    def attempts(self) -> list[Attempt]:
        """Return the run's attempts in order of intent; none before there is a run."""
        if not (self.results / FILE).exists():
            return []
        with Store(self.results / FILE) as store:
            return [a for run in store.runs() for a in store.attempts(run.run_id)]

    def launched(self, count: int, limit_s: float = LIMIT_S) -> list[Attempt]:
        """Wait until so many attempts have the scheduler's id; return them."""

        def ids() -> list[Attempt]:
            return [attempt for attempt in self.attempts() if attempt.scheduler_id]

        self._await(lambda: len(ids()) >= count, limit_s, f"{count} launched")
        return ids()

    def running(self, count: int = 1, limit_s: float = LIMIT_S) -> list[Path]:
        """Wait until so many attempts have been claimed by a job; return their folders."""

        def claims() -> list[Path]:
            return sorted(self.results.glob("runs/*/jobs/*/a*/claim"))

        self._await(lambda: len(claims()) >= count, limit_s, f"{count} running")
        return [claim.parent for claim in claims()]

    def queue(self) -> Counter[str]:
        """Return how often each name of this run's is in the queue, as ended jobs too."""
        [run] = [path.name for path in self.results.glob("runs/*")] or [""]
        names = self.lab.run("squeue -h -r -t all -o %j").split()
        return Counter(name for name in names if run and run in name)

    def check(self, *states: str, measured: int = 1) -> None:
        """Every point has its end, was measured so often, and nothing is open or goes on."""
        found = bench.states(self.results)
        assert Counter(found) == Counter(states), self.said[-3000:]
        assert not [a for a in self.attempts() if not a.ended_s], self.said[-3000:]
        counts = bench.measured(self.results)
        assert len(counts) == found.count("ok"), (counts, found)
        assert set(counts.values()) <= {measured}, (counts, self.said[-3000:])
        [run] = [path.name for path in self.results.glob("runs/*")]
        left = self.lab.run("squeue -h -r -o '%j %T %r'").splitlines()
        assert not [row for row in left if run in row]


@contextmanager
def driven(
    lab: Lab, results: Path, *jobs: Job, programs: Path | None = None, **site: Any
) -> Iterator[Driven]:
    """Prepare a sweep of ``jobs`` on a lab; whatever of it runs is ended after the block."""
    bench.prepare(results, *jobs, **site)
    made = Driven(lab, results, programs)
    try:
        yield made
    finally:
        made.kill()
        for run in results.glob("runs/*"):
            lab.ask(
                f"squeue -h -r -o '%i %j' | grep {run.name} | cut -d' ' -f1 | xargs -r scancel -b"
                " -s KILL"
            )


def program(folder: Path, name: str, script: str) -> Path:
    """Write a program ``name`` into a folder that comes first in a PATH; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/bash\n{script}\n")
    (folder / name).chmod(0o755)
    return folder
