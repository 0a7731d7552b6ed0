"""What a lab's nodes and jobs are doing, in rows for people."""

from __future__ import annotations

from dataclasses import dataclass

from infx.launch.lab.commands import ask
from infx.launch.lab.conf import MAIN, LabSpec

__all__ = ["JobRow", "NodeRow", "job_rows", "node_rows"]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node; ``cpus`` is Slurm's allocated/idle/other/total, ``reason`` why it is out."""

    name: str
    state: str
    cpus: str
    gpus_in_use: str
    reason: str


@dataclass(frozen=True, slots=True)
class JobRow:
    """One line of squeue; ``where`` is its nodes, or the reason why it waits."""

    id: str
    name: str
    user: str
    state: str
    elapsed: str
    where: str


def node_rows(spec: LabSpec) -> list[NodeRow]:
    """Return the nodes in order. Raises InfraError ``lab-failed`` without a controller."""
    shape = "NodeList:|,StateLong:|,CPUsState:|,GresUsed:|,Reason:256"
    text = ask(spec, "sinfo", "-h", "-N", "-p", MAIN, "-O", shape)
    rows = (line.split("|", 4) for line in text.splitlines())
    return [
        NodeRow(name, state, cpus, _gpus(used), "" if reason.strip() == "none" else reason.strip())
        for name, state, cpus, used, reason in rows
    ]


def job_rows(spec: LabSpec) -> list[JobRow]:
    """Return the jobs in squeue's order. Raises InfraError ``lab-failed`` without a controller."""
    text = ask(spec, "squeue", "-h", "-a", "-o", "%i|%u|%T|%M|%R|%j")
    rows = (line.split("|", 5) for line in text.splitlines())
    return [JobRow(id_, name, *rest) for id_, *rest, name in rows]


def _gpus(used: str) -> str:
    """Return ``4`` for ``gpu:h200:4(IDX:0-3)``."""
    return used.partition("(")[0].rpartition(":")[2] if "gpu:" in used else ""
