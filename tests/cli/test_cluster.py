"""infx cluster, as one types it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from infx.launch import lab as labs
from tests.cli.commands import as_json, infx
from tests.launch.lab_fixture import need_slurm, short_folder

pytestmark = pytest.mark.slow


@pytest.fixture
def folder():
    need_slurm()
    with short_folder() as made:
        yield made


def test_up_status_down(folder):
    made = infx("cluster", "up", "--nodes", "2", "--gpus", "3", "--dir", folder)
    assert made.returncode == 0, made.stderr
    assert "slurmd of 2 nodes" in made.stderr
    assert "up: 2 nodes with 3 h200 each" in made.stderr
    assert "infx sweep configs/quickstart.yaml --on lab" in made.stderr
    asked = subprocess.run(
        ["sh", "-c", f"{made.stdout}\necho $INFX_LAB; sinfo -h -p gpu -o '%D %G'"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.splitlines() == [str(folder), "2 gpu:h200:3"]
    again = infx("cluster", "up", "--nodes", "2", "--gpus", "3", INFX_LAB=str(folder))
    assert "already up" in again.stderr
    shown = infx("cluster", "status", "--dir", folder)
    assert shown.returncode == 0
    assert [line.split()[:2] for line in shown.stdout.splitlines()[-2:]] == [
        ["node1", "idle"],
        ["node2", "idle"],
    ]
    ended = infx("cluster", "down", "--dir", folder)
    assert ended.returncode == 0
    assert "daemons stopped" in ended.stderr
    assert not folder.exists()


def test_json(folder):
    data = as_json(infx("cluster", "up", "--nodes", "1", "--dir", folder, "--json"))["data"]
    assert data["slurm_conf"] == str(labs.slurm_conf(folder))
    assert set(data["daemons"]) == {"munged", "slurmctld", "slurmd-node1"}
    environment = {**os.environ, "SLURM_CONF": data["slurm_conf"]}
    sbatch = ["sbatch", "--gres=gpu:2", "-J", "a|b", "-o", "/dev/null", "--wrap", "sleep 60"]
    subprocess.run(sbatch, env=environment, cwd="/tmp", capture_output=True, check=True)
    status = as_json(infx("cluster", "status", "--dir", folder, "--json"))["data"]
    assert [node["name"] for node in status["nodes"]] == ["node1"]
    assert [(job["id"], job["name"]) for job in status["jobs"]] == [("1", "a|b")]
    down = as_json(infx("cluster", "down", "--dir", folder, "--json"))["data"]
    assert down == {"folder": str(folder), "ended": True}


def test_a_dead_daemon_shows(folder):
    lab = labs.up(labs.LabSpec(folder, nodes=1))
    os.kill(lab.pids["slurmctld"], 9)
    shown = infx("cluster", "status", "--dir", folder)
    assert shown.returncode == 3
    assert ["slurmctld", "-", "dead"] in [line.split() for line in shown.stdout.splitlines()]


def test_where_there_is_none(tmp_path):
    missing = infx("cluster", "status", "--dir", tmp_path / "none")
    assert missing.returncode == 2
    assert "no-lab" in missing.stderr
    ended = infx("cluster", "down", "--dir", tmp_path / "none")
    assert ended.returncode == 0
    assert "there is no lab in" in ended.stderr


def test_doctor_looks_for_slurm():
    checks = json.loads(infx("doctor", "--json").stdout)["data"]["checks"]
    assert {"slurm", "slurm lab"} <= {check["name"] for check in checks}


def test_a_folder_with_other_files_is_refused(tmp_path):
    need_slurm()
    mine = Path("/tmp") / f"infx-mine-{os.getpid()}"
    mine.mkdir()
    try:
        (mine / "thesis").write_text("")
        refused = infx("cluster", "up", "--dir", mine)
        assert refused.returncode == 2
        assert "bad-option" in refused.stderr
        infx("cluster", "down", "--dir", mine)
        assert (mine / "thesis").exists()
    finally:
        (mine / "thesis").unlink()
        mine.rmdir()
