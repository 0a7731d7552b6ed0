"""What a cluster says of itself: scontrol show config, show partition, and sinfo."""

from __future__ import annotations

import re
from dataclasses import dataclass

from infx.launch.slurm.times import duration_s

__all__ = [
    "SINFO_FORMAT",
    "Config",
    "Node",
    "Partition",
    "gpus",
    "parse_config",
    "parse_nodes",
    "parse_partitions",
]

# sinfo -h -N -o FORMAT, with no width so that nothing is cut; gres stands last.
SINFO_FORMAT = "%N|%R|%T|%G"

# sbatch's own default of SchedulerParameters max_script_size.
_SCRIPT_BYTES = 4 * 1024 * 1024
# Powered down nodes (idle~) boot when they are needed.
_UNUSABLE = re.compile(r"down|drain|fail|future|inval|maint|reboot|reserved|unk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Of ``scontrol show config``; a number that it does not tell is Slurm's default.

    ``accounting`` is False where sacct has nothing to ask. ``max_array_size`` is one more than
    the largest index.
    """

    accounting: bool
    max_array_size: int
    max_script_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Of ``scontrol show partition -o``; ``max_time_s`` None: no limit."""

    name: str
    default: bool
    max_time_s: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node in one partition; ``state`` without Slurm's marks (``down*``).

    ``responding`` is False for one that Slurm has lost sight of (``*``).
    """

    name: str
    partition: str
    state: str
    responding: bool
    gpus: int

    @property
    def usable(self) -> bool:
        """True when jobs run there, now or after those that hold it."""
        return self.responding and not _UNUSABLE.search(self.state)


def parse_config(text: str) -> Config:
    """Return the settings that infx needs; text that is none gives Slurm's defaults."""
    found = dict(re.findall(r"^(\w+)\s*= (.*?)\s*$", text, re.MULTILINE))
    script = re.search(r"max_script_size=(\d+)", found.get("SchedulerParameters", ""))
    return Config(
        accounting=found.get("AccountingStorageType", "").endswith("slurmdbd"),
        max_array_size=_first_number(found.get("MaxArraySize", ""), 1001),
        max_script_bytes=int(script[1]) if script else _SCRIPT_BYTES,
    )


def parse_partitions(text: str) -> list[Partition]:
    """Return the partitions, in the order of the text."""
    lines = [dict(re.findall(r"(?:^|\s)(\w+)=(\S*)", line)) for line in text.splitlines()]
    return [_partition(found) for found in lines if found.get("PartitionName")]


def parse_nodes(text: str) -> list[Node]:
    """Return a node for each line of ``sinfo -N``: one in two partitions comes twice."""
    rows = [line.strip().split("|", 3) for line in text.splitlines()]
    return [_node(row) for row in rows if len(row) == 4 and row[0]]


def gpus(gres: str) -> int:
    """Return the accelerators of a gres text: ``gpu:8``, ``gpu:h200:8(S:0-1)``, ``(null)``."""
    plain = re.sub(r"\([^)]*\)", "", gres)
    return sum(map(_gpus, plain.split(",")))


def _gpus(part: str) -> int:
    name, *rest = part.strip().split(":")
    if name != "gpu":
        return 0
    counted = bool(rest) and rest[-1].isdecimal() and rest[-1].isascii()
    return int(rest[-1]) if counted else 1


def _partition(found: dict[str, str]) -> Partition:
    return Partition(
        name=found["PartitionName"],
        default=found.get("Default") == "YES",
        max_time_s=duration_s(found.get("MaxTime", "")),
    )


def _node(row: list[str]) -> Node:
    name, partition, state, gres = row
    return Node(
        name=name,
        partition=partition.rstrip("*"),
        responding="*" not in state,
        state=state.lower().rstrip("*~#!%$@^-+"),
        gpus=gpus(gres),
    )


def _first_number(text: str, default: int) -> int:
    match = re.match(r"[0-9]+", text)
    return int(match[0]) if match else default
