"""What the cluster file says, after validation: where jobs run and what a site's Slurm wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infx.domain.findings import Where

__all__ = ["Cluster", "Container", "ExcludedNodes", "SlurmSite", "SrtSite", "TimeLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Seconds: a whole job, a server's start without progress (0: the recipe's), one client."""

    job: int = 3600
    start: int = 0
    point: int = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """How engines run on the nodes.

    ``runtime`` is none or pyxis; ``mounts`` are HOST:INSIDE[:ro|rw]; ``images`` the folder there of
    imported images; ``client`` an image that holds infx, aiperf and lm-eval ("": none).
    """

    runtime: str = "none"
    mounts: tuple[str, ...] = ()
    images: str = ""
    client: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedNodes:
    """Nodes (a host list of Slurm) that get no job up to and including the day ``until``."""

    nodes: str
    until: str
    reason: str
    where: Where

    def expired(self, today: str) -> bool:
        """Return True when its last day is before ``today`` (both YYYY-MM-DD)."""
        return self.until < today


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSite:
    """What a site's Slurm wants, and how it is reached.

    ``ssh`` is a host of ~/.ssh/config ("": this machine's own sbatch) and ``lab`` the cluster of
    `infx cluster up`; never both. Texts are "" and numbers 0 where the file says nothing:
    ``jobs_at_once`` 0 is no throttle, ``largest_array`` 0 the scheduler's own limit. ``folder`` is
    where runs, bundles and images lie there ("": the results folder is shared); ``models`` maps a
    recipe's weights to a path there; ``strip`` holds names and globs of environment variables.
    """

    ssh: str = ""
    lab: bool = False
    partition: str = ""
    account: str = ""
    qos: str = ""
    gpus: str = "gres"
    gpu_type: str = ""
    exclusive: bool = False
    jobs_at_once: int = 0
    submit_limit: int = 1000
    largest_array: int = 0
    retries: int = 2
    folder: str = ""
    python: str = ""
    directives: tuple[str, ...] = ()
    container: Container | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    strip: tuple[str, ...] = ()
    exclude_nodes: tuple[ExcludedNodes, ...] = ()

    def excluded(self, today: str) -> tuple[str, ...]:
        """Return the host lists that get no job on the day ``today`` (YYYY-MM-DD)."""
        return tuple(line.nodes for line in self.exclude_nodes if not line.expired(today))


@dataclass(frozen=True, slots=True, kw_only=True)
class SrtSite:
    """How a site's srt-slurm is reached.

    ``ssh`` is as in `SlurmSite`; ``srtctl`` the program there and ``config`` its srtslurm.yaml ("":
    as srtctl finds it). ``folder`` is where runs lie there ("": the results folder is shared).
    ``client`` is the image of the client ("": the engine's); ``models`` and ``containers`` map a
    recipe's weights and an entry's image to a path or an alias there; ``set`` holds dotted keys of
    a recipe and what they are set to. ``jobs_at_once`` 0 is no limit.
    """

    ssh: str = ""
    srtctl: str = "srtctl"
    config: str = ""
    folder: str = ""
    client: str = ""
    preflight: bool = True
    jobs_at_once: int = 0
    retries: int = 2
    models: Mapping[str, str] = field(default_factory=dict)
    containers: Mapping[str, str] = field(default_factory=dict)
    set: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where jobs run (a key of configs/clusters.yaml). ``gpus_per_node`` 0: a CPU machine;
    ``dram_gb_per_node`` 0: unknown.

    ``slurm`` is there exactly when ``executor`` is slurm, ``srt`` when it is srt.
    """

    name: str
    executor: str
    hardware: str
    gpus_per_node: int = 0
    dram_gb_per_node: int = 0
    limits: TimeLimits = TimeLimits()
    slurm: SlurmSite | None = None
    srt: SrtSite | None = None
    where: Where
