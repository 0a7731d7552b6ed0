"""`infx … --on CLUSTER` as its users type it, on a real Slurm."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import INFX, ROOT, as_json, environment, infx
from tests.launch.lab_fixture import Lab, until
from tests.launch.slurm.bench import STAND_IN

pytestmark = pytest.mark.slow

MATRIX = """\
smol:
  model-prefix: smollm2
  precision: q4
  framework: llamacpp
  image: pypi:xllamacpp==2026.10.11549
  recipe: smollm2-135m-q4-cpu-llamacpp
  cluster: local
  scenarios:
    - workload: {isl: 64, osl: 4, requests: 2}
      axes: {conc: [1, 2], max-num-seqs: conc}
mini:
  model-prefix: minimaxm3
  precision: fp32
  framework: infx
  image: pypi:infx
  recipe: minimaxm3-mini-cpu-infx
  cluster: local
  speculation: {method: eagle3, golden: minimaxm3_eagle3_gqa, thinking: on, law: min-variance}
  scenarios:
    - workload: {isl: 32, osl: 8, requests: 2}
      axes: {conc: 1, k: 3, max-num-seqs: 1, mono: off}
"""

CLUSTERS = """\
local: {executor: local, hardware: cpu}
lab:
  executor: slurm
  hardware: cpu
  slurm: {lab: true, gpus: none, jobs-at-once: 1}
tiny:    # its jobs are played by a stand-in
  executor: slurm
  hardware: cpu
  time-limits: {job: 600}
  slurm: {lab: true, gpus: none, python: PYTHON}
"""


@pytest.fixture
def project(tmp_path: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project of its own, whose lab is the test's; its jobs are gone after the test."""
    monkeypatch.setenv("INFX_LAB_OF_TEST", str(lab.folder))
    for name in ("recipes", "golden_al"):
        shutil.copytree(ROOT / name, tmp_path / name)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S {STAND_IN} "$4"\n')
    python.chmod(0o755)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/m.yaml").write_text(MATRIX)
    (tmp_path / "configs/clusters.yaml").write_text(CLUSTERS.replace("PYTHON", str(python)))
    yield tmp_path
    lab.run(f"scancel --user={os.getuid()}")
    until(lambda: not lab.run("squeue -h -o %i"), 60, lambda: lab.run("squeue"))


def on(project: Path, lab: Lab, *words: object, **extra: str) -> subprocess.CompletedProcess[str]:
    return infx(*words, cwd=project, limit_s=280, INFX_LAB=str(lab.folder), **extra)


def begin(project: Path, lab: Lab, *words: str, **extra: str) -> subprocess.Popen[str]:
    return launch(project, lab, "sweep", "m", *words, **extra)


def launch(project: Path, lab: Lab, *words: str, **extra: str) -> subprocess.Popen[str]:
    told = (project / "told.txt").open("a")
    return subprocess.Popen(
        [*INFX, *words],
        cwd=project,
        env=environment(INFX_LAB=str(lab.folder), **extra),
        stdin=subprocess.DEVNULL,
        stdout=told,
        stderr=told,
        text=True,
    )


def hear(project: Path, text: str, limit_s: float = 60) -> None:
    told = project / "told.txt"
    until(lambda: text in told.read_text(), limit_s, told.read_text)


def status(project: Path, lab: Lab) -> dict[str, Any]:
    found: dict[str, Any] = as_json(on(project, lab, "status", "last", "--json"))["data"]
    return found


def ids(project: Path, lab: Lab, *words: str) -> set[str]:
    plan = as_json(on(project, lab, "plan", "m", "--json", *words))["data"]
    return {point["point_id"] for point in plan["points"]}


