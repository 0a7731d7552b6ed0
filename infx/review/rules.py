"""The reviewer's rules: versioned data files, each with a JSON Schema in `infx/review/schema/`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from infx.config.nodes import Report, parse_yaml, plain
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = [
    "RULES",
    "Bars",
    "Engines",
    "EvidenceRules",
    "ModelRule",
    "ModelStatus",
    "Rules",
    "Signoff",
    "SignoffItem",
    "Source",
    "load_rules",
]

_DATA = Path(__file__).parent / "data"

Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
FilterBars = Mapping[str, Share]
TaskBars = Mapping[str, FilterBars]


class _File(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    version: Count


class Bars(_File, frozen=True, kw_only=True):
    """The least score (0 … 1) by task and filter: the default, and models' own by prefix."""

    default: TaskBars
    models: Mapping[str, TaskBars] = {}

    def of(self, prefix: str, task: str) -> FilterBars:
        """Return the bars of a task by filter; empty where it has none."""
        return self.models.get(prefix, {}).get(task) or self.default.get(task, {})


class ModelRule(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True
):
    """What may be submitted of a model; no ``drafts``: any."""

    scenarios: Mapping[str, Literal["active", "deprecated"]]
    drafts: tuple[str, ...] = ()


class ModelStatus(_File, frozen=True, kw_only=True):
    """The models that may be submitted, by prefix."""

    models: Mapping[str, ModelRule]


class Engines(_File, frozen=True, kw_only=True):
    """What is asked of engines, by framework."""

    first_class: tuple[str, ...]
    upstream_images: Mapping[str, tuple[str, ...]]
    documented: tuple[str, ...]
    new_hardware: tuple[str, ...] = ()


class Source(_File, frozen=True, kw_only=True):
    """Regular expressions of what a change and a started server may not hold."""

    prose: tuple[str, ...]
    architecture: tuple[str, ...]
    patch_files: tuple[str, ...]
    patches: tuple[str, ...]
    waiver_sections: tuple[str, ...]
    draft: tuple[str, ...]


class EvidenceRules(_File, frozen=True, kw_only=True):
    """How much evidence is enough."""

    frontier_points: Count
    acceptance_share: Share
    reuse_associations: tuple[str, ...]
    benchmark_paths: tuple[str, ...]


class SignoffItem(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True
):
    """One line that a code owner checks."""

    id: str
    text: str


class Signoff(_File, frozen=True, kw_only=True):
    """The latest template of a sign-off."""

    opening: str
    items: tuple[SignoffItem, ...]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """All files of rules."""

    bars: Bars
    model_status: ModelStatus
    engines: Engines
    source: Source
    evidence: EvidenceRules
    signoff: Signoff


RULES: Mapping[str, type[_File]] = {
    "bars": Bars,
    "model-status": ModelStatus,
    "engines": Engines,
    "source": Source,
    "evidence": EvidenceRules,
    "signoff": Signoff,
}
"""The kinds of files of rules by name."""


def load_rules(own: Mapping[str, str] | None = None) -> Rules:
    """Return the rules: of ``own`` (name -> YAML), the rest as infx brings them.

    Raises ConfigError (``bad-rules``, or what the YAML lacks) with the findings of all files.
    """
    report, own = Report(), own or {}
    for name in sorted(set(own) - set(RULES)):
        known = ", ".join(RULES)
        report.error("bad-rules", f"there are no rules {name}", Where(f"rules/{name}.yaml"), known)
    found = {name.replace("-", "_"): _load(name, own, report) for name in RULES}
    report.check()
    return Rules(**found)


def _load(name: str, own: Mapping[str, str], report: Report) -> Any:
    file = f"rules/{name}.yaml"
    text = own[name] if name in own else (_DATA / f"{name}.yaml").read_text("utf-8")
    before = len(report.findings)
    node = parse_yaml(text.encode(), file, report)
    if node is None or len(report.findings) > before:
        return None
    try:
        return msgspec.convert(plain(node), RULES[name])
    except msgspec.ValidationError as error:
        report.take(ConfigError([Finding("bad-rules", "error", f"{error}", Where(file))]))
        return None
