"""A real Slurm, as fixtures of every test below tests/launch.

``lab`` and ``accounting_lab`` are a session's own, each in its own folder; labs of several pytest
workers run side by side. ``fresh_folder`` is for a test that starts, breaks or ends a lab itself.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from infx.launch import lab as labs
from infx.launch.lab import daemons, packages, processes


@dataclass(frozen=True)
class Lab:
    """A lab that runs; ``conf`` is what SLURM_CONF must name."""

    folder: Path

    @property
    def conf(self) -> Path:
        return labs.slurm_conf(self.folder)

    @property
    def state(self) -> labs.LabState:
        return labs.existing(self.folder)

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))}
        return {**kept, "SLURM_CONF": str(self.conf), "PATH": packages.search_path()}

    def ask(self, script: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a shell script in /tmp as ``user`` (default: as the tests run)."""
        return subprocess.run(
            ["sh", "-c", script],
            env=self.environment,
            cwd="/tmp",
            user=user,
            extra_groups=[] if user else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def run(self, script: str, user: str | None = None) -> str:
        """Return what a script prints, which must end well."""
        answer = self.ask(script, user)
        assert answer.returncode == 0, f"{script}: {answer.stderr}{answer.stdout}"
        return answer.stdout.strip()

    def job(self, job_id: str) -> dict[str, str]:
        """Return the fields that scontrol shows of a job."""
        shown = self.run(f"scontrol -o show job {job_id}")
        return dict(re.findall(r"(\S+?)=(\S*)", shown))

    def await_job(self, job_id: str, *states: str, limit_s: float = 60.0) -> dict[str, str]:
        """Return a job's fields once its state is one of ``states`` (default: COMPLETED)."""
        wanted = states or ("COMPLETED",)
        until(lambda: self.job(job_id)["JobState"] in wanted, limit_s, lambda: self.job(job_id))
        return self.job(job_id)

    def pid(self, name: str) -> int:
        """Return the pid of ``slurmctld``, ``slurmdbd`` or ``slurmd-node2``; 0 for a dead one."""
        return self.state.pids[name]

    def kill(self, name: str) -> None:
        """End a daemon with SIGKILL, as a crash does."""
        processes.kill([self.pid(name)])

    def stop(self, name: str) -> None:
        """End a daemon in order."""
        daemons.stop(self.state.spec, [self._daemon(name)])

    def start(self, name: str) -> None:
        """Start a daemon that was stopped or killed."""
        daemons.start(self.state.spec, [self._daemon(name)])

    def restart(self, name: str) -> None:
        """Stop a daemon in order and start it."""
        self.stop(name)
        self.start(name)

    def _daemon(self, name: str) -> daemons.Daemon:
        roster = daemons.roster(self.state.spec, self.state.place)
        return next(daemon for daemon in roster if daemon.name == name)


def until(done: Callable[[], bool], limit_s: float, found: Callable[[], object]) -> None:
    """Wait until ``done``; fail with what was ``found`` after ``limit_s``."""
    deadline = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < deadline, f"after {limit_s} s: {found()}"
        time.sleep(0.05)


def need_slurm(*, accounting: bool = False) -> None:
    """Skip, or fail in CI, where Slurm is not installed."""
    wanted = packages.DAEMONS | packages.CLIENT | (packages.ACCOUNTING if accounting else {})
    if missing := packages.missing(wanted):
        sentence = f"no {', '.join(missing)}: {packages.apt_line(wanted)}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(sentence)


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder that all users can enter, with a name that leaves room for sockets."""
    parent = Path(tempfile.mkdtemp(prefix="infx-", dir="/tmp"))
    parent.chmod(0o755)
    try:
        yield parent / "lab"
    finally:
        labs.down(parent / "lab")
        shutil.rmtree(parent)


@contextmanager
def running(**spec: int) -> Iterator[Lab]:
    """A lab of its own; ``spec`` are fields of LabSpec."""
    need_slurm(accounting=bool(spec.get("accounting")))
    with short_folder() as folder:
        labs.up(labs.LabSpec(folder, **spec))  # type: ignore[arg-type]
        yield Lab(folder)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """4 nodes with 8 GPUs each, without accounting."""
    with running() as made:
        yield made


@pytest.fixture(scope="session")
def accounting_lab() -> Iterator[Lab]:
    """4 nodes with 8 GPUs each, with slurmdbd."""
    with running(accounting=True) as made:
        yield made


@pytest.fixture
def fresh_folder() -> Iterator[Path]:
    """A folder for a lab that the test starts; what is left there is ended and removed."""
    need_slurm()
    with short_folder() as folder:
        yield folder


def processes_of(folder: Path) -> list[int]:
    """Return all processes whose command line or environment names ``folder``."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid():
            try:
                told = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
            except OSError:
                continue
            if os.fsencode(folder) in told and processes.lives(int(path.name)):
                found.append(int(path.name))
    return found


def as_user(name: str, uid: int, act: Callable[[], None]) -> None:
    """Do ``act`` in a fork that is the user ``name`` (his Python may not reach ours)."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(60)
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.environ["HOME"] = "/nonexistent"
            act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, f"as {name}"