def test_real_engines_on_the_lab_measure_the_points_of_the_local_plan(project: Path, lab: Lab):
    for _ in range(3):
        done = on(project, lab, "sweep", "m", "--on", "lab")
        # Rightly invalid where others on this machine kept the client from its load.
        if "invalid:concurrency-off" not in done.stderr:
            break
        shutil.rmtree(project / "results")
    assert done.returncode == 0, done.stderr
    assert "3 of 3 points ok" in done.stdout
    found = status(project, lab)
    assert {point["point_id"] for point in found["points"]} == ids(project, lab)
    assert {point["status"]["state"] for point in found["points"]} == {"ok"}
    assert {attempt["node"] for attempt in found["attempts"]} <= {f"node{n}" for n in range(1, 5)}
    assert all(attempt["scheduler_id"] for attempt in found["attempts"])
    batches = [attempt["batch"] for attempt in found["attempts"]]
    assert batches[0] == batches[1] != batches[2]  # a canary of each entry, then the rest
    logs = on(project, lab, "logs", "last", "mini", "--server")
    assert logs.returncode == 0
    assert logs.stdout


def test_a_dry_run_prints_the_scripts_and_submits_nothing(project: Path, lab: Lab):
    done = on(project, lab, "sweep", "m", "--on", "tiny", "--dry-run")
    assert done.returncode == 0, done.stderr
    script = done.stdout[done.stdout.index("#!/bin/bash") :]
    assert "#SBATCH --array=0-2\n" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert not [name for name in lab.run("squeue -h -t all -o %j").split() if "-RUN-" in name]
    assert not (project / "results").exists()
    told = as_json(on(project, lab, "sweep", "m", "--on", "tiny", "--dry-run", "--json"))
    assert told["data"]["scripts"] == [script]


def test_a_closed_terminal_lets_jobs_go_on_and_resume_gathers_them(project: Path, lab: Lab):
    child = begin(project, lab, "--on", "tiny", "--no-canary", STAND_IN="hang")
    hear(project, "measuring")
    child.send_signal(signal.SIGHUP)
    assert child.wait(30) == 130
    hear(project, "let go: the jobs go on")
    assert status(project, lab)["state"] == "detached"
    assert len(lab.run("squeue -h -r -o %i").split()) == 3
    watched = subprocess.Popen(
        [*INFX, "watch", "last"],
        cwd=project,
        env=environment(INFX_LAB=str(lab.folder)),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watched.stderr
    assert "nobody drives it; infx resume" in watched.stderr.readline()
    watched.terminate()
    watched.wait(10)
    watched.stderr.close()
    assert len(lab.run("squeue -h -r -o %i").split()) == 3  # a view, no more
    stopped = on(project, lab, "cancel", "last")
    assert stopped.returncode == 0, stopped.stderr
    assert "nobody drove it; 3 open jobs cancelled" in stopped.stdout
    assert not lab.run("squeue -h -r -o %i")
    assert {p["status"]["state"] for p in status(project, lab)["points"]} == {"cancelled"}


def test_ctrl_c_stops_the_jobs_and_resume_measures_the_rest(project: Path, lab: Lab):
    child = begin(project, lab, "--on", "tiny", "--no-canary", STAND_IN="hang")
    hear(project, "measuring")
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 130
    assert not lab.run("squeue -h -r -o %i")
    assert {p["status"]["state"] for p in status(project, lab)["points"]} == {"cancelled"}
    on(project, lab, "resume", "--no-canary")
    again = status(project, lab)
    assert [a["number"] for a in again["attempts"]].count(2) == 3
    assert {p["status"]["state"] for p in again["points"]} == {"invalid"}  # no export of aiperf


def test_a_second_attempt_is_cancelled_too_when_its_driver_was_killed(project: Path, lab: Lab):
    """Every point has the end of its first attempt then: that is not the end of the run."""
    first = begin(project, lab, "--on", "tiny", "--entry", "mini", STAND_IN="hang")
    hear(project, "measuring")
    on(project, lab, "cancel", "last")
    assert first.wait(30) == 130
    (project / "told.txt").unlink()
    driver = launch(project, lab, "resume", STAND_IN="hang")
    hear(project, "measuring")
    driver.kill()
    driver.wait(10)
    stopped = on(project, lab, "cancel", "last")
    assert "nobody drove it; its open job cancelled" in stopped.stdout, stopped.stderr
    assert not lab.run("squeue -h -r -o %i")
    again = on(project, lab, "cancel", "last")
    assert "it had ended already" in again.stdout


def test_cancel_asks_the_process_that_drives(project: Path, lab: Lab):
    child = begin(project, lab, "--on", "tiny", "--no-canary", STAND_IN="hang")
    hear(project, "measuring")
    stopped = on(project, lab, "cancel", "last")
    assert "stopped; it was driven by pid" in stopped.stdout
    assert child.wait(30) == 130
    assert not lab.run("squeue -h -r -o %i")


def test_logs_follow_a_job_to_its_end(project: Path, lab: Lab):
    child = begin(project, lab, "--on", "tiny", "--entry", "mini", STAND_IN="crash")
    hear(project, "submitted as ")
    deadline = time.monotonic() + 30
    while (done := on(project, lab, "logs", "last", "mini", "-f")).returncode == 2:
        assert time.monotonic() < deadline, done.stderr
    assert "the server room is on fire" in done.stdout
    child.wait(60)


def edit(project: Path, old: str, new: str) -> None:
    path = project / "configs/clusters.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        ("gpus: none, python", "gpus: none, partition: nope, python", 2, "no partition 'nope'"),
        ("job: 600", "job: 90000", 2, "partition gpu allows 1440 min"),
        ("gpus: none, python", "gpus: none, account: a b, python", 2, "clusters.yaml"),
        ("gpus: none, python", 'gpus: none, directives: ["--nodelist=node9"], python', 2, "node"),
        ("gpus: none, python", 'gpus: none, directives: ["--no-such=1"], python', 2, "no-such"),
        (
            "lab: true, gpus: none, python",
            "ssh: 127.0.0.1:CLOSED, folder: /tmp/x, gpus: none, python",
            2,
            "ssh",
        ),
    ],
)
def test_what_the_cluster_cannot_give_is_one_error_and_nothing_is_submitted(
    project: Path, lab: Lab, old: str, new: str, code: int, told: str
):
    before = lab.run("squeue -h -t all -o %i")
    edit(project, old, new)
    done = on(project, lab, "sweep", "m", "--on", "tiny")
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert done.stderr.count("infx: ") <= 1
    assert lab.run("squeue -h -t all -o %i") == before
    assert not list(project.glob("results/runs/*"))


