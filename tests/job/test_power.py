"""The log of power beside a point: only of its own accelerators, in UTC, never an orphan."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

import psutil
import pytest

from infx.analysis.energy import energy_of
from infx.analysis.validity import judge
from infx.domain.axes import Axes
from infx.domain.status import CANCELLED
from infx.job import power
from infx.job.accuracy import evaluate
from infx.job.orchestrate import Job
from infx.job.power import devices, sampled
from infx.job.server import Server
from infx.job.signals import Stopped
from tests.job.jobs import arm, point, records, write_job
from tests.job.processes import processes_of, wait_until

STUB = Path(__file__).parent / "smi_stub.py"
Environment = dict[str, str]
Tool = Callable[..., Environment]


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """Put a stand-in on a PATH of its own, and return that environment."""

    def made(name: str = "nvidia-smi", fault: str = "none", **env: str) -> Environment:
        place = tmp_path / "bin"
        place.mkdir(exist_ok=True)
        words = shlex.join([sys.executable, str(STUB), fault, name])
        (place / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (place / name).chmod(0o755)
        return {"PATH": f"{place}:/usr/bin:/bin", **env}

    return made


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in samples five times a second, so the waits may be shorter too."""
    monkeypatch.setattr(power, "AFTER_S", 0.5)
    monkeypatch.setattr(power, "FIRST_S", 2.0)


def measured(folder: Path, env: Environment, gpus: int = 2, seconds: float = 0.6):
    """Sample while nothing runs; return the window and the log's text."""
    server = arm(axes=Axes(conc=0, tp=gpus))
    with sampled(server, folder, env) as log:
        start = time.time()
        time.sleep(seconds)
        end = time.time()
    return (start, end), log.read_text() if log else ""


@pytest.mark.parametrize("name", ["nvidia-smi", "amd-smi"])
def test_the_log_encloses_the_window(
    tmp_path: Path, tool: Tool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power, "AFTER_S", 1.3)
    window, log = measured(tmp_path, tool(name), seconds=1.5)
    start, end = window
    if name == "amd-smi":  # its stamps are whole seconds, so the first may be of the next one
        start = float(int(start))
    found = energy_of(log, (start, end), 2)
    assert found.valid, log
    assert found.source == name
    assert found.energy_j == pytest.approx(2 * 250 * (end - start))


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "UTC"])
def test_the_zone_of_the_machine_does_not_matter(tmp_path: Path, tool: Tool, zone: str) -> None:
    window, log = measured(tmp_path, tool(TZ=zone))
    assert energy_of(log, window, 2).valid, log


@pytest.mark.slow
def test_points_add_to_one_log(tmp_path: Path, tool: Tool) -> None:
    env = tool()
    first, _ = measured(tmp_path, env)
    second, log = measured(tmp_path, env)
    assert log.count("# power log: tool=nvidia-smi gpus=0,1 utc-offset-s=0\n") == 2
    assert energy_of(log, first, 2).valid
    assert energy_of(log, second, 2).valid


def test_nothing_is_left_running(tmp_path: Path, tool: Tool) -> None:
    measured(tmp_path, tool())
    assert processes_of(tmp_path) == []


def test_without_tool_or_accelerators_there_is_no_log(tmp_path: Path, tool: Tool) -> None:
    assert measured(tmp_path, {"PATH": "/nowhere"}, seconds=0)[1] == ""
    env = tool()
    with sampled(arm(accelerators=False), tmp_path, env) as log:
        assert log is None
    with sampled(arm(), tmp_path, env | {"CUDA_VISIBLE_DEVICES": ""}) as log:
        assert log is None
    assert not (tmp_path / power.LOG).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("no-devices", "power-unreadable"),
        ("never-prints", "power-unreadable"),
        ("dies", "power-not-bracketed"),
    ],
)
def test_a_tool_that_fails_leaves_a_reason(
    tmp_path: Path, tool: Tool, fault: str, reason: str
) -> None:
    window, log = measured(tmp_path, tool(fault=fault), seconds=1.2)
    assert energy_of(log, window, 2).reasons == (reason,)
    assert processes_of(tmp_path) == []


@pytest.mark.slow
def test_a_tool_that_pauses_leaves_a_gap(tmp_path: Path, tool: Tool) -> None:
    window, log = measured(tmp_path, tool(fault="gap"), seconds=5.0)
    assert energy_of(log, window, 2).reasons == ("power-gap",)


def test_words_between_the_rows_do_no_harm(tmp_path: Path, tool: Tool) -> None:
    window, log = measured(tmp_path, tool(fault="not-a-row"))
    assert "Unknown Error" in log
    assert energy_of(log, window, 2).valid


@pytest.mark.slow
def test_what_ignores_term_is_killed(tmp_path: Path, tool: Tool) -> None:
    started = time.monotonic()
    measured(tmp_path, tool(fault="ignores-term"))
    assert time.monotonic() - started < 10
    assert processes_of(tmp_path) == []


def test_an_error_inside_ends_it_at_once(tmp_path: Path, tool: Tool) -> None:
    failed_s = 0.0

    def fail() -> None:
        nonlocal failed_s
        failed_s = time.monotonic()
        raise RuntimeError("the client failed")

    with pytest.raises(RuntimeError), sampled(arm(), tmp_path, tool()):
        fail()
    assert time.monotonic() - failed_s < 1.0
    assert processes_of(tmp_path) == []


