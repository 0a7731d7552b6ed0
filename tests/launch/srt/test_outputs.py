"""The folder of an attempt: found by listing, given up for good, and the line that tells why."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.errors import InfraError
from infx.domain.record import Attempt
from infx.launch.executor import Order
from infx.launch.srt import outputs
from infx.launch.srt.outputs import Outputs
from infx.launch.transport import LocalTransport
from tests.launch.slurm.played import Played
from tests.launch.srt import bench

FROM_TEXT = "INFO loading\nERROR retried\nTraceback\nValueError: no such quantization\n"


@pytest.fixture
def order(tmp_path: Path) -> Order:
    attempt = Attempt(run_id="r1", job_id="j", number=1, unique_name="infx-r1-j-a1")
    folder = tmp_path / "runs" / "r1" / "jobs" / "j" / "a1"
    folder.mkdir(parents=True)
    return Order(attempt=attempt, job=bench.job(), folder=folder)


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_folder_of_the_job(order: Order) -> None:
    assert outputs.job_folder(order) is None
    srt = order.folder / "srt"
    write(srt / "9" / "config.yaml")
    write(srt / "11" / "config.yaml")
    write(srt / "notes" / "x")
    assert outputs.job_folder(order) == srt / "11"
    known = replace(order, attempt=replace(order.attempt, scheduler_id="9"))
    assert outputs.job_folder(known) == srt / "9"
    gone = replace(order, attempt=replace(order.attempt, scheduler_id="12"))
    assert outputs.job_folder(gone) == srt / "11"


def test_exports_are_found_wherever_they_lie(tmp_path: Path) -> None:
    a = write(tmp_path / "logs" / "artifacts" / "any name" / "profile_export_aiperf.json").parent
    b = write(tmp_path / "logs" / "infx" / "p1" / "aiperf" / "profile_export.jsonl").parent
    write(tmp_path / "logs" / "sa-bench_isl_1024" / "isl_1024_concurrency_8.json")
    assert outputs.exports(tmp_path) == [a, b]
    assert outputs.exports(tmp_path / "gone") == []


def test_the_useful_line(tmp_path: Path) -> None:
    assert outputs.useful_line(tmp_path) == ""
    sweep = write(
        tmp_path / "logs" / "sweep_7.log", "[INFO] x\n[ERROR] Server did not become healthy\n"
    )
    assert outputs.useful_line(tmp_path) == "[ERROR] Server did not become healthy"
    write(tmp_path / "logs" / "workers" / "n1_agg_w0.out", "INFO x\nERROR retried\n")
    assert outputs.useful_line(tmp_path) == "ERROR retried"
    write(tmp_path / "logs" / "benchmark.out", "fine\nfatal: no tokenizer\n")
    assert outputs.useful_line(tmp_path) == "fatal: no tokenizer"
    worker = write(tmp_path / "logs" / "workers" / "n1_agg_w0.out", FROM_TEXT)
    assert outputs.useful_line(tmp_path) == "ValueError: no such quantization"
    assert outputs.worker_logs(tmp_path) == [worker]
    assert sweep.exists()


def test_the_logs_of_points_are_no_workers(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "infx" / "p1" / "aiperf" / "x.out", "ValueError: a client's own")
    old = write(tmp_path / "logs" / "n1_agg_w0.err")  # srtctl before 2.10: beside the others
    assert outputs.worker_logs(tmp_path) == [old]


def test_silence(tmp_path: Path) -> None:
    assert outputs.quiet_s(tmp_path) == float("inf")
    file = write(tmp_path / "logs" / "x")
    os.utime(file, (time.time() - 50, time.time() - 50))
    assert 49 < outputs.quiet_s(tmp_path) < 60


# Given up: what comes late cannot run


def test_an_attempt_that_nothing_came_of_is_given_up_for_good(order: Order) -> None:
    here = Outputs(LocalTransport({}), "")
    here.bring(order, "schema: 2\n")
    assert (order.folder / "srt.yaml").read_text() == "schema: 2\n"
    assert here.give_up(order)
    assert here.give_up(order)  # again
    late = subprocess.run(["mkdir", "-p", str(order.folder / "srt" / "7" / "logs")], check=False)
    assert late.returncode  # what srtctl does after sbatch; and Slurm cannot open its log


def test_an_attempt_whose_folder_was_never_made_is_given_up_too(order: Order) -> None:
    order.folder.rmdir()
    assert Outputs(LocalTransport({}), "").give_up(order)
    assert (order.folder / "srt").is_file()


def test_what_a_job_has_begun_is_not_given_up(order: Order) -> None:
    here = Outputs(LocalTransport({}), "")
    here.bring(order, "x")
    write(order.folder / "srt" / "7" / "config.yaml")
    assert not here.give_up(order)
    assert (order.folder / "srt" / "7" / "config.yaml").exists()


# Over ssh


def test_files_go_there_and_come_back(order: Order) -> None:
    transport = Played("login")
    there = Outputs(transport, "/shared/infx/")
    there.bring(order, "x")
    there.fetch(order)
    place = "/shared/infx/runs/r1/jobs/j/a1"
    assert transport.pushed == [(order.folder, place, ["srt.yaml", "srt"])]
    assert transport.pulled == [(place, order.folder, ["srt"])]
    there.give_up(order)
    assert f"cd {place} || exit 1" in transport.asked[0]


def test_a_folder_that_cannot_be_written(order: Order) -> None:
    write(order.folder / "srt")
    with pytest.raises(InfraError, match="cannot write"):
        Outputs(LocalTransport({}), "").bring(order, "x")


def test_where_the_logs_of_a_point_are(order: Order) -> None:
    assert outputs.logs(order, "p1") == {}
    job = order.folder / "srt" / "7" / "logs"
    worker, sweep = write(job / "workers" / "n_agg_w0.out"), write(job / "sweep_7.log")
    assert outputs.logs(order, "p1") == {
        "client": [job / "infx" / "p1" / "aiperf.log"],
        "server": [worker],
        "job": [job / "benchmark.out", sweep],
    }