def test_more_gpus_than_a_node_has(project: Path, lab: Lab):
    edit(project, "  time-limits: {job: 600}\n", "  gpus-per-node: 8\n")
    edit(project, "lab: true, gpus: none, python", "lab: true, gpus: gres, python")
    matrix = project / "configs/m.yaml"
    matrix.write_text(MATRIX.replace("conc: 1, k: 3", "conc: 1, tp: 16, k: 3"))
    done = on(project, lab, "sweep", "m", "--on", "tiny", "--entry", "mini")
    assert done.returncode == 2, done.stderr
    assert "tp-gpus tp x pp is 16 accelerators; a node of tiny has 8" in done.stderr
    assert not list(project.glob("results/runs/*"))


def test_an_ssh_host_that_does_not_answer(project: Path, lab: Lab, tmp_path: Path):
    edit(
        project,
        "lab: true, gpus: none, python",
        "ssh: 127.0.0.1, folder: /tmp/x, gpus: none, python",
    )
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    done = on(project, lab, "sweep", "m", "--on", "tiny", HOME=str(home))
    assert done.returncode == 3, done.stderr
    assert "ssh-unreachable" in done.stderr
    assert "127.0.0.1" in done.stderr
    assert not list(project.glob("results/runs/*"))


def test_a_lab_that_is_not_up_says_how_to_start_it(project: Path, lab: Lab, tmp_path: Path):
    done = infx("sweep", "m", "--on", "lab", cwd=project, INFX_LAB=str(tmp_path / "no-lab"))
    assert done.returncode == 3
    assert "start it with infx cluster up" in done.stderr
