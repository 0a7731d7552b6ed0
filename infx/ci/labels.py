"""Labels to settings: exactly one primary, modifiers need one, nothing that only looks like one.

The labels and what they mean are data (``data/labels.yaml``); `schema` is the form of that file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from infx.config.suggestions import closest
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = ["Evaluations", "Fast", "LabelRules", "Settings", "read_rules", "schema", "settings"]

Evaluations = Literal["planned", "every", "only"]

_ALIKE = 0.85
"""Likeness from which a label is taken for a misspelt one (of difflib; ``full-swep-enabled`` has
0.97, ``performance`` under 0.5)."""


class _Section(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """A mapping of the file: keys with hyphens, none that is not known."""


class Fast(_Section, frozen=True, kw_only=True):
    """How recorded sessions are replayed to see a change sooner; fields as in Agentic."""

    duration_s: Annotated[int, msgspec.Meta(ge=1)]
    warmup_requests_per_lane: Annotated[int, msgspec.Meta(ge=1)]


class Primary(_Section, frozen=True, kw_only=True):
    """A label that asks for a sweep: whether a canary goes first, and a failure stops its entry."""

    canary: bool
    fail_fast: bool


class Modifier(_Section, frozen=True, kw_only=True):
    """A label that changes a sweep; ``reusable`` False: its data stand for no other run."""

    evaluations: Literal["every", "only"] | None = None
    agentic: Fast | None = None
    reusable: bool = True


class LabelRules(_Section, frozen=True, kw_only=True):
    """The labels by name, the words that a label meant for CI holds, and whose comments count:
    ``associations`` are GitHub's words for an author's place in the repository."""

    version: Literal[1]
    primaries: dict[str, Primary]
    modifiers: dict[str, Modifier] = {}
    words: tuple[str, ...] = ()
    associations: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All labels, primaries first."""
        return (*self.primaries, *self.modifiers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the labels of a pull request ask for.

    ``only`` and ``every`` may come together: ``evaluations_only`` leaves throughput out,
    ``every_evaluation`` evaluates each point. ``fast`` (None: as published) shortens replays.
    ``reusable``: what is measured so may stand for a run on the main branch.
    """

    primary: str
    modifiers: tuple[str, ...] = ()
    canary: bool
    fail_fast: bool
    evaluations_only: bool = False
    every_evaluation: bool = False
    fast: Fast | None = None
    reusable: bool = True


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of label rules."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, **msgspec.json.schema(LabelRules)}


def read_rules(content: object, source: str) -> LabelRules:
    """Return the rules that a parsed YAML file holds.

    Raises ConfigError (``bad-label-rules``) for another form, and for one name in both lists.
    """
    try:
        rules = msgspec.convert(content, LabelRules)
    except msgspec.ValidationError as error:
        raise _bad_rules(str(error), source) from error
    if both := sorted(rules.primaries.keys() & rules.modifiers.keys()):
        raise _bad_rules(f"{both[0]} is a primary and a modifier", source)
    if not rules.primaries:
        raise _bad_rules("there is no primary label", source)
    return rules


def _bad_rules(fault: str, source: str) -> ConfigError:
    sentence = f"not rules of labels: {fault}"
    return ConfigError([Finding("bad-label-rules", "error", sentence, Where(source))])


def settings(labels: Iterable[str], rules: LabelRules) -> Settings | None:
    """Return what the labels ask for; None where none of them is about sweeps.

    Raises ConfigError with every fault: ``two-primaries``, ``modifier-alone``, ``label-unknown``.
    """
    given = set(labels)
    primaries = [name for name in rules.primaries if name in given]
    modifiers = [name for name in rules.modifiers if name in given]
    faults = [
        *(_unknown(name, rules) for name in sorted(given) if _sweep_like(name, rules)),
        *_faults(primaries, modifiers, rules),
    ]
    if faults:
        raise ConfigError(faults)
    return _settings(primaries[0], modifiers, rules) if primaries else None


def _settings(primary: str, names: Collection[str], rules: LabelRules) -> Settings:
    modifiers = [rules.modifiers[name] for name in names]
    asked = {modifier.evaluations for modifier in modifiers}
    return Settings(
        primary=primary,
        modifiers=tuple(names),
        canary=rules.primaries[primary].canary,
        fail_fast=rules.primaries[primary].fail_fast,
        evaluations_only="only" in asked,
        every_evaluation="every" in asked,
        fast=next((m.agentic for m in modifiers if m.agentic), None),
        reusable=all(m.reusable for m in modifiers),
    )


def _faults(
    primaries: Collection[str], modifiers: Collection[str], rules: LabelRules
) -> list[Finding]:
    found = []
    if len(primaries) > 1:
        sentence = f"{_listed(primaries)} each ask for a sweep; a pull request has one of them"
        hint = "keep the one that is meant, remove the rest"
        found.append(Finding("two-primaries", "error", sentence, hint=hint))
    if modifiers and not primaries:
        sentence = f"no label asks for the sweep that {_listed(modifiers)} would change"
        hint = f"add one of {', '.join(rules.primaries)}, or remove {_listed(modifiers)}"
        found.append(Finding("modifier-alone", "error", sentence, hint=hint))
    return found


def _unknown(label: str, rules: LabelRules) -> Finding:
    meant = closest(label, rules.names)
    known = ", ".join(rules.names)
    hint = f"rename it to {meant}, or remove it" if meant else f"remove it; labels are {known}"
    sentence = f"`{label}` looks like a label that asks for a sweep, and is none"
    return Finding("label-unknown", "error", sentence, hint=hint)


def _sweep_like(label: str, rules: LabelRules) -> bool:
    if label in rules.names:
        return False
    words = re.split(r"[^a-z0-9]+", label.lower())
    return not {*words}.isdisjoint(rules.words) or bool(closest(label, rules.names, cutoff=_ALIKE))


def _listed(names: Collection[str]) -> str:
    *more, last = names
    return f"{', '.join(more)} and {last}" if more else last
