from __future__ import annotations

from pathlib import Path

from infx.job.allocation import Allocation, allocation
from infx.job.provenance import collect

SLURM = {
    "SLURM_JOB_ID": "41",
    "SLURM_JOB_NODELIST": "node[3-4]",
    "SLURMD_NODENAME": "node3",
    "SLURM_CLUSTER_NAME": "lab",
}


def test_without_a_scheduler() -> None:
    assert allocation({}, "4711") == Allocation(scheduler_id="4711")
    assert allocation({}).facts() == {}


def test_a_job() -> None:
    found = allocation(SLURM, "4711")
    assert (found.scheduler_id, found.node, found.nodes) == ("41", "node3", "node[3-4]")
    assert found.restarts == 0


def test_a_task_of_an_array_is_named_as_squeue_names_it() -> None:
    array = {"SLURM_ARRAY_JOB_ID": "40", "SLURM_ARRAY_TASK_ID": "0", "SLURM_RESTART_COUNT": "2"}
    found = allocation(SLURM | array)
    assert (found.scheduler_id, found.restarts) == ("40_0", 2)


def test_the_only_node_is_this_one() -> None:
    assert allocation({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "gpu-07"}).node == "gpu-07"
    assert allocation({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "a1,b2"}).node == ""


def test_the_host_is_described_with_it(tmp_path: Path) -> None:
    host = collect(tmp_path, allocated=allocation(SLURM)).host
    assert host["slurm_cluster"] == "lab"
    assert host["slurm_nodes"] == "node[3-4]"
    assert host["slurm_restarts"] == 0
    assert not [name for name in collect(tmp_path).host if name.startswith("slurm")]
