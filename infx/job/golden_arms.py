"""The engine configurations of a curve: one arm for each K, with real acceptance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from infx.config.matrix import AxisValues, Entry, Recipe, Scenario, SpeculationSpec, WorkloadSpec
from infx.config.sites import Cluster
from infx.domain.errors import UsageError
from infx.domain.point import Arm
from infx.frameworks.base import Framework, Refusal
from infx.plan.expand import elements
from infx.plan.resolve import OWN, ArmMaker

__all__ = ["arms", "entry_of"]


def entry_of(recipe: Recipe, cluster: Cluster) -> Entry:
    """Return a matrix entry that serves a recipe as it is: a seat for each request."""
    where = recipe.where
    load = WorkloadSpec(isl=1, osl=1, requests=1, where=where)
    return Entry(
        name=recipe.name,
        model_prefix=recipe.model.prefix,
        precision=recipe.model.precision,
        framework=recipe.framework,
        image=OWN if recipe.framework == "infx" else "",
        image_digest="",
        recipe=recipe,
        cluster=cluster,
        scenarios=(Scenario(workload=load, axes=recipe.axes, where=where),),
        where=where,
    )


def arms(
    entry: Entry, framework: Framework, ks: Sequence[int], *, seats: int, method: str = ""
) -> dict[int, Arm]:
    """Return the arm of each K: that of the first combination of the entry's first scenario that
    the engine can serve, with K drafts for ``seats`` requests at a time.

    ``method`` "" is the entry's own. Raises UsageError before anything is started:
    ``no-speculation``, or the framework's refusal of a K, in its code.
    """
    entry = _drafting(entry, method)
    return {k: _arm(entry, framework, k, seats) for k in ks}


def _drafting(entry: Entry, method: str) -> Entry:
    told = entry.speculation
    if not method and told is None:
        message = f"{entry.name} says no speculation method"
        raise UsageError("no-speculation", message, hint="name one: --method eagle3")
    spec = SpeculationSpec(method=method or (told.method if told else ""), where=entry.where)
    return replace(entry, speculation=spec)


def _arm(entry: Entry, framework: Framework, k: int, seats: int) -> Arm:
    refused: Refusal | None = None
    maker = ArmMaker(entry, framework)
    for element in elements(_at(entry.scenarios[0], k, seats)):
        arm = maker.arm(element.values, "evaluation")
        refusal = next(iter(framework.refusals(arm)), None)
        if refusal is None:
            return arm
        refused = refused or refusal
    assert refused  # a product of axes has at least one element
    raise UsageError(refused.code, f"{entry.name} at K={k}: {refused.sentence}")


def _at(scenario: Scenario, k: int, seats: int) -> Scenario:
    """Return the scenario with K and concurrency fixed; what derives from them follows."""
    return replace(scenario, axes=tuple(_axes(scenario, k, seats)), include=())


def _axes(scenario: Scenario, k: int, seats: int) -> Iterator[AxisValues]:
    fixed = {"k": k, "conc": seats}
    written = {axis.name for axis in scenario.axes}
    if "max_num_seqs" not in written:
        fixed["max_num_seqs"] = seats
    for name, value in fixed.items():
        yield AxisValues(name=name, values=(value,), where=scenario.where)
    yield from (axis for axis in scenario.axes if axis.name not in fixed)
