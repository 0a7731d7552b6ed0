"""The shape of configs/clusters.yaml as pydantic models, as `infx.config.models` has the others'.

What no type says (dates, mounts, what goes with what) `infx.config.clusters` checks.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SkipValidation

from infx.config.names import (
    DIRECTIVE,
    ENV_GLOB,
    HOST,
    IMAGE,
    LINE,
    NODES,
    PATH,
    PROGRAM,
    RECIPE_KEY,
    SLURM_NAME,
    WEIGHTS,
)
from infx.config.sections import Count, Positive, Section, Text, named
from infx.domain.vocabulary import EXECUTORS, GPU_REQUESTS, RUNTIMES

__all__ = [
    "ClusterSection",
    "ContainerSection",
    "ExcludedNodesSection",
    "SlurmSection",
    "SrtSection",
    "TimeLimitsSection",
]

SlurmName = Annotated[str, Field(pattern=SLURM_NAME)]
Folder = Annotated[str, Field(pattern=PATH)]
Models = Annotated[
    dict[Annotated[str, Field(pattern=WEIGHTS)], Folder],
    named(WEIGHTS, {"type": "string", "pattern": PATH}),
]


class TimeLimitsSection(Section):
    """Limits in seconds."""

    job: Positive = Field(3600, description="a whole job: all points of one engine start")
    start: Count = Field(0, description="a server's start without progress; 0: the recipe's own")
    point: Positive = Field(1800, description="the client of one point")


class ContainerSection(Section):
    """How engines run on the nodes."""

    runtime: Literal[RUNTIMES] = Field(  # type: ignore[valid-type]
        "none", description="as programs of the nodes, or in containers by srun"
    )
    mounts: list[Text] = Field(
        [], description="HOST:INSIDE[:ro or rw], absolute paths; the run's folder is always mounted"
    )
    images: Folder | None = Field(
        None, description="folder there for imported images (default: images in `folder`)"
    )
    client: Annotated[str, Field(pattern=IMAGE)] | None = Field(
        None, description="an image that holds infx, aiperf and lm-eval, where the nodes lack them"
    )


class ExcludedNodesSection(Section):
    """Nodes that get no job for a while."""

    nodes: Annotated[str, Field(pattern=NODES)] = Field(description="a host list: node[3-4],node7")
    until: Text = Field(
        description="last day, quoted: '2027-01-31'; after it infx warns and uses the nodes again"
    )
    reason: Text = Field(description="why: what is broken, the ticket")


class SlurmSection(Section):
    """What a site's Slurm wants, and how it is reached."""

    ssh: Annotated[str, Field(pattern=HOST)] | None = Field(
        None,
        description="login node, a host of ~/.ssh/config (default: this machine's own sbatch)",
    )
    lab: bool = Field(False, description="the cluster of `infx cluster up` on this machine")
    partition: SlurmName | None = Field(None, description="default: the scheduler's")
    account: SlurmName | None = Field(None, description="default: the user's own")
    qos: SlurmName | None = Field(None, description="default: the account's")
    gpus: Literal[GPU_REQUESTS] = Field(  # type: ignore[valid-type]
        "gres", description="how accelerators are asked for: --gres=gpu:N, --gpus-per-node=N, not"
    )
    gpu_type: SlurmName | None = Field(None, description="type in that request: gpu:h200:8")
    exclusive: bool = Field(False, description="whole nodes: nothing else runs beside a job")
    jobs_at_once: Positive | None = Field(None, description="jobs that run at once (default: any)")
    submit_limit: Positive = Field(1000, description="attempts in the queue at once")
    largest_array: Positive | None = Field(
        None, description="jobs in one array (default: the scheduler's MaxArraySize)"
    )
    retries: Annotated[int, Field(ge=0, le=20)] = Field(
        2, description="new attempts of a job after failures of the machine"
    )
    folder: Folder | None = Field(
        None,
        description="where bundles and images lie there, and over ssh runs too; required with ssh"
        " (without ssh runs are in the results folder, which the nodes must see)",
    )
    python: Folder | None = Field(
        None,
        description="interpreter on the nodes, from which a bundle is made too (default: what is"
        " found there; without a bundle infx's own)",
    )
    directives: list[Annotated[str, Field(pattern=DIRECTIVE)]] = Field(
        [], description="further sbatch options, each one word: --constraint=h200, --mem=64G"
    )
    container: SkipValidation[ContainerSection] | None = Field(
        None, description="how engines run on the nodes (default: as programs of the nodes)"
    )
    models: Models = Field({}, description="a recipe's `weights` to the path where they lie there")
    strip: list[Annotated[str, Field(pattern=ENV_GLOB)]] = Field(
        [], description="environment variables that jobs do not inherit; NCCL_* is a glob"
    )
    exclude_nodes: list[SkipValidation[ExcludedNodesSection]] = Field(
        [], description="nodes that get no job for a while"
    )


