"""A cluster whose answers a test plays, and the lines that Slurm's commands write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from infx.config.sites import Cluster, SlurmSite
from infx.domain.errors import InfraError
from infx.domain.findings import Where
from infx.launch.slurm.queue import SQUEUE_FORMAT
from infx.launch.transport import Answer

SILENCE = InfraError("no-answer", "no answer within 30 s")
CONFIG = """\
AccountingStorageType   = {storage}
ClusterName             = lab
MaxArraySize            = {largest}
SLURM_VERSION           = 22.05.8
"""
PARTITION = "PartitionName=main Default=YES MaxTime=02:00:00 Nodes=node[1-4] State=UP"
NODES = "node1|main|idle|gpu:8\n"

Said = str | Answer | InfraError | Callable[[str], "Said"]


class Played:
    """A transport. ``answers`` maps a word of a script to what is said; the last that fits counts.

    ``asked`` are the scripts in order, ``pushed`` and ``pulled`` what was to be copied.
    """

    def __init__(self, host: str = "", **answers: Said) -> None:
        self.host = host
        self.answers: dict[str, Said] = dict(answers)
        self.asked: list[str] = []
        self.pushed: list[tuple[Path, str, list[str]]] = []
        self.pulled: list[tuple[str, Path, list[str]]] = []

    def run(self, script: str, *, limit_s: float = 30.0) -> Answer:
        self.asked.append(script)
        said: Said = ""
        for word, answer in self.answers.items():
            said = answer if word in script else said
        while callable(said):
            said = said(script)
        if isinstance(said, InfraError):
            raise said
        return said if isinstance(said, Answer) else Answer(0, said, "")

    def push(self, source: Path, target: str, names: Sequence[str]) -> None:
        self.pushed.append((source, target, list(names)))

    def pull(self, source: str, target: Path, names: Sequence[str]) -> None:
        self.pulled.append((source, target, list(names)))

    def close(self) -> None:
        pass

    def count(self, word: str) -> int:
        """How many scripts held ``word``."""
        return sum(word in script for script in self.asked)


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def facts_text(storage: str = "accounting_storage/none", largest: int = 1001) -> str:
    """What the three questions about a cluster answer."""
    config = CONFIG.format(storage=storage, largest=largest)
    return f"{config}== infx ==\n{PARTITION}\n== infx ==\n{NODES}"


def cluster(gpus_per_node: int = 8, **site: Any) -> Cluster:
    where = Where("configs/clusters.yaml", 3, 1)
    return Cluster(
        name="lab",
        executor="slurm",
        hardware="h200",
        gpus_per_node=gpus_per_node,
        slurm=SlurmSite(**{"partition": "main"} | site),
        where=where,
    )


def queued(job: str, state: str, name: str, reason: str = "None", nodes: str = "") -> str:
    """A line of squeue."""
    assert SQUEUE_FORMAT == "%i|%F|%K|%T|%V|%S|%e|%N|%j|%r"
    array, _, task = job.partition("_")
    at = "2026-11-29T20:45:16"
    return "|".join([job, array, task or "N/A", state, at, at, at, nodes, name, reason]) + "\n"


def booked(job: str, state: str, name: str, code: str = "0:0", reason: str = "None") -> str:
    """A line of sacct."""
    at = "2026-11-29T20:45:16"
    return "|".join([job, state, code, "0:0", at, at, at, "node1", name, reason]) + "\n"
