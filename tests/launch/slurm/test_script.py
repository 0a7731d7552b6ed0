"""The sbatch script: byte for byte against golden files, and run by a real bash.

`INFX_RENEW_GOLDEN=1 pytest tests/launch/slurm/test_script.py` writes tests/launch/slurm/golden
anew; look at the difference before it is kept.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.config.sites import Cluster, Container, ExcludedNodes
from infx.domain.errors import UsageError
from infx.domain.findings import Where
from infx.launch.slurm.batch import Batch
from infx.launch.slurm.script import NO_FOLDER, NO_PYTHON, TASKS, Places, render
from tests.launch.slurm.sample_batches import batch, clusters

GOLDEN = Path(__file__).parent / "golden"
TODAY = "2026-11-29"
PLACES = Places(
    run_dir="/results/runs/r1", folder="/results/runs/r1/slurm/b1", python="/venv/bin/python"
)
THERE = Places(
    run_dir="/shared/in fx/runs/r1",
    folder="/shared/in fx/runs/r1/slurm/b1",
    python="/shared/in fx/bundles/0123abcd/python/bin/python",
)
OURS = clusters()
LAB, MI355X, H200 = OURS["lab"], OURS["mi355x"], OURS["h200"]
AT = Where("configs/clusters.yaml", 9, 9)


def on(cluster: Cluster, **fields: Any) -> Cluster:
    """The cluster with other fields of its site."""
    assert cluster.slurm is not None
    return replace(cluster, slurm=replace(cluster.slurm, **fields))


def excluding(*lines: tuple[str, str]) -> tuple[ExcludedNodes, ...]:
    return tuple(ExcludedNodes(nodes=n, until=day, reason="x", where=AT) for n, day in lines)


SITE_H200 = on(
    H200,
    qos="normal",
    gpus="gpus-per-node",
    gpu_type="h200",
    directives=("--constraint=h200", "--comment=it's infx"),
    strip=("HTTP_PROXY", "NCCL_*"),
    exclude_nodes=excluding(("node[3-4]", "2026-12-31"), ("node7", "2026-11-28")),
)
CLIENT = Container(runtime="pyxis", client="own/infx:1", mounts=("/models:/models:ro",))
CASES: dict[str, tuple[Batch, Cluster, Places]] = {
    "lab": (batch(), LAB, PLACES),
    "lab-array": (batch(1000, at_once=1), LAB, PLACES),
    "mi355x": (batch(gpus=4, time_limit_s=28800), MI355X, PLACES),
    "mi355x-array": (batch(36, gpus=8, time_limit_s=28800, at_once=9), MI355X, PLACES),
    "h200-array": (batch(2, gpus=8, time_limit_s=10500, exclude=("node9",)), H200, PLACES),
    "h200-every-key": (batch(3, gpus=8, time_limit_s=61, at_once=2), SITE_H200, THERE),
    "h200-client": (batch(gpus=8), on(H200, container=CLIENT), PLACES),
    "lab-turns": (batch(4, turns=4), LAB, PLACES),
    "h200-client-turns": (batch(2, gpus=8, turns=2), on(H200, container=CLIENT), PLACES),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    made = render(*CASES[name], today=TODAY)
    path = GOLDEN / f"{name}.sh"
    if os.environ.get("INFX_RENEW_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(made)
    assert path.read_text() == made


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.sh")), ids=lambda path: path.stem)
def test_bash_reads_it(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)


def options(script: str) -> dict[str, str]:
    """Option -> value of the #SBATCH lines, as a shell splits them (so does sbatch)."""
    lines = [line for line in script.splitlines() if line.startswith("#SBATCH ")]
    words = [shlex.split(line.removeprefix("#SBATCH ")) for line in lines]
    assert all(len(word) == 1 for word in words), lines
    pairs = [word.partition("=") for (word,) in words]
    assert len({option for option, _, _ in pairs}) == len(pairs)
    return {option: value for option, _, value in pairs}


def test_a_thousand_tasks_are_as_short_as_one() -> None:
    one, many = (render(batch(n), LAB, PLACES, today=TODAY) for n in (1, 1000))
    assert len(many) - len(one) < 200
    assert options(many)["--array"] == "0-999"
    assert "--array" not in options(one)


@pytest.mark.parametrize(
    ("limit_s", "minutes"), [(1, "6"), (60, "6"), (61, "7"), (3600, "65"), (28800, "485")]
)
def test_slurms_limit_is_five_minutes_after_the_jobs_own(limit_s: int, minutes: str) -> None:
    assert (
        options(render(batch(time_limit_s=limit_s), LAB, PLACES, today=TODAY))["--time"] == minutes
    )


def test_nodes_left_out_by_date_and_by_shape() -> None:
    site = on(LAB, exclude_nodes=excluding(("n[3-4]", TODAY), ("n7", "2026-11-28")))
    made = render(batch(exclude=("n1", "n2")), site, PLACES, today=TODAY)
    assert options(made)["--exclude"] == "n[3-4],n1,n2"


