"""Only processes of the lab are found, and those end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infx.launch.lab import processes

CONF = Path("/tmp/infx-no-such-lab/etc/slurm.conf")


@pytest.fixture
def start(tmp_path) -> Iterator:
    """Start ``sleep`` under another name, with an environment; ended after the test."""
    made = []

    def start_(name: str, script: str = "exec sleep 60", **environment: str) -> subprocess.Popen:
        program = tmp_path / name
        if not program.exists():
            shutil.copy(shutil.which("dash") or "/bin/sh", program)
        made.append(subprocess.Popen([program, "-c", script], env=environment))
        return made[-1]

    yield start_
    for process in made:
        process.kill()
        process.wait()


def test_daemons_are_known_by_program_and_environment(start):
    ours = start("slurmd-wlm", "sleep 60; :", SLURM_CONF=str(CONF))
    strangers = start("slurmd-wlm", "sleep 60; :", SLURM_CONF="/tmp/another/slurm.conf")
    shell = start("watch", "sleep 60; :", SLURM_CONF=str(CONF))
    time.sleep(0.1)
    assert processes.is_daemon(ours.pid, CONF)
    assert not processes.is_daemon(strangers.pid, CONF)
    assert not processes.is_daemon(shell.pid, CONF), "a user's shell has SLURM_CONF too"
    assert not processes.is_daemon(2**22 + 1, CONF)


def test_what_jobs_left_is_known_by_the_cluster(start):
    left = start("server", SLURM_CLUSTER_NAME="lab-none")
    other = start("server", SLURM_CLUSTER_NAME="lab-none2")
    time.sleep(0.1)
    found = processes.belonging(CONF, "lab-none")
    assert left.pid in found
    assert other.pid not in found
    processes.kill(found)
    assert left.wait(5) == -9
    assert other.poll() is None


def test_stop_is_gentle_first(start):
    gentle = start("a", "trap 'exit 5' TERM; echo; while :; do sleep 0.02; done")
    deaf = start("b", "trap '' TERM; while :; do sleep 0.02; done")
    time.sleep(0.2)
    processes.stop([gentle.pid, deaf.pid], 0.5)
    assert gentle.wait(5) == 5
    assert deaf.wait(5) == -9


def test_a_zombie_does_not_live():
    process = subprocess.Popen(["true"])
    assert processes.poll(lambda: not processes.lives(process.pid), 5.0)
    assert Path(f"/proc/{process.pid}").exists()
    process.wait()


LEADER_ENDS_FIRST = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_lives_while_one_of_its_threads_does():
    process = subprocess.Popen([sys.executable, "-c", LEADER_ENDS_FIRST])
    stat = Path(f"/proc/{process.pid}/stat")
    try:
        assert processes.poll(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", 10.0)
        assert processes.lives(process.pid), "its first thread has ended, the second sleeps"
    finally:
        process.kill()
        process.wait()


def test_this_process_is_left_out(monkeypatch):
    monkeypatch.setattr(processes, "_says", lambda pid, setting: pid == os.getpid())
    assert processes.belonging(CONF, "lab") == []
