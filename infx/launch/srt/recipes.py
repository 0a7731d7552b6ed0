"""What srtctl is given of a job: a recipe that infx writes, or one of srt's own with keys set."""

from __future__ import annotations

import json
from pathlib import Path

from infx.config.sites import Cluster
from infx.domain.plan import Job
from infx.domain.point import Delegated
from infx.frameworks import get
from infx.frameworks.srt import SrtPlace, SrtRecipe, expressible, recipe
from infx.frameworks.srt_yaml import yaml_text
from infx.job.image import reference
from infx.launch.srt.apply import Given
from infx.launch.srt.client import client_script

__all__ = ["given_of", "recipe_of"]


def recipe_of(job: Job, cluster: Cluster, name: str) -> SrtRecipe:
    """Return the recipe of a job on a cluster, as the srt job ``name``; of a delegated arm only
    its points, and what cannot be measured."""
    place, container = _place(cluster), _container(job, cluster)
    return recipe(job, place, client_script, name=name, container=container)


def given_of(job: Job, cluster: Cluster, name: str) -> Given:
    """Return what srtctl is given to run a job as ``name``."""
    if job.arm.delegated:
        return _delegated(job, job.arm.delegated, cluster, name)
    content = recipe_of(job, cluster, name).content
    return Given(text=yaml_text(content, f"Written by infx for {job.name}, as {name}."))


def _delegated(job: Job, own: Delegated, cluster: Cluster, name: str) -> Given:
    """Return the recipe as it is, but for its name, its image and its client: a value of --set is
    a YAML scalar, which JSON's strings are."""
    framework, points = get(job.arm.framework), expressible(job.points)
    launch = framework.launch(job.arm, "0.0.0.0", 8000, Path("/logs"))
    command = client_script(job.arm, points, framework, launch) if points else ""
    concs = sorted({point.conc for point in points})
    sets = {"name": name, "model.container": _container(job, cluster)}
    sets |= {"benchmark.type": "custom", "benchmark.concurrencies": json.dumps(concs)}
    sets |= {"benchmark.command": json.dumps(command)}
    place = _place(cluster)
    if path := place.models.get(job.arm.model.weights):
        sets["model.path"] = path
    if place.client:
        sets["benchmark.container_image"] = place.client
    variant = f":{own.selector}" if own.selector else ""
    text = own.text if own.text.endswith("\n") else f"{own.text}\n"
    return Given(text=text, variant=variant, set={**sets, **own.set})


def _place(cluster: Cluster) -> SrtPlace:
    srt, slurm = cluster.srt, cluster.slurm
    return SrtPlace(
        gpus_per_node=cluster.gpus_per_node,
        partition=slurm.partition if slurm else "",
        account=slurm.account if slurm else "",
        models=srt.models if srt else slurm.models if slurm else {},
        client=srt.client if srt else "",
    )


def _container(job: Job, cluster: Cluster) -> str:
    image = job.arm.image.partition("@")[0]
    known = cluster.srt.containers if cluster.srt else {}
    return known.get(image) or reference(image, job.arm.image_digest)
