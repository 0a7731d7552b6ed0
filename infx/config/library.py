"""What a matrix refers to: recipes, clusters, golden curves. Each file is read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from infx.config.axis_values import read_defaults, read_option
from infx.config.clusters import read_clusters
from infx.config.cycles import refuse_cycle
from infx.config.matrix import AxisValues, Recipe, Value
from infx.config.nodes import MapNode, Node, Report, ScalarNode, read_yaml
from infx.config.project import Project
from infx.config.shape import shaped, wrong_type
from infx.config.sites import Cluster
from infx.config.srt_recipes import read_delegated
from infx.config.suggestions import did_you_mean
from infx.domain.findings import Where
from infx.domain.point import Model
from infx.domain.vocabulary import THINKING

__all__ = ["Golden", "Library", "option_places", "read_options"]

Golden = Mapping[str, Mapping[int, float]]
"""Acceptance lengths (tokens a step) by thinking mode ("on", "off") and K."""


@dataclass(slots=True)
class Library:
    """The files behind a matrix, read when they are first named.

    ``goldens`` False leaves golden curves unread. ``inputs`` maps each file read to the sha256 of
    its bytes; faults go to ``report``.
    """

    project: Project
    goldens: bool = True
    report: Report = field(default_factory=Report)
    inputs: dict[str, str] = field(default_factory=dict)
    _recipes: dict[str, Recipe | None] = field(default_factory=dict)
    _goldens: dict[str, Golden | None] = field(default_factory=dict)
    _clusters: dict[str, Cluster | None] | None = None

    def read(self, path: Path) -> MapNode | None:
        """Return the file's mapping; None after reporting why there is none."""
        name = self.project.shown(path)
        node, digest = read_yaml(path, name, self.report)
        if digest:
            self.inputs[name] = digest
        if isinstance(node, MapNode):
            return node
        if isinstance(node, ScalarNode) and node.text == "":
            self.report.error("file-empty", f"{name} holds nothing", Where(name))
        elif node is not None:
            wrong_type(node, name, "a mapping", self.report)
        return None

    def recipe(self, name: str, where: Where) -> Recipe | None:
        """Return the recipe called ``name`` at ``where``; its model has no prefix or precision."""
        if name not in self._recipes:
            self._recipes[name] = None
            if (path := self.project.recipe_path(name)) is not None:
                node = self.read(path)
                self._recipes[name] = self._made(name, node) if node else None
        if self.project.recipe_path(name) is None:
            self._unknown("recipe", name, "recipes/", self.project.recipes(), where)
        return self._recipes[name]

    def _made(self, name: str, node: MapNode) -> Recipe | None:
        delegated = read_delegated(node.get("srt"), self)
        recipe = _recipe(name, node, self.report)
        return replace(recipe, delegated=delegated) if recipe else None

    def golden(self, name: str, where: Where) -> Golden | None:
        """Return the acceptance lengths of the golden file called ``name`` at ``where``."""
        if name not in self._goldens:
            self._goldens[name] = None
            if (path := self.project.golden_path(name)) is not None:
                found = self.golden_file(path)
                self._goldens[name] = found[1] if found else None
        if self.project.golden_path(name) is None:
            self._unknown("golden file", name, "golden_al/", self.project.goldens(), where)
        return self._goldens[name]

    def golden_file(self, path: Path) -> tuple[str, Golden] | None:
        """Return the model and the acceptance lengths of a golden file, None after a fault."""
        node = self.read(path)
        curves = _golden(node, self.report) if node else None
        return (str(next(iter(node.values), "")), curves) if node and curves is not None else None

    def clusters(self) -> Mapping[str, Cluster | None]:
        """Return every cluster of the project by name; None for one with faults, which are told."""
        if self._clusters is None:
            node = self.read(self.project.clusters_path())
            self._clusters = read_clusters(node, self.report) if node else {}
        return self._clusters

    def cluster(self, name: str, where: Where) -> Cluster | None:
        """Return the cluster called ``name`` at ``where``."""
        known = self.clusters()
        if name not in known and known:
            place = self.project.shown(self.project.clusters_path())
            self._unknown("cluster", name, place, known, where)
        return known.get(name)

    def _unknown(
        self,
        kind: str,
        name: str,
        place: str,
        known: Mapping[str, object] | tuple[str, ...],
        where: Where,
    ) -> None:
        sentence = f"there is no {kind} `{name}` in {place}"
        add = f"add {place}{name}.yaml" if place.endswith("/") else f"add `{name}:` to {place}"
        hint = did_you_mean(name, known) or add
        if kind == "golden file":
            hint += " Or" if hint.endswith("?") else ", or"
            hint += " measure it: infx golden collect"
        self.report.error("unknown-reference", sentence, where, hint)


