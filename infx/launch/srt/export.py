"""A plan as a folder of srt recipes, one for each arm, and a manifest that leads back to points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from infx.config.sites import Cluster
from infx.domain.findings import Finding
from infx.domain.plan import Job, Plan
from infx.domain.point import Point, short
from infx.domain.serial import encode_pretty
from infx.launch.srt.apply import Given
from infx.launch.srt.recipes import given_of, recipe_of
from infx.store import writing

__all__ = ["MANIFEST", "Exported", "Manifest", "PlacedPoint", "export"]

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPoint:
    """A point that a recipe measures; its evidence will lie in logs/infx/``label``."""

    point_id: str
    label: str
    conc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One recipe file, and what it is of. ``variant`` and ``set`` are what srtctl is to be given
    with a recipe of its own: apply -f FILE``variant`` --set KEY=VALUE."""

    file: str
    arm_id: str
    cluster: str
    points: tuple[PlacedPoint, ...]
    variant: str = ""
    set: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What was written from a plan, and what could not be said."""

    schema_version: str = "1"
    plan_id: str
    recipes: tuple[Exported, ...]
    findings: tuple[Finding, ...]


def export(plan: Plan, clusters: Mapping[str, Cluster], folder: Path) -> Manifest:
    """Write the recipes of a plan's arms into ``folder``, and the manifest; return it.

    An arm with an error gets none. Raises InfraError ``results-unwritable``, ``disk-full``.
    """
    written: list[Exported] = []
    findings: list[Finding] = []
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for job in _by_arm(plan.jobs):
            name = _name(job, written)
            made = recipe_of(job, clusters[job.cluster], f"infx-{name}")
            findings += made.findings
            if made.points and made.sound:
                given = given_of(job, clusters[job.cluster], f"infx-{name}")
                (folder / f"{name}.yaml").write_text(given.text, "utf-8")
                written.append(_exported(job, f"{name}.yaml", made.points, given))
        found = tuple(dict.fromkeys(findings))
        manifest = Manifest(plan_id=plan.plan_id, recipes=tuple(written), findings=found)
        (folder / MANIFEST).write_text(encode_pretty(manifest), "utf-8")
    return manifest


def _exported(job: Job, file: str, points: Sequence[Point], given: Given) -> Exported:
    placed = (PlacedPoint(point_id=p.point_id, label=p.label, conc=p.conc) for p in points)
    return Exported(
        file=file,
        arm_id=job.arm.arm_id,
        cluster=job.cluster,
        points=tuple(placed),
        variant=given.variant,
        set=given.set,
    )


def _by_arm(jobs: Sequence[Job]) -> list[Job]:
    """Return one job for each arm of a cluster, with all its points, each of them once."""
    groups: dict[tuple[str, str], Job] = {}
    for job in jobs:
        key = (job.arm.arm_id, job.cluster)
        first = groups.setdefault(key, replace(job, points=()))
        points = {point.point_id: point for point in (*first.points, *job.points)}
        groups[key] = replace(first, points=tuple(points.values()))
    return list(groups.values())


def _name(job: Job, written: Sequence[Exported]) -> str:
    """Return the engine and eight digits of the arm; the same arm on two clusters names them."""
    name = f"{job.arm.framework}-{short(job.arm.arm_id)}"
    taken = any(other.arm_id == job.arm.arm_id for other in written)
    return f"{name}-{job.cluster}" if taken else name
