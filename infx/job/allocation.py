"""What the scheduler says of the job that it runs, read from the environment it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Allocation", "allocation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """``node`` is the scheduler's name of this machine, ``nodes`` its list of the job's machines,
    ``restarts`` how often it started the job again under one id. All empty without a scheduler."""

    scheduler_id: str = ""
    node: str = ""
    nodes: str = ""
    cluster: str = ""
    restarts: int = 0

    def facts(self) -> dict[str, Any]:
        """Return what belongs to a machine's description."""
        if not self.nodes:
            return {}
        return {
            "slurm_cluster": self.cluster,
            "slurm_nodes": self.nodes,
            "slurm_restarts": self.restarts,
        }


def allocation(env: Mapping[str, str], scheduler_id: str = "") -> Allocation:
    """Return Slurm's allocation in ``env``; ``scheduler_id`` is used where it names no job."""
    nodes = env.get("SLURM_JOB_NODELIST", "")
    alone = "" if "[" in nodes or "," in nodes else nodes
    return Allocation(
        scheduler_id=_job(env) or scheduler_id,
        node=env.get("SLURMD_NODENAME", alone),
        nodes=nodes,
        cluster=env.get("SLURM_CLUSTER_NAME", ""),
        restarts=int(env.get("SLURM_RESTART_COUNT") or 0),
    )


def _job(env: Mapping[str, str]) -> str:
    """A task of an array is known by the array's id and its number, as squeue prints it."""
    array, task = env.get("SLURM_ARRAY_JOB_ID"), env.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else env.get("SLURM_JOB_ID", "")
