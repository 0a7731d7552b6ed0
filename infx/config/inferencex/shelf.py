"""What the target of an import holds already: recipes, clusters, golden curves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from infx.config.library import Library
from infx.config.matrix import Recipe
from infx.config.project import Project
from infx.config.suggestions import did_you_mean
from infx.domain.errors import UsageError
from infx.domain.findings import Where

__all__ = ["Shelf", "family"]

_NO_NAME = re.compile(r"[^a-z0-9._-]+")
_LONGEST = 100
_METHODS = ("mtp", "eagle3", "dspark")
_THINKING = "on"
_NOWHERE = Where("import")


def family(label: str) -> str:
    """Return the hardware that a runner's label names: mi355x of ``cluster:mi355x-amds``."""
    return label.removeprefix("cluster:").split("-", 1)[0]


@dataclass(frozen=True, slots=True)
class Shelf:
    """The recipes and clusters of a project, and its golden curves; ``preferred`` names those to
    take where several fit a model."""

    project: Project
    preferred: Sequence[str] = ()
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, project: Project, preferred: Sequence[str] = ()) -> Shelf:
        """Return what ``project`` holds; a recipe of it that is faulty counts as absent.

        Raises UsageError ``bad-option`` for a golden curve that it lacks, ConfigError for faults of
        its clusters, beside which others would be written.
        """
        for name in preferred:
            if name not in project.goldens():
                hint = did_you_mean(name, project.goldens())
                raise UsageError("bad-option", f"--golden {name} is no golden curve", hint=hint)
        library = Library(project)
        found = {name: library.recipe(name, _NOWHERE) for name in project.recipes()}
        recipes = {name: recipe for name, recipe in found.items() if recipe}
        return cls(project, preferred, recipes, _hardware(project))

    def recipe(self, engine: str, model: str, hardware: str) -> str:
        """Return the name of the recipe for a model: the project's own, else the one to make."""
        for name, recipe in self.recipes.items():
            served = recipe.framework == engine and hardware in recipe.hardware
            if served and recipe.model.weights == f"hf:{model}":
                return name
        name = f"{model.rsplit('/', 1)[-1].lower()}-{hardware}-{engine}"
        return _NO_NAME.sub("-", name).strip("-._")[-_LONGEST:]

    def has_recipe(self, name: str) -> bool:
        """Return True when the project has a recipe of that name."""
        return self.project.recipe_path(name) is not None

    def recipe_axes(self, name: str) -> frozenset[str]:
        """Return the axes that a recipe of the project sets itself."""
        recipe = self.recipes.get(name)
        return frozenset(axis.name for axis in recipe.axes) if recipe else frozenset()

    def cluster(self, hardware: str) -> str:
        """Return the first cluster with this hardware, or ``""``."""
        return next((name for name, has in self.clusters.items() if has == hardware), "")

    def golden_fault(self, prefix: str, k: int) -> str:
        """Return why no acceptance length is known for a model's drafts, or ``""``."""
        names = self._goldens(prefix)
        if not names:
            return f"no golden curve of golden_al/ is named after {prefix}"
        if len(names) > 1:
            return f"several golden curves fit {prefix}: choose with --golden {' or '.join(names)}"
        curves = Library(self.project).golden(names[0], _NOWHERE) or {}
        if k not in curves.get(_THINKING, {}):
            return f"the golden curve {names[0]} has no length for K={k} with thinking on"
        return ""

    def speculation(self, prefix: str) -> dict[str, str]:
        """Return the section of an entry whose drafts `golden_fault` found nothing wrong with."""
        golden = self._goldens(prefix)[0]
        method = next(method for method in _METHODS if method in golden)
        return {"method": method, "golden": golden, "thinking": _THINKING}

    def _goldens(self, prefix: str) -> list[str]:
        """Return the curves named after a model: ``PREFIX_METHOD…``."""
        names = [name for name in self.project.goldens() if name.startswith(f"{prefix}_")]
        known = [name for name in names if any(method in name for method in _METHODS)]
        return [name for name in known if name in self.preferred] or known


def _hardware(project: Project) -> dict[str, str]:
    library = Library(project)
    clusters = library.clusters()
    library.report.check()
    return {name: cluster.hardware for name, cluster in clusters.items() if cluster}