@pytest.mark.parametrize(
    ("gpus", "gpu_type", "need", "line"),
    [
        ("gres", "", 8, "--gres=gpu:8"),
        ("gres", "h200", 2, "--gres=gpu:h200:2"),
        ("gpus-per-node", "", 8, "--gpus-per-node=8"),
        ("gpus-per-node", "h200", 8, "--gpus-per-node=h200:8"),
        ("none", "", 8, ""),
        ("gres", "h200", 0, ""),
    ],
)
def test_how_accelerators_are_asked_for(gpus: str, gpu_type: str, need: int, line: str) -> None:
    made = render(batch(gpus=need), on(H200, gpus=gpus, gpu_type=gpu_type), PLACES, today=TODAY)
    assert re.findall(r"^#SBATCH (--g.*)", made, re.M) == ([line] if line else [])


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="\\"))


@given(folder=TEXT, account=TEXT.filter(bool), comment=TEXT.filter(bool))
def test_every_value_arrives_as_it_was(folder: str, account: str, comment: str) -> None:
    places = replace(PLACES, folder=f"/a b/{folder}")
    site = on(LAB, account=account, directives=(f"--comment={comment}",))
    found = options(render(batch(2), site, places, today=TODAY))
    assert found["--account"] == account
    assert found["--comment"] == comment
    assert found["--output"].replace("%%", "%") == f"/a b/{folder}/%A_%a.log"


def test_a_percent_sign_in_a_folder_is_none_of_slurms_own() -> None:
    made = render(batch(), LAB, replace(PLACES, folder="/a%jb"), today=TODAY)
    assert options(made)["--output"] == "/a%%jb/%j.log"


@pytest.mark.parametrize("name", ["a\\b", "a\nb", "a\x1bb"])
@pytest.mark.parametrize("field", ["run_dir", "folder", "python"])
def test_a_path_that_slurm_cannot_take_is_refused(field: str, name: str) -> None:
    with pytest.raises(UsageError, match="Slurm cannot take it"):
        render(batch(), LAB, replace(PLACES, **{field: f"/{name}"}), today=TODAY)


@pytest.mark.parametrize("name", ["a b", "a,b", "a:b"])
def test_a_folder_that_pyxis_cannot_mount_is_refused(name: str) -> None:
    places = replace(PLACES, run_dir=f"/{name}")
    assert render(batch(), LAB, places, today=TODAY)
    with pytest.raises(UsageError, match="pyxis cannot mount it"):
        render(batch(), on(LAB, container=CLIENT), places, today=TODAY)


def test_the_client_image_is_for_pyxis_only() -> None:
    for container in (None, replace(CLIENT, client=""), replace(CLIENT, runtime="none")):
        assert "srun" not in render(batch(), on(LAB, container=container), PLACES, today=TODAY)


