"""The job under a real Slurm: who it is, its server as a step in a container, scancel, requeue.

Containers need a plugin that srun lacks here: a small one (servers/pyxis_options.c) takes its place
and runs the step without a container.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from infx.config.sites import Container
from infx.domain.acceptance import Acceptance
from infx.domain.artifacts import RECORDS
from infx.job import claim
from infx.job.result import Result, damage, read_result
from infx.job.spec import Site
from tests.job.conftest import PROGRAM
from tests.job.jobs import arm, events, point, records, write_job
from tests.job.processes import processes_of, wait_until
from tests.launch.lab_fixture import Lab, running

pytestmark = pytest.mark.slow

PLUGIN = Path(__file__).parent / "servers" / "pyxis_options.c"
PLANNED = Acceptance("synthetic", 2.78, k=3)
"""What the stand-in server does not tell: its points fail right after it is ready."""

CONTAINED = Site(container=Container(runtime="pyxis", mounts=("/models:/models:ro",)))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab of one node, whose srun knows the options of pyxis where they can be compiled."""
    with running(nodes=1, gpus=2) as made:
        plugin = tmp_path_factory.mktemp("plugin") / "pyxis_options.so"
        if _compiled(plugin):
            (made.conf.parent / "plugstack.conf").write_text(f"required {plugin}\n")
        yield made


