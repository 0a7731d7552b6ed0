"""runners.yaml: which machines stand behind a label, and what a node of them holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from infx.config.inferencex.fields import HARDWARE, RUNNERS
from infx.config.inferencex.schema import check_shape
from infx.config.inferencex.tree import Map, Notes, Seq, read_tree

__all__ = ["Node", "Runners", "gpus_of", "host_gb", "read_runners"]

_MOST_MIB = 2_861_022
"""At most so much host memory of a node is shared out: 3 TB, whatever it has."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node's host memory (MiB) and accelerators."""

    dram_mib: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Runners:
    """Machines by label, nodes by label; ``file`` is what findings call the file ("": none)."""

    file: str = ""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)


def read_runners(path: Path, name: str, notes: Notes) -> Runners:
    """Return what the file says; faults are reported and what they hold is left out."""
    tree = read_tree(path, name, notes)
    if tree is None or not check_shape(tree, RUNNERS, name, notes):
        return Runners(name)
    labels = {key: _machines(tree["labels"], key, notes) for key in tree["labels"]}
    hardware = tree.get("hardware", {})
    nodes = {key: node for key in hardware if (node := _node(hardware, key, notes))}
    return Runners(name, labels, nodes)


def gpus_of(part: Mapping[str, Any]) -> int:
    """Return the accelerators of one replica of a row's server or of a worker."""
    return int(part["tp"] * part.get("pp", 1) * part.get("pcp-size", 1))


def host_gb(share: float, gpus: int, node: Node) -> int:
    """Return the host memory (GB, whole) of ``gpus`` accelerators of a node, of which ``share`` is
    given to the offloaded KV cache: decimal, as InferenceX computes it."""
    memory = Decimal(min(node.dram_mib, _MOST_MIB)) * 2**20
    return int(memory * Decimal(str(share)) * gpus / node.gpus / 10**9)


def _machines(labels: Map, key: str, notes: Notes) -> tuple[str, ...]:
    machines = labels[key]
    if isinstance(machines, Seq) and machines and all(isinstance(m, str) for m in machines):
        return tuple(machines)
    sentence = f"the label `{key}` must name at least one machine, in a list"
    notes.error("wrong-type", sentence, labels.value_at(key))
    return ()


def _node(hardware: Map, key: str, notes: Notes) -> Node | None:
    facts = hardware[key]
    if not isinstance(facts, Map):
        notes.error("wrong-type", f"`{key}` must be a mapping", hardware.value_at(key))
        return None
    if not check_shape(facts, HARDWARE, f"the hardware of `{key}`", notes):
        return None
    return Node(facts["available-cpu-dram-mib"], facts["gpus-per-node"])
