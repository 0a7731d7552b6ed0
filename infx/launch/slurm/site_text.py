"""What a cluster says of itself: scontrol show config, show partition, and sinfo."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from infx.launch.slurm.times import duration_s

__all__ = [
    "SINFO_FORMAT",
    "Config",
    "Node",
    "Partition",
    "gpu_types",
    "gpus",
    "parse_config",
    "parse_nodes",
    "parse_partitions",
]

T = TypeVar("T")

# sinfo -h -N -o FORMAT, with no width so that nothing is cut; gres stands last.
SINFO_FORMAT = "%N|%R|%T|%c|%m|%G"

# sbatch's own default of SchedulerParameters max_script_size.
_SCRIPT_BYTES = 4 * 1024 * 1024
# Powered down nodes (idle~) boot when they are needed.
_UNUSABLE = re.compile(r"down|drain|fail|future|inval|maint|reboot|reserved|unk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Of ``scontrol show config``; a number that it does not tell is Slurm's default.

    ``accounting`` is False where sacct has nothing to ask. ``max_array_size`` is one more than
    the largest index; ``min_job_age_s`` is how long squeue remembers an ended job.
    """

    cluster: str
    version: str
    accounting: bool
    max_array_size: int
    max_job_count: int
    max_script_bytes: int
    min_job_age_s: int
    kill_wait_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Of ``scontrol show partition -o``; None: no limit, or everyone (accounts, QOS)."""

    name: str
    state: str
    nodes: str
    default: bool
    max_time_s: int | None
    default_time_s: int | None
    max_nodes: int | None
    allow_accounts: tuple[str, ...] | None
    deny_accounts: tuple[str, ...]
    allow_qos: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node in one partition; ``state`` without Slurm's marks (``down*``), memory in MB.

    ``responding`` is False for one that Slurm has lost sight of (``*``).
    """

    name: str
    partition: str
    state: str
    responding: bool
    cpus: int
    memory_mb: int
    gpus: int
    gpu_types: tuple[str, ...]

    @property
    def usable(self) -> bool:
        """True when jobs run there, now or after those that hold it."""
        return self.responding and not _UNUSABLE.search(self.state)


def parse_config(text: str) -> Config:
    """Return the settings that infx needs; text that is none gives Slurm's defaults."""
    found = dict(re.findall(r"^(\w+)\s*= (.*?)\s*$", text, re.MULTILINE))
    script = re.search(r"max_script_size=(\d+)", found.get("SchedulerParameters", ""))
    return Config(
        cluster=found.get("ClusterName", ""),
        version=found.get("SLURM_VERSION", ""),
        accounting=found.get("AccountingStorageType", "").endswith("slurmdbd"),
        max_array_size=_first_number(found.get("MaxArraySize", ""), 1001),
        max_job_count=_first_number(found.get("MaxJobCount", ""), 10_000),
        max_script_bytes=int(script[1]) if script else _SCRIPT_BYTES,
        min_job_age_s=_first_number(found.get("MinJobAge", ""), 300),
        kill_wait_s=_first_number(found.get("KillWait", ""), 30),
    )


def parse_partitions(text: str) -> list[Partition]:
    """Return the partitions, in the order of the text."""
    lines = [dict(re.findall(r"(?:^|\s)(\w+)=(\S*)", line)) for line in text.splitlines()]
    return [_partition(found) for found in lines if found.get("PartitionName")]


def parse_nodes(text: str) -> list[Node]:
    """Return a node for each line of ``sinfo -N``: one in two partitions comes twice."""
    rows = [line.strip().split("|", 5) for line in text.splitlines()]
    return [_node(row) for row in rows if len(row) == 6 and row[0]]


def gpus(gres: str) -> int:
    """Return the accelerators of a gres text: ``gpu:8``, ``gpu:h200:8(S:0-1)``, ``(null)``."""
    return sum(count for _, count in _gpu_parts(gres))


def gpu_types(gres: str) -> tuple[str, ...]:
    """Return the types that a gres text names, in order (``gpu:a:4,gpu:b:4``)."""
    return tuple(name for name, _ in _gpu_parts(gres) if name)


def _gpu_parts(gres: str) -> list[tuple[str, int]]:
    plain = re.sub(r"\([^)]*\)", "", gres)
    found = []
    for part in plain.split(","):
        name, *rest = part.strip().split(":")
        if name == "gpu":
            counted = bool(rest) and rest[-1].isdecimal() and rest[-1].isascii()
            kind = rest[0] if len(rest) > counted else ""
            found.append((kind, int(rest[-1]) if counted else 1))
    return found


def _partition(found: dict[str, str]) -> Partition:
    return Partition(
        name=found["PartitionName"],
        state=found.get("State", ""),
        nodes=found.get("Nodes", "").replace("(null)", ""),
        default=found.get("Default") == "YES",
        max_time_s=duration_s(found.get("MaxTime", "")),
        default_time_s=duration_s(found.get("DefaultTime", "")),
        max_nodes=_first_number(found.get("MaxNodes", ""), None),
        allow_accounts=_allowed(found.get("AllowAccounts", "ALL")),
        deny_accounts=_names(found.get("DenyAccounts", "")),
        allow_qos=_allowed(found.get("AllowQos", "ALL")),
    )


def _node(row: list[str]) -> Node:
    name, partition, state, cpus, memory, gres = row
    return Node(
        name=name,
        partition=partition.rstrip("*"),
        responding="*" not in state,
        state=state.lower().rstrip("*~#!%$@^-+"),
        cpus=_first_number(cpus, 0),
        memory_mb=_first_number(memory, 0),
        gpus=gpus(gres),
        gpu_types=gpu_types(gres),
    )


def _first_number(text: str, default: T) -> int | T:
    match = re.match(r"[0-9]+", text)
    return int(match[0]) if match else default


def _allowed(text: str) -> tuple[str, ...] | None:
    return None if text == "ALL" else _names(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name and name != "(null)")
