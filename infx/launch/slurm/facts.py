"""What a cluster is, asked once: versions, limits, partitions, nodes. And what they rule out."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from infx.config.sites import Cluster, SlurmSite
from infx.domain.errors import InfraError, UsageError
from infx.launch.slurm.batch import MARGIN_MIN, Shape
from infx.launch.slurm.site_text import (
    SINFO_FORMAT,
    Config,
    Node,
    Partition,
    parse_config,
    parse_nodes,
    parse_partitions,
)
from infx.launch.transport import Answer, Transport

__all__ = ["Facts", "ask", "check_shapes", "check_size", "passes"]

_MARK = "== infx =="
_ASK = f"""
scontrol show config && echo '{_MARK}' && scontrol show partition -o && echo '{_MARK}' &&
sinfo -h -N -o {shlex.quote(SINFO_FORMAT)}
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the scheduler says of itself, its partitions and its nodes."""

    config: Config
    partitions: tuple[Partition, ...]
    nodes: tuple[Node, ...]

    def partition(self, name: str) -> Partition | None:
        """Return the partition of that name, or the default one for an empty name."""
        wanted = (p for p in self.partitions if (p.name == name if name else p.default))
        return next(wanted, None)

    def serving(self, site: SlurmSite | None) -> set[str]:
        """Return the partitions that exist of those that a site names (``a,b``)."""
        named = [self.partition(name) for name in (site.partition if site else "").split(",")]
        return {partition.name for partition in named if partition}

    def leaves_any(self, site: SlurmSite, excluded: Collection[str]) -> bool:
        """Return True when the site's partitions have a node that is not among ``excluded``."""
        within = self.serving(site)
        return any(n.name not in excluded for n in self.nodes if n.partition in within)


def ask(transport: Transport, cluster: str) -> Facts:
    """Return the facts. Raises InfraError: ``slurm-missing``, ``scheduler-down``, and what the
    transport raises."""
    answer = transport.run(_ASK)
    parts = answer.out.split(_MARK)
    if answer.code or len(parts) != 3:
        raise _unanswered(answer, transport.host, cluster)
    config, partitions, nodes = parts
    return Facts(
        parse_config(config), tuple(parse_partitions(partitions)), tuple(parse_nodes(nodes))
    )


def check_shapes(facts: Facts, cluster: Cluster, shapes: Sequence[Shape]) -> None:
    """Raise UsageError (``cluster-refuses``) with everything that the cluster cannot give."""
    faults = list(_faults(facts, cluster, shapes)) if shapes else []
    if faults:
        where = f"{cluster.where}: cluster {cluster.name!r}"
        raise UsageError("cluster-refuses", f"{where}: {'; '.join(faults)}")


def longest_s(facts: Facts, cluster: Cluster) -> int:
    """Return what a job's own limit may be at most, in the partition that allows most; 0: there is
    no limit."""
    asked = cluster.slurm.partition if cluster.slurm else ""
    found = [facts.partition(name) for name in asked.split(",")]
    limits = [partition.max_time_s for partition in found if partition]
    known = [limit for limit in limits if limit is not None]
    return max(0, max(known) - MARGIN_MIN * 60) if known and None not in limits else 0


def check_size(facts: Facts, cluster: Cluster, script_bytes: int) -> None:
    """Raise UsageError (``cluster-refuses``) for a script that the cluster does not take."""
    most = facts.config.max_script_bytes
    if script_bytes > most:
        raise UsageError(
            "cluster-refuses",
            f"{cluster.where}: cluster {cluster.name!r} takes scripts of at most {most} bytes; "
            f"this one has {script_bytes}",
            hint="shorten its directives",
        )


def passes(facts: Facts, cluster: Cluster, sentence: str) -> bool:
    """Return True for a refusal of ``sbatch --test-only`` that may pass: it looks at the nodes as
    they are now, and calls what drained ones could run not available. sbatch itself takes it."""
    within = facts.serving(cluster.slurm)
    absent = any(not node.usable for node in facts.nodes if node.partition in within)
    return absent and "Requested node configuration is not available" in sentence


def _faults(facts: Facts, cluster: Cluster, shapes: Sequence[Shape]) -> Iterator[str]:
    """Yield what is wrong; of several partitions (``a,b``) one that serves is enough."""
    asked = cluster.slurm.partition if cluster.slurm else ""
    found = [(name, facts.partition(name)) for name in asked.split(",")]
    partitions = [partition for _, partition in found if partition]
    for name in (name for name, partition in found if partition is None):
        names = ", ".join(p.name for p in facts.partitions) or "none"
        what = f"there is no partition {name!r}" if name else "there is no default partition"
        yield f"{what}; there are {names}"
    if not partitions:
        return
    named, longest = ", ".join(p.name for p in partitions), max(s.minutes for s in shapes)
    limits = [p.max_time_s for p in partitions]
    allowed = max((s for s in limits if s is not None), default=0) / 60
    if None not in limits and longest > allowed:
        yield (
            f"a job asks for {longest} min (its limit and {MARGIN_MIN} min to end in); "
            f"partition {named} allows {allowed:g} min"
        )
    gpus = max(shape.gpus for shape in shapes)
    within = facts.serving(cluster.slurm)
    have = max((n.gpus for n in facts.nodes if n.partition in within), default=0)
    if gpus > have:
        yield f"a job asks for {gpus} GPUs; the largest node of {named} has {have}"


def _unanswered(answer: Answer, host: str, cluster: str) -> InfraError:
    told = next(iter((answer.err or answer.out).strip().splitlines()), "no answer")
    where = host or "this machine"
    if answer.code == 127 or "not found" in told:
        hint = "install Slurm's client there, or correct `ssh` in configs/clusters.yaml"
        return InfraError("slurm-missing", f"{where} has no Slurm commands: {told}", hint=hint)
    message = f"the scheduler of cluster {cluster!r} does not answer on {where}: {told}"
    return InfraError("scheduler-down", message, hint="try scontrol ping there")