HELD = """
import os, sys, time
from pathlib import Path
from infx.job.power import sampled
from tests.job.jobs import arm
with sampled(arm(), Path(sys.argv[1]), os.environ):
    print("sampling", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_it_dies_with_the_job_even_by_kill_9(tmp_path: Path, tool: Tool) -> None:
    env = {**os.environ, **tool(fault="ignores-term"), "PYTHONPATH": str(STUB.parents[2])}
    command = [sys.executable, "-c", HELD, str(tmp_path)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as job:
        assert job.stdout
        assert job.stdout.readline() == b"sampling\n"
        smi = [
            p
            for p in psutil.Process(job.pid).children(recursive=True)
            if "stub" in str(p.cmdline())
        ]
        assert smi
        job.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not any(p.is_running() for p in smi), 15)


def test_a_term_after_the_client_keeps_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while the log still waits for its last sample."""

    @contextmanager
    def stopped_in_the_tail() -> Iterator[None]:
        yield
        raise Stopped(CANCELLED, 143)

    def fill(_job: Job, _work: object, _server: object, sampling: ExitStack) -> None:
        sampling.enter_context(stopped_in_the_tail())

    monkeypatch.setattr(Job, "_fill", fill)
    spec = write_job(tmp_path, point(arm()), point(arm(), conc=2))
    with pytest.raises(Stopped):
        Job(spec, tmp_path, evaluate=evaluate)._measure_all(cast(Server, None))
    assert [record.status.state for record in records(tmp_path)] == ["measured", "cancelled"]


# Which accelerators


@pytest.mark.parametrize(
    ("env", "count", "found"),
    [
        ({}, 2, ("0", "1")),
        ({"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, 2, ("4", "5")),
        ({"CUDA_VISIBLE_DEVICES": "GPU-26cb35c9, GPU-aa"}, 2, ("GPU-26cb35c9", "GPU-aa")),
        ({"CUDA_VISIBLE_DEVICES": "3"}, 2, ("3",)),
        ({"CUDA_VISIBLE_DEVICES": ""}, 2, ()),
        ({"SLURM_JOB_GPUS": "2,3"}, 1, ("2",)),
        ({"SLURM_JOB_GPUS": "4,5", "CUDA_VISIBLE_DEVICES": "0,1"}, 2, ("0", "1")),
        ({"HIP_VISIBLE_DEVICES": "7"}, 1, ("0",)),
    ],
)
def test_devices_of_nvidia_smi(env: Environment, count: int, found: tuple[str, ...]) -> None:
    assert devices("nvidia-smi", env, count) == found


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ({}, ("0", "1")),
        ({"ROCR_VISIBLE_DEVICES": "4,5,6"}, ("4", "5")),
        ({"HIP_VISIBLE_DEVICES": "2,3"}, ("2", "3")),
        ({"ROCR_VISIBLE_DEVICES": "4,5,6,7", "HIP_VISIBLE_DEVICES": "3,1"}, ("7", "5")),
        ({"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "4"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "6,7"}, ("6", "7")),
        ({"SLURM_JOB_GPUS": "2,3"}, ("2", "3")),
    ],
)
def test_devices_of_amd_smi(env: Environment, found: tuple[str, ...]) -> None:
    assert devices("amd-smi", env, 2) == found


def test_the_variables_of_the_arm_count_too(tmp_path: Path, tool: Tool) -> None:
    server = arm(env={"CUDA_VISIBLE_DEVICES": "5"})
    with sampled(server, tmp_path, tool(CUDA_VISIBLE_DEVICES="0")) as log:
        assert log
    assert "gpus=5 " in log.read_text()


@pytest.mark.slow
def test_a_job_logs_it_and_the_judge_reads_it(
    tmp_path: Path, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real job, engine and client; a log that does not tell takes the figure, nothing else."""
    monkeypatch.setenv("PATH", f"{tool()['PATH']}:{os.environ['PATH']}")
    options = {"threads": 2, "num-blocks": 128}
    server = arm("infx", options=options, axes=Axes(conc=0, max_num_seqs=4), start_limit_s=60)
    write_job(tmp_path, point(server, osl=16, requests=8), time_limit_s=200)
    command = [sys.executable, "-P", "-m", "infx.job", str(tmp_path / "job.json")]
    assert subprocess.run(command, timeout=240, check=False).returncode == 0
    (record,) = records(tmp_path)
    assert record.artifacts.get("power") == power.LOG, record.status
    judged = judge(record, tmp_path)
    assert judged.status.state == "ok", judged.status
    assert judged.energy
    assert judged.measurement
    assert judged.energy.avg_power_w == pytest.approx(250)
    assert judged.energy.window_s == pytest.approx(judged.measurement.window_s)
    joules = 250 / judged.measurement.tput_tok_s_gpu
    assert judged.energy.j_per_total_token == pytest.approx(joules)
    (tmp_path / power.LOG).write_text("No devices were found\n")
    again = judge(record, tmp_path)
    assert again.energy
    assert (again.status.state, again.energy.reasons) == ("ok", ("power-unreadable",))
    assert "power-unreadable" in [finding.code for finding in again.findings]
