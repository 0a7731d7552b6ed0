"""The reviewer's rules: versioned data files, each with a JSON Schema in `infx/review/schema/`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from infx.ci.labels import LabelRules, read_rules
from infx.config.nodes import Report, parse_yaml, plain
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = [
    "NAMES",
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
_LABELS = Path(__file__).parents[1] / "ci/data"

Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
FilterBars = Mapping[str, Share]
TaskBars = Mapping[str, FilterBars]


class _File(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    version: Count

    @property
    def patterns(self) -> tuple[str, ...]:
        """Its regular expressions."""
        return ()


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
    """What is asked of engines, by framework; ``documentation`` holds regular expressions of the
    addresses where it is published."""

    first_class: tuple[str, ...]
    upstream_images: Mapping[str, tuple[str, ...]]
    documented: tuple[str, ...]
    documentation: Mapping[str, tuple[str, ...]] = {}
    new_hardware: tuple[str, ...] = ()

    @property
    def patterns(self) -> tuple[str, ...]:
        """Its regular expressions."""
        return tuple(pattern for found in self.documentation.values() for pattern in found)


class Source(_File, frozen=True, kw_only=True):
    """Regular expressions of what a change and a started server may not hold; ``{engine}`` in
    ``patches`` stands for one of ``engines``."""

    prose: tuple[str, ...]
    architecture: tuple[str, ...]
    engines: tuple[str, ...] = ()
    patch_files: tuple[str, ...]
    patches: tuple[str, ...]
    waiver_sections: tuple[str, ...]
    draft: tuple[str, ...]

    @property
    def patching(self) -> tuple[str, ...]:
        """``patches`` with the engines named."""
        named = f"(?:{'|'.join(self.engines)})"
        return tuple(pattern.replace("{engine}", named) for pattern in self.patches)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Its regular expressions."""
        found = (self.prose, self.architecture, self.patch_files, self.patching, self.draft)
        return tuple(pattern for patterns in found for pattern in patterns)


class EvidenceRules(_File, frozen=True, kw_only=True):
    """How much evidence is enough."""

    frontier_points: Count
    acceptance_share: Share
    benchmark_paths: tuple[str, ...]

    @property
    def patterns(self) -> tuple[str, ...]:
        """Its regular expressions."""
        return self.benchmark_paths


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
    labels: LabelRules


RULES: Mapping[str, type[_File]] = {
    "bars": Bars,
    "model-status": ModelStatus,
    "engines": Engines,
    "source": Source,
    "evidence": EvidenceRules,
    "signoff": Signoff,
}
"""The kinds of files of rules by name; beside them stand CI's own, ``labels``."""

NAMES = (*RULES, "labels")


def load_rules(own: Mapping[str, str] | None = None) -> Rules:
    """Return the rules: of ``own`` (name -> YAML), the rest as infx brings them.

    Raises ConfigError (``bad-rules``, or what the YAML lacks) with the findings of all files.
    """
    report, own = Report(), own or {}
    for name in sorted(set(own) - set(NAMES)):
        known = ", ".join(NAMES)
        report.error("bad-rules", f"there are no rules {name}", Where(f"rules/{name}.yaml"), known)
    found = {
        name.replace("-", "_"): _load(name, own[name], report) if name in own else _ours(name)
        for name in NAMES
    }
    report.check()
    return Rules(**found)


@cache
def _ours(name: str) -> Any:
    folder, report = _DATA if name in RULES else _LABELS, Report()
    found = _load(name, (folder / f"{name}.yaml").read_text("utf-8"), report)
    report.check()
    return found


def _load(name: str, text: str, report: Report) -> Any:
    file, before = f"rules/{name}.yaml", len(report.findings)
    node = parse_yaml(text.encode(), file, report)
    if node is None or len(report.findings) > before:
        return None
    try:
        return _read(name, plain(node), file)
    except ConfigError as error:
        report.take(error)
        return None


def _read(name: str, content: object, file: str) -> object:
    if name not in RULES:
        return read_rules(content, file)
    try:
        rules = msgspec.convert(content, RULES[name])
        for pattern in rules.patterns:
            re.compile(pattern)
    except (msgspec.ValidationError, re.error) as error:
        raise ConfigError([Finding("bad-rules", "error", f"{error}", Where(file))]) from error
    return rules
