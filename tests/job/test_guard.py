"""Nothing of a guarded command survives: not its end, not the end of whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from infx.domain.errors import InfraError
from infx.job.process import Program, exit_text
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