def _compiled(plugin: Path) -> bool:
    words = ["gcc", "-shared", "-fPIC", "-o", str(plugin), str(PLUGIN)]
    try:
        return not subprocess.run(words, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


@pytest.fixture
def pyxis(lab: Lab) -> Lab:
    """The lab, where steps can be asked for in containers."""
    if not (lab.conf.parent / "plugstack.conf").exists():
        lacks_the_plugin()
    return lab


def lacks_the_plugin() -> None:
    """Skip, or fail in CI, where the plugin that plays pyxis cannot be compiled."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
        "no gcc or no slurm/spank.h: apt-get install gcc libslurm-dev"
    )


def submit(lab: Lab, folder: Path, *options: str) -> str:
    """Submit the job of ``folder`` so that the batch process is the job; return Slurm's id."""
    line = shlex.join([sys.executable, "-P", str(PROGRAM), str(folder / "job.json")])
    (folder / "job.sh").write_text(f"#!/bin/bash\nexec {line}\n")
    told = ["--parsable", "--output", str(folder / "infx.log"), "--open-mode=append", *options]
    return lab.run(shlex.join(["sbatch", *told, str(folder / "job.sh")])).partition("_")[0]


def result(folder: Path) -> Result:
    found = read_result(folder)
    assert found is not None, (folder / "infx.log").read_text()
    assert damage(folder, found) == []
    return found


def served(folder: Path) -> list[psutil.Process]:
    """Return the server's own processes (Slurm runs them, not the job)."""
    return [p for p in processes_of(folder) if "broken.py" in " ".join(p.cmdline()[1:3])]


def test_a_job_knows_who_it_is(lab: Lab, tmp_path: Path) -> None:
    write_job(tmp_path, point(arm(options={"fault": "none"}, acceptance=PLANNED)))
    job_id = submit(lab, tmp_path, "--array=0")
    lab.await_job(job_id)
    [record] = records(tmp_path)
    assert (record.attempt.scheduler_id, record.attempt.node) == (f"{job_id}_0", "node1")
    assert record.provenance.host["slurm_nodes"] == "node1"
    assert record.provenance.host["slurm_cluster"]
    found = result(tmp_path)
    assert (found.scheduler_id, found.node, found.status) == (f"{job_id}_0", "node1", "ended")
    assert found.points == {record.point.label: "failed:acceptance-mode"}


@pytest.mark.parametrize(("fault", "goodbye"), [("says-goodbye", True), ("ignores-term", False)])
def test_a_server_in_a_container(fault: str, goodbye: bool, pyxis: Lab, tmp_path: Path) -> None:
    served_arm = arm(image="owner/engine:1", options={"fault": fault}, acceptance=PLANNED)
    write_job(tmp_path, point(served_arm), site=CONTAINED)
    pyxis.await_job(submit(pyxis, tmp_path))
    [record] = records(tmp_path)
    assert str(record.status) == "failed:acceptance-mode", record.status
    assert [finding.code for finding in record.findings] == ["image-mutable"]
    assert record.provenance.server_argv[0] == "srun"
    told = (tmp_path / "server.log").read_text()
    assert f"in owner/engine:1, sees /models:/models:ro,{tmp_path}:{tmp_path}" in told
    assert ("goodbye" in told) == goodbye
    assert result(tmp_path).status == "ended"
    assert not processes_of(tmp_path)


@pytest.mark.parametrize("inside", [False, True])
def test_scancel_while_measuring(inside: bool, lab: Lab, tmp_path: Path) -> None:
    if inside and not (lab.conf.parent / "plugstack.conf").exists():
        lacks_the_plugin()
    slow = arm(image="owner/engine:1", options={"fault": "slow"})
    points = [point(slow, conc=conc, requests=400) for conc in (1, 2)]
    write_job(tmp_path, *points, site=CONTAINED if inside else Site())
    job_id = submit(lab, tmp_path)
    assert wait_until(lambda: list(tmp_path.glob(f"points/*/aiperf/{RECORDS}")), 120)
    lab.run(f"scancel {job_id}")
    lab.await_job(job_id, "CANCELLED")
    assert wait_until(lambda: not processes_of(tmp_path), 30)
    assert [str(record.status) for record in records(tmp_path)] == ["cancelled", "cancelled"]
    assert result(tmp_path).status == "cancelled"


def test_scancel_while_the_server_starts(pyxis: Lab, tmp_path: Path) -> None:
    silent = arm(image="owner/engine:1", options={"fault": "silent"})
    write_job(tmp_path, point(silent), site=CONTAINED)
    job_id = submit(pyxis, tmp_path)
    assert wait_until(lambda: served(tmp_path), 60)
    pyxis.run(f"scancel {job_id}")
    assert wait_until(lambda: not processes_of(tmp_path), 30)
    assert result(tmp_path).status == "cancelled"
    assert [str(record.status) for record in records(tmp_path)] == ["cancelled"]


def test_the_job_killed_takes_its_step_along(pyxis: Lab, tmp_path: Path) -> None:
    silent = arm(image="owner/engine:1", options={"fault": "silent"})
    write_job(tmp_path, point(silent), site=CONTAINED)
    job_id = submit(pyxis, tmp_path)
    assert wait_until(lambda: served(tmp_path), 60)
    psutil.Process(json.loads((tmp_path / "claim").read_text())["pid"]).kill()
    assert wait_until(lambda: not processes_of(tmp_path), 30)
    assert read_result(tmp_path) is None
    assert pyxis.await_job(job_id, "FAILED")


def test_a_requeued_job_does_not_run_again(lab: Lab, tmp_path: Path) -> None:
    write_job(tmp_path, point(arm(options={"fault": "silent"})))
    job_id = submit(lab, tmp_path, "--requeue")
    assert wait_until((tmp_path / "server.json").exists, 60)
    lab.run(f"scontrol requeue {job_id}")
    lab.await_job(job_id, "PENDING")
    assert wait_until(lambda: not processes_of(tmp_path), 30)
    before, told = result(tmp_path), events(tmp_path)
    assert before.status == "cancelled"
    ended = started_again(lab, job_id, tmp_path / "infx.log")
    assert ended["ExitCode"] == f"{claim.TAKEN}:0", (ended, (tmp_path / "infx.log").read_text())
    assert (read_result(tmp_path), events(tmp_path)) == (before, told)
    said = f"infx: nothing was run: job {job_id} (process "
    assert said in (tmp_path / "infx.log").read_text()


def started_again(lab: Lab, job_id: str, log: Path) -> dict[str, str]:
    """Start a requeued job without its wait of two minutes; return its fields at the end.

    Slurm itself sometimes cannot launch it so soon after its first end (FAILED 1:0, and not a word
    of the script in the log): then it is requeued once more.
    """
    for _ in range(4):
        time.sleep(1)
        lab.run(f"scontrol update job {job_id} StartTime=now")
        ended = lab.await_job(job_id, "FAILED")
        if "infx: " in log.read_text():
            break
        lab.run(f"scontrol requeue {job_id}")
        lab.await_job(job_id, "PENDING")
    return ended