class Job:
    """A rendered script with its folders, run by bash as a node would."""

    def __init__(
        self, folder: Path, cluster: Cluster = LAB, *, count: int = 1, turns: int = 1,
        root: str = "it's 100% a $HOME #run",
    ) -> None:  # fmt: skip
        self.run = folder / root
        self.folder = self.run / "slurm" / "b 1"
        self.python = folder / "its python" / "python"
        self.attempts = [self.run / f"jobs/j {n}/a1" for n in range(count)]
        for needed in (self.folder, self.python.parent, *self.attempts):
            needed.mkdir(parents=True)
        lines = [f"{attempt.relative_to(self.run)}\n" for attempt in self.attempts]
        (self.folder / TASKS).write_text("".join(lines))
        self.python.write_text(
            '#!/bin/bash\necho "$$|$*|$PWD|${HTTP_PROXY-}|${NCCL_A-}|${KEPT-}"\n'
            "[[ -z ${NAP-} ]] || { trap 'echo TERM; exit 143' TERM; sleep \"$NAP\" & wait; }\n"
        )
        self.python.chmod(0o755)
        places = Places(run_dir=str(self.run), folder=str(self.folder), python=str(self.python))
        self.script = self.folder / "job.sh"
        self.script.write_text(render(batch(count, turns=turns), cluster, places, today=TODAY))

    def start(self, **env: str) -> subprocess.Popen[str]:
        known = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "6"}
        known["SLURMD_NODENAME"] = "n3"
        return subprocess.Popen(
            ["bash", self.script], cwd="/", env=known | env, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def log(self, number: int = 0) -> str:
        return (self.attempts[number] / "infx.log").read_text()


def test_the_batch_process_becomes_the_orchestrator(tmp_path: Path) -> None:
    job = Job(tmp_path)
    (job.attempts[0] / "infx.log").write_text("before\n")
    child = job.start()
    out, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (0, "")
    assert "infx: job 7 on n3, see " in out
    words = f"{child.pid}|-P -m infx.job job.json|{job.attempts[0]}|||\n"
    assert job.log() == f"before\n{words}"


def test_each_task_of_an_array_finds_its_own_folder(tmp_path: Path) -> None:
    job = Job(tmp_path, count=11)
    for number in (0, 1, 10):
        child = job.start(SLURM_ARRAY_TASK_ID=str(number))
        out, _ = child.communicate(timeout=20)
        assert f"infx: job 6_{number} on n3" in out
        assert f"|{job.attempts[number]}|" in job.log(number)
    assert sum((folder / "infx.log").exists() for folder in job.attempts) == 3


def test_a_single_job_does_not_heed_the_array_that_it_was_submitted_from(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.start(SLURM_ARRAY_TASK_ID="5").communicate(timeout=20)
    assert f"|{job.attempts[0]}|" in job.log()


def test_variables_of_the_site_are_not_inherited(tmp_path: Path) -> None:
    job = Job(tmp_path, on(LAB, strip=("HTTP_PROXY", "NCCL_*", "ABSENT")))
    job.start(HTTP_PROXY="p", NCCL_A="a", KEPT="k").communicate(timeout=20)
    assert job.log().endswith("|||k\n")


def test_a_term_reaches_the_orchestrator(tmp_path: Path) -> None:
    job = Job(tmp_path)
    child = job.start(NAP="20")
    _term(child, job.attempts[0] / "infx.log")
    assert (child.returncode, job.log().splitlines()[-1]) == (143, "TERM")


def _term(child: subprocess.Popen[str], log: Path) -> None:
    """Send TERM when the job that writes ``log`` waits for it; wait for the end."""
    limit = time.monotonic() + 10
    while not (log.exists() and "job.json" in log.read_text()):
        assert time.monotonic() < limit
        time.sleep(0.02)
    time.sleep(0.2)
    child.send_signal(signal.SIGTERM)
    child.wait(timeout=10)
    child.communicate()


def test_attempts_take_turns_whatever_becomes_of_each(tmp_path: Path) -> None:
    job = Job(tmp_path, count=3, turns=3)
    job.python.write_text('#!/bin/bash\necho "$PWD"; pwd >>"$TURNS"; cat; exit 3\n')
    child = job.start(TURNS=str(tmp_path / "turns"))
    out, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (0, "")
    assert (tmp_path / "turns").read_text().splitlines() == [str(path) for path in job.attempts]
    assert [job.log(n) for n in range(3)] == [f"{path}\n" for path in job.attempts]
    assert out.count("infx: job 7 on n3, see ") == 3


def test_a_term_ends_the_one_whose_turn_it_is_and_the_turns(tmp_path: Path) -> None:
    job = Job(tmp_path, count=2, turns=2)
    child = job.start(NAP="20")
    _term(child, job.attempts[0] / "infx.log")
    assert (child.returncode, job.log().splitlines()[-1]) == (143, "TERM")
    assert not (job.attempts[1] / "infx.log").exists()


def test_a_term_is_for_the_step_of_the_orchestrator_whatever_its_number(tmp_path: Path) -> None:
    """A client in an image runs its servers as steps too: numbers do not count turns."""
    job = Job(tmp_path, on(LAB, container=CLIENT), count=2, turns=2, root="run")
    tools = tmp_path / "tools"
    tools.mkdir()
    told, step = tmp_path / "told", tmp_path / "step"
    for name, script in {
        "srun": f'echo "$*"; echo $$ >{step}; exec sleep 20',
        "squeue": 'echo "7.batch batch"; echo "7.1 infx-r1-server"; echo "7.3 infx-turn"',
        "scancel": f'echo "$*" >>{told}; kill "$(cat {step})"',
    }.items():
        (tools / name).write_text(f"#!/bin/bash\n{script}\n")
        (tools / name).chmod(0o755)
    child = job.start(PATH=f"{tools}:{os.environ['PATH']}")
    _term(child, job.attempts[0] / "infx.log")
    assert (child.returncode, told.read_text()) == (143, "--signal=TERM 7.3\n")
    assert not (job.attempts[1] / "infx.log").exists()


def test_what_is_missing_on_the_node_is_said(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.python.unlink()
    child = job.start()
    child.communicate(timeout=20)
    assert (child.returncode, f"has no interpreter {job.python}\n" in job.log()) == (
        NO_PYTHON,
        True,
    )
    (job.attempts[0] / "infx.log").unlink()
    job.attempts[0].rmdir()
    child = job.start()
    _, err = child.communicate(timeout=20)
    assert (child.returncode, f"has no folder {job.attempts[0]}\n" in err) == (NO_FOLDER, True)
    (job.folder / TASKS).write_text("\n")
    child = job.start()
    _, err = child.communicate(timeout=20)
    assert (child.returncode, "tasks has no line for this task" in err) == (NO_FOLDER, True)
    (job.folder / TASKS).unlink()
    child = job.start()
    _, err = child.communicate(timeout=20)
    assert child.returncode == NO_FOLDER
    assert f"cannot read {job.folder}/tasks: is the folder shared?" in err