def read_options(node: Node | None, report: Report) -> dict[str, Value]:
    """Return the engine options of a recipe or entry; none for a node that is not a mapping."""
    if not isinstance(node, MapNode):
        return {}
    return {str(name): read_option(str(name), v, report) for name, v in node.values.items()}


def option_places(node: Node | None) -> dict[str, Where]:
    """Return where the name of each engine option of a recipe or entry stands."""
    keys = node.keys if isinstance(node, MapNode) else {}
    return {str(name): where for name, where in keys.items()}


def _recipe(name: str, node: MapNode, report: Report) -> Recipe | None:
    recipe = shaped(node, "RecipeSection", "a recipe", report)
    model_node = node.get("model")
    model = shaped(model_node, "ModelSection", "`model`", report) if model_node else None
    axes = _axes(node.get("axes"), report)
    options = read_options(node.get("options"), report)
    if axes is None or recipe is None or model is None:
        return None
    return Recipe(
        name=name,
        model=Model(prefix="", precision="", **model),
        axes=axes,
        options=options,
        option_places=option_places(node.get("options")),
        where=node.where,
        hardware=tuple(recipe["hardware"]),
        **{key: recipe[key] for key in ("framework", "env", "chat_template", "start_limit_s")},
    )


def _axes(node: Node | None, report: Report) -> tuple[AxisValues, ...] | None:
    before = len(report.findings)
    axes = read_defaults(node, report)
    refuse_cycle(axes, report)
    return axes if len(report.findings) == before else None


def _golden(node: MapNode, report: Report) -> Golden | None:
    """Read ``model: {thinking_on: {K: length}, thinking_off: …}``, the public format."""
    curves: dict[str, dict[int, float]] = {}
    before = len(report.findings)
    modes = {f"thinking_{mode}": mode for mode in THINKING}
    if len(node.values) > 1:
        models = ", ".join(map(str, node.values))
        second = [*node.keys.values()][1]
        sentence = f"a golden file holds one model; this one holds {models}"
        report.error("wrong-type", sentence, second, "write a file for each")
    for model, below in node.values.items():
        if not isinstance(below, MapNode):
            wrong_type(below, f"`{model}`", f"a mapping of {' and '.join(modes)}", report)
            continue
        for key, lengths in below.values.items():
            if key not in modes:
                hint = did_you_mean(str(key), modes)
                report.error("unknown-key", f"`{key}` is no curve", below.keys[key], hint)
            elif not isinstance(lengths, MapNode):
                wrong_type(lengths, f"`{key}`", "a mapping of K to a length", report)
            else:
                curves[modes[str(key)]] = _lengths(lengths, report)
    return curves if len(report.findings) == before else None


def _lengths(node: MapNode, report: Report) -> dict[int, float]:
    found: dict[int, float] = {}
    for k, value in node.values.items():
        length = value.value if isinstance(value, ScalarNode) else None
        if not isinstance(k, int) or k < 1:
            report.error("wrong-type", f"`{k}` is not a K", node.keys[k], "write 1, 2, 3 …")
        elif isinstance(length, bool) or not isinstance(length, int | float):
            wrong_type(value, f"the length at K={k}", "a number", report)
        elif not 1 <= length <= k + 1:
            sentence = f"a length of {length} at K={k}; expected 1 to {k + 1}"
            report.error("out-of-range", sentence, value.where, "a step emits 1 to K+1 tokens")
        else:
            found[k] = float(length)
    return found