class SrtSection(Section):
    """How a site's srt-slurm is reached."""

    ssh: Annotated[str, Field(pattern=HOST)] | None = Field(
        None, description="login node, a host of ~/.ssh/config (default: this machine)"
    )
    srtctl: Annotated[str, Field(pattern=PROGRAM)] = Field(
        "srtctl", description="the program there: an absolute path, or a name of its PATH"
    )
    config: Folder | None = Field(
        None, description="srtslurm.yaml there (default: the one that srtctl finds)"
    )
    folder: Folder | None = Field(
        None,
        description="where runs lie there; required with ssh (without ssh runs are in the results"
        " folder, which the nodes must see)",
    )
    client: Annotated[str, Field(pattern=IMAGE)] | None = Field(
        None, description="an image that holds aiperf (default: the engine's, with pip install)"
    )
    preflight: bool = Field(
        True, description="srtctl looks for model and image first; false where only nodes see them"
    )
    jobs_at_once: Positive | None = Field(None, description="jobs in the queue (default: any)")
    retries: Annotated[int, Field(ge=0, le=20)] = Field(
        2, description="new attempts of a job after failures of the machine"
    )
    models: Annotated[
        dict[Annotated[str, Field(pattern=WEIGHTS)], Text],
        named(WEIGHTS, {"type": "string", "minLength": 1, "pattern": LINE}),
    ] = Field({}, description="a recipe's `weights` to a path or an alias of srtslurm.yaml there")
    containers: Annotated[
        dict[Annotated[str, Field(pattern=IMAGE)], Text],
        named(IMAGE, {"type": "string", "minLength": 1, "pattern": LINE}),
    ] = Field(
        {}, description="an entry's `image` to a .sqsh file or an alias of srtslurm.yaml there"
    )
    set: Annotated[
        dict[Annotated[str, Field(pattern=RECIPE_KEY)], Text],
        named(RECIPE_KEY, {"type": "string", "minLength": 1, "pattern": LINE}),
    ] = Field({}, description="keys of every recipe, as srtctl's --set has them, in quotes")


class ClusterSection(Section):
    """Where jobs run."""

    executor: Literal[EXECUTORS] = Field(  # type: ignore[valid-type]
        description="one job at a time on this machine, a cluster's Slurm, or srt-slurm there"
    )
    hardware: Text = Field(description="hardware class; recipes list those they are written for")
    gpus_per_node: Count = Field(0, description="accelerators of a node; 0: a CPU machine")
    dram_gb_per_node: Count = Field(
        0,
        description="GB (10^9 bytes) of a node's host memory for offload, to each server its"
        " accelerators' share; 0: not checked",
    )
    time_limits: SkipValidation[TimeLimitsSection] | None = Field(
        None, description="limits in seconds"
    )
    slurm: SkipValidation[SlurmSection] | None = Field(
        None, description="required with `executor: slurm`, refused otherwise"
    )
    srt: SkipValidation[SrtSection] | None = Field(
        None, description="required with `executor: srt`, refused otherwise"
    )
