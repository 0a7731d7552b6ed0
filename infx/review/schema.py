"""JSON Schemas of a bundle and of the rules' files; `infx/review/schema/*.json` holds them."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from infx.ci import labels
from infx.domain.point import Accuracy, Agentic, FixedLengths
from infx.review.bundle import Manifest
from infx.review.reading import MANIFEST, PARTS
from infx.review.rules import RULES

__all__ = ["OURS", "bundle_schema", "rules_schema", "schemas", "write_schemas"]

OURS = ("bundle", *RULES)
"""What `infx/review/schema/` holds; the schema of labels is CI's."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/{name}"
_WORKLOADS = (FixedLengths, Agentic, Accuracy)


def bundle_schema() -> dict[str, Any]:
    """Return a schema whose properties are a bundle's typed files, each with the schema of its
    content; the other files are texts."""
    kinds: dict[str, Any] = {MANIFEST: Manifest, **PARTS}
    schemas, definitions = msgspec.json.schema_components(
        [*kinds.values(), *_WORKLOADS], schema_hook=_hook, ref_template=_REF
    )
    return {
        "$schema": _DRAFT,
        "title": "The typed files of a bundle that infx review reads",
        "type": "object",
        "properties": dict(zip(kinds, schemas, strict=False)),
        "required": list(kinds),
        "$defs": definitions,
    }


def rules_schema(name: str) -> dict[str, Any]:
    """Return the schema of the rules' file of that name."""
    return {"$schema": _DRAFT, **msgspec.json.schema(RULES[name], schema_hook=_hook)}


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of a bundle and those of all files of rules, CI's labels among them."""
    rules = {name: rules_schema(name) for name in RULES}
    return {"bundle": bundle_schema(), **rules, "labels": labels.schema()}


def write_schemas(folder: Path, names: Collection[str] = OURS) -> list[Path]:
    """Write the schemas of these names into ``folder``, which it makes; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        if name in names:
            text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
            (folder / f"{name}.json").write_text(text, "utf-8")
    return [folder / f"{name}.json" for name in names]


def _hook(kind: type) -> dict[str, Any]:
    """Describe the workload, which msgspec reads by the name in ``kind``."""
    if not hasattr(kind, "kinds"):
        raise NotImplementedError(f"no schema of {kind}")
    return {"anyOf": [{"$ref": _REF.format(name=one.__name__)} for one in _WORKLOADS]}
