"""What an import made, as the text of files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from infx.config.inferencex.native import Native
from infx.config.project import Project
from infx.domain.errors import UsageError

__all__ = ["files_of"]

_WIDTH = 120


def files_of(native: Native, project: Project) -> dict[Path, str]:
    """Return the text of each file to write into a project: matrices, recipes, and its clusters
    with those that were added.

    Raises UsageError ``bad-option`` for a matrix or a recipe that exists: none is replaced.
    """
    texts = {
        project.root / "configs" / f"{stem}.yaml": _text(entries, f"{stem}.yaml")
        for stem, entries in native.matrices.items()
    }
    for name, recipe in native.recipes.items():
        source = "master configurations; its scripts hold the engine's options"
        texts[project.root / "recipes" / f"{name}.yaml"] = _text(recipe, source)
    for path in texts:
        if path.exists():
            hint = "name another folder, or move it away"
            raise UsageError("bad-option", f"{path} exists", hint=hint)
    if native.clusters:
        texts[project.root / "configs" / "clusters.yaml"] = _clusters(native, project)
    return texts


def _clusters(native: Native, project: Project) -> str:
    known = project.clusters_path().read_text("utf-8").rstrip()
    source = "runners.yaml; each site's partition, account and folders are missing"
    return f"{known}\n\n{_text(native.clusters, source)}"


def _text(content: Mapping[str, Any], source: str) -> str:
    """Return YAML with keys in their order; a collection of plain values stands on one line."""
    body = yaml.dump(
        dict(content),
        Dumper=yaml.CSafeDumper,
        sort_keys=False,
        default_flow_style=None,
        width=_WIDTH,
        allow_unicode=True,
    )
    return f"# Made by infx import from InferenceX's {source}.\n{body}"
