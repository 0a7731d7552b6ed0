"""Nothing of a guarded command survives: not its end, not the end of whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from infx.domain.errors import InfraError
from infx.job import process
from infx.job.process import MARK, Program, exit_text
from tests.job.processes import processes_of, wait_until

DAEMON = "import os,time\nif not os.fork():\n os.setsid()\n if not os.fork(): time.sleep(60)\n"


def program(folder: Path, *argv: str) -> Program:
    return Program(argv, env=os.environ, log=folder / "log", folder=folder)


def python(folder: Path, code: str) -> Program:
    return program(folder, sys.executable, "-c", code, str(folder))


def ended(running: Program) -> int | None:
    wait_until(lambda: running.exit_code() is not None, 10)
    return running.exit_code()


def test_exit_code_and_output(tmp_path: Path) -> None:
    assert ended(python(tmp_path, "print('hello'); raise SystemExit(7)")) == 7
    assert (tmp_path / "log").read_text() == "hello\n"


def test_death_by_signal_reads_so(tmp_path: Path) -> None:
    code = ended(python(tmp_path, "import os; os.kill(os.getpid(), 9)"))
    assert exit_text(code) == "killed by SIGKILL"
    assert exit_text(3) == "exit code 3"


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    assert ended(program(tmp_path, "/nowhere/engine")) == 127
    assert "cannot start /nowhere/engine: No such file" in (tmp_path / "log").read_text()


def test_a_command_gets_none_of_the_jobs_blocked_signals(tmp_path: Path) -> None:
    code = "import signal; print(len(signal.pthread_sigmask(signal.SIG_BLOCK, ())))"
    assert ended(python(tmp_path, code)) == 0
    assert (tmp_path / "log").read_text() == "0\n"


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="cannot start"):
        Program(["true"], env={}, log=tmp_path / "none" / "log", folder=tmp_path)


def test_daemons_end_with_the_command(tmp_path: Path) -> None:
    assert ended(python(tmp_path, DAEMON)) == 0
    assert not processes_of(tmp_path)


def test_term_reaches_the_command(tmp_path: Path) -> None:
    code = "import signal,sys,time\nsignal.signal(15, lambda *_: sys.exit(5))\n"
    running = python(tmp_path, code + "print(1, flush=True)\ntime.sleep(60)")
    assert wait_until(lambda: (tmp_path / "log").read_text(), 10)
    assert running.stop(signal.SIGTERM, 10)
    assert running.exit_code() == 5


def test_a_command_that_ignores_term_is_killed(tmp_path: Path) -> None:
    code = "import signal,time\nsignal.signal(15, signal.SIG_IGN)\nprint(1, flush=True)\n"
    running = python(tmp_path, code + DAEMON + "time.sleep(60)")
    assert wait_until(lambda: (tmp_path / "log").read_text(), 10)
    assert not running.stop(signal.SIGTERM, 0.2)
    assert exit_text(running.exit_code()) == "killed by SIGKILL"
    assert not processes_of(tmp_path)


def test_kill_9_of_the_parent_ends_all(tmp_path: Path) -> None:
    code = (
        "import os,sys,time\nfrom pathlib import Path\nfrom infx.job.process import Program\n"
        f"Program([sys.executable, '-c', {DAEMON + 'time.sleep(60)'!r}, sys.argv[1]],"
        " env=os.environ, log=Path('log'), folder=Path(sys.argv[1]))\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=tmp_path)
    assert wait_until(lambda: len(processes_of(tmp_path)) >= 4, 10)
    parent.kill()
    parent.wait()
    assert wait_until(lambda: not processes_of(tmp_path), 5)


def test_it_knows_which_ports_are_its_own(tmp_path: Path) -> None:
    code = "import socket,time\ns=socket.create_server(('127.0.0.1',0))\n"
    running = python(tmp_path, code + "print(s.getsockname()[1], flush=True)\ntime.sleep(60)")
    try:
        assert wait_until(lambda: (tmp_path / "log").read_text(), 10)
        port = int((tmp_path / "log").read_text())
        assert running.listens_on(port)
        assert not running.listens_on(port + 1)
    finally:
        running.stop(signal.SIGTERM, 5)


SERVING = """
import os, signal, socket, sys, time
if not os.fork():
    signal.signal(15, lambda *_: print("a worker was told", flush=True))
    time.sleep(60)
polite = lambda *_: print("bye") or sys.exit()
signal.signal(15, signal.SIG_IGN if sys.argv[2] == "deaf" else polite)
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(60)
"""


@contextmanager
def asked_for(folder: Path, manner: str) -> Iterator[tuple[Program, subprocess.Popen[str]]]:
    """A marked program that only waits for a server, which is no child of it: as srun does."""
    env, nonce = dict(os.environ), folder.name
    server = subprocess.Popen(
        [sys.executable, "-c", SERVING, str(folder), manner],
        env={**env, MARK: nonce},
        stdout=subprocess.PIPE,
        text=True,
    )
    waits = ("tail", "-f", "/dev/null", f"--pid={server.pid}", "--sleep-interval=0.1")
    running = Program(waits, env=env, log=folder / "log", folder=folder, nonce=nonce)
    with server:  # its parent must take note of its end, as Slurm's daemon does
        reaper = threading.Thread(target=server.wait)
        assert server.stdout
        (folder / "port").write_text(server.stdout.readline())
        reaper.start()
        yield running, server
        reaper.join(20)


@pytest.mark.parametrize("manner", ["polite", "deaf"])
def test_a_server_that_another_program_runs_for_it(manner: str, tmp_path: Path) -> None:
    with asked_for(tmp_path, manner) as (running, server):
        assert {server.pid} < {process.pid for process in running.processes()}
        port = int((tmp_path / "port").read_text())
        assert wait_until(lambda: running.listens_on(port), 2)
        obeyed = running.stop(signal.SIGTERM, 10 if manner == "polite" else 0.3)
        assert server.stdout
        said = server.stdout.read()
    assert (obeyed, said) == ((True, "bye\n") if manner == "polite" else (False, ""))
    assert not processes_of(tmp_path)


def test_a_child_made_while_we_look_is_no_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once_it_runs(mark: str) -> Iterator[psutil.Process]:
        assert wait_until(psutil.Process(running.pid).children, 10)
        yield from marked(mark)

    marked = process._marked
    monkeypatch.setattr(process, "_marked", once_it_runs)
    env, nonce = {**os.environ, MARK: tmp_path.name}, tmp_path.name
    running = Program(["sleep", "60"], env=env, log=tmp_path / "log", folder=tmp_path, nonce=nonce)
    strangers = running._apart()
    monkeypatch.undo()
    running.stop(signal.SIGTERM, 10)
    assert not strangers


def test_another_mark_is_not_ours(tmp_path: Path) -> None:
    env = {**os.environ, MARK: f"{tmp_path.name}0"}
    with subprocess.Popen(["sleep", "60"], env=env) as stranger:
        running = Program(
            ["sleep", "60"], env=env, log=tmp_path / "log", folder=tmp_path, nonce=tmp_path.name
        )
        assert wait_until(running.processes, 10)
        assert stranger.pid not in [process.pid for process in running.processes()]
        running.stop(signal.SIGTERM, 10)
        assert stranger.poll() is None
        stranger.kill()
