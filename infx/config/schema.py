"""JSON Schemas of the files, made from the pydantic models; `configs/schema/*.json` holds them.

Editors read them, and so does `infx.config.shape`, which asks pydantic only about what does not
conform. Each section is a definition under its own name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from infx.config.hardware import VERSION

if TYPE_CHECKING:
    from infx.config.sections import Section

__all__ = [
    "clusters_schema",
    "hardware_schema",
    "matrix_schema",
    "model_of",
    "recipe_schema",
    "write_schemas",
]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def matrix_schema() -> dict[str, Any]:
    """Return the JSON Schema of a matrix file: entries by name."""
    sections = [
        *("WorkloadSection", "AgenticSection", "ExcludeSection"),
        *("Axes", "Candidate", "ScenarioSection"),
        *("EvaluationSection", "SpeculationSection", "EntrySection"),
    ]
    return _by_name("An infx matrix", sections)


def recipe_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recipe."""
    definitions = _definitions(["ModelSection", "DelegatedSection", "RecipeSection"])
    title, ref = "An infx recipe", "#/$defs/RecipeSection"
    return {"$schema": _DRAFT, "title": title, "$ref": ref, "$defs": definitions}


def clusters_schema() -> dict[str, Any]:
    """Return the JSON Schema of configs/clusters.yaml: clusters by name."""
    sections = ["TimeLimitsSection", "ContainerSection", "ExcludedNodesSection"]
    sections += ["SlurmSection", "SrtSection", "ClusterSection"]
    return _by_name("The clusters of an infx project", sections)


def hardware_schema() -> dict[str, Any]:
    """Return the JSON Schema of configs/hardware.yaml: hardware classes by name."""
    sections = ["PriceSection", "ProvisionedSection", "HardwareSection"]
    made = _by_name("Prices and provisioned power of an infx project's hardware", sections)
    version = {"type": "integer", "minimum": 1, "description": "raised with each change"}
    return {**made, "properties": {VERSION: version}}


def model_of(section: str) -> type[Section]:
    """Return the pydantic model of that name; the first call imports pydantic."""
    from infx.config import cluster_models, hardware_models, models

    for module in (cluster_models, hardware_models):
        if section in module.__all__:
            return cast("type[Section]", getattr(module, section))
    return cast("type[Section]", getattr(models, section))


def write_schemas(folder: Path) -> list[Path]:
    """Write the schema of each kind of file into ``folder``; return their paths."""
    schemas = {
        "matrix": matrix_schema,
        "recipe": recipe_schema,
        "clusters": clusters_schema,
        "hardware": hardware_schema,
    }
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, schema in schemas.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", "utf-8")
        written.append(path)
    return written


def _by_name(title: str, sections: list[str]) -> dict[str, Any]:
    return {
        "$schema": _DRAFT,
        "title": title,
        "type": "object",
        "additionalProperties": {"$ref": f"#/$defs/{sections[-1]}"},
        "minProperties": 1,
        "$defs": _definitions(sections),
    }


def _definitions(sections: list[str]) -> dict[str, Any]:
    """Return the schema of each section (inner ones first), which refer to each other by name."""
    from infx.config.axis_schema import axes_schema

    known: dict[str, Any] = {}
    for name in sections:
        if name in ("Axes", "Candidate"):
            schema = axes_schema(several=name == "Axes")
        else:
            schema = _untitled(model_of(name).model_json_schema())
        # Inner sections are definitions of the file, under the same names.
        own = {key: value for key, value in schema.items() if key != "$defs"}
        known[name] = {key: _referring(value, known) for key, value in own.items()}
    return known


def _referring(value: Any, known: dict[str, Any]) -> Any:
    """Return ``value`` with each part that is a known section replaced by a reference to it."""
    if isinstance(value, list):
        return [_referring(item, known) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _referring(item, known) for key, item in value.items()}
    bare = {key: item for key, item in inner.items() if key not in ("description", "default")}
    for name, section in known.items():
        if {k: v for k, v in section.items() if k != "description"} == bare:
            return {"$ref": f"#/$defs/{name}"}
    return inner


def _untitled(value: Any) -> Any:
    """Return a schema without the titles that pydantic makes of the keys."""
    if isinstance(value, list):
        return [_untitled(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _untitled(item)
        for key, item in value.items()
        if not (key == "title" and isinstance(item, str))
    }
