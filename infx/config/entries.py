"""A matrix entry: its sections read one by one, so that a fault in one hides none in another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from infx.config.evaluations import read_evaluation
from infx.config.library import Library, option_places, read_options
from infx.config.matrix import Entry, Recipe, Scenario, SpeculationSpec
from infx.config.names import is_name
from infx.config.nodes import ListNode, MapNode, Node, ScalarNode, is_null
from infx.config.scenarios import draft_tokens, read_scenario
from infx.config.shape import shaped
from infx.config.sites import Cluster
from infx.config.suggestions import did_you_mean
from infx.domain.findings import Where

__all__ = ["read_entry"]


def read_entry(name: str, node: Node, where: Where, library: Library) -> Entry | None:
    """Return the entry called ``name`` (its key is at ``where``); None after reporting faults."""
    section = shaped(node, "EntrySection", f"the entry `{name}`", library.report)
    if not isinstance(node, MapNode):
        return None
    recipe, cluster = _recipe(node, library), _cluster(node, library)
    _check_hardware(node, recipe, cluster, library)
    speculation = _speculation(node.get("speculation"), library)
    defaults = recipe.axes if recipe else ()
    listed = _items(node, "scenarios")
    scenarios = [read_scenario(item, library, defaults) for item in listed]
    _check_draft_tokens(node, speculation, library)
    evaluations = [read_evaluation(item, library) for item in _items(node, "evaluations")]
    options = read_options(node.get("options"), library.report)
    if section is None or recipe is None or cluster is None:
        return None
    model = replace(recipe.model, prefix=section["model_prefix"], precision=section["precision"])
    return Entry(
        name=name,
        model_prefix=section["model_prefix"],
        precision=section["precision"],
        framework=section["framework"],
        image=section["image"],
        image_digest=section["image_digest"] or "",
        recipe=replace(recipe, model=model),
        cluster=cluster,
        scenarios=_whole(scenarios),
        evaluations=tuple(e for e in evaluations if e is not None),
        speculation=speculation,
        options=options,
        option_places=option_places(node.get("options")),
        where=where,
    )


def _whole(scenarios: Sequence[Scenario | None]) -> tuple[Scenario, ...]:
    return tuple(scenario for scenario in scenarios if scenario is not None)


def _items(node: MapNode, key: str) -> Iterator[Node]:
    below = node.get(key)
    if isinstance(below, ListNode):
        yield from below.items


def _text(node: MapNode, key: str) -> ScalarNode | None:
    below = node.get(key)
    return below if isinstance(below, ScalarNode) and isinstance(below.value, str) else None


def _name(node: MapNode, key: str) -> ScalarNode | None:
    named = _text(node, key)
    return named if named and is_name(named.text) else None


def _recipe(node: MapNode, library: Library) -> Recipe | None:
    named = _name(node, "recipe")
    recipe = library.recipe(named.text, named.where) if named else None
    framework = _text(node, "framework")
    if recipe and framework and framework.text != recipe.framework:
        sentence = f"the recipe `{recipe.name}` is for {recipe.framework}, not `{framework.text}`"
        hint = f"write `{recipe.framework}`, or name another recipe"
        library.report.error("unknown-value", sentence, framework.where, hint)
    return recipe


def _cluster(node: MapNode, library: Library) -> Cluster | None:
    named = _name(node, "cluster")
    return library.cluster(named.text, named.where) if named else None


def _check_hardware(
    node: MapNode, recipe: Recipe | None, cluster: Cluster | None, library: Library
) -> None:
    named = _text(node, "cluster")
    if not (recipe and cluster and named) or cluster.hardware in recipe.hardware:
        return
    listed = ", ".join(recipe.hardware)
    sentence = (
        f"the cluster `{cluster.name}` has {cluster.hardware}; `{recipe.name}` is for {listed}"
    )
    hint = "name another cluster, or list the hardware in the recipe"
    library.report.error("unknown-value", sentence, named.where, hint)


def _speculation(node: Node | None, library: Library) -> SpeculationSpec | None:
    if node is None or is_null(node):
        return None
    section = shaped(node, "SpeculationSection", "`speculation`", library.report)
    thinking = node.get("thinking") if isinstance(node, MapNode) else None
    if thinking is not None:
        library.report.advise("ambiguous-scalar", thinking.where, "write on or off")
    if section is None or not isinstance(node, MapNode):
        return None
    spec = SpeculationSpec(
        method=section["method"],
        golden=section["golden"] or "",
        thinking=section["thinking"] or "",
        law=section["law"] or "",
        draft=section["draft"] or "",
        where=node.where,
    )
    return _with_lengths(spec, node, library) if spec.golden and library.goldens else spec


def _with_lengths(spec: SpeculationSpec, node: MapNode, library: Library) -> SpeculationSpec:
    named = _text(node, "golden")
    curves = library.golden(spec.golden, named.where if named else node.where)
    asked = node.get("thinking")
    if asked is None or is_null(asked):
        sentence = "`speculation` names a golden file but has no `thinking`"
        library.report.error("missing-key", sentence, node.where, "add thinking: on, or off")
    elif spec.thinking and curves is not None and spec.thinking not in curves:
        sentence = f"{spec.golden} has no curve with thinking {spec.thinking}"
        hint = did_you_mean(spec.thinking, curves)
        library.report.error("unknown-reference", sentence, asked.where, hint)
    lengths = curves.get(spec.thinking, {}) if curves else {}
    return replace(spec, lengths=lengths)


def _check_draft_tokens(
    node: MapNode, speculation: SpeculationSpec | None, library: Library
) -> None:
    """Report each K that the entry asks literally and the golden curve lacks."""
    if speculation is None or not speculation.lengths:
        return
    for k, where in draft_tokens(_items(node, "scenarios")):
        if k not in speculation.lengths:
            sentence, hint = speculation.lacks(k)
            library.report.error("golden-k-missing", sentence, where, hint)
