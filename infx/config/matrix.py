"""What the YAML files say, after validation: frozen dataclasses with the place of every rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infx.config.expressions import Expression
from infx.config.sites import Cluster
from infx.domain.findings import Where
from infx.domain.point import Delegated, Model, Scalar

__all__ = [
    "AGENTIC_NUMBERS",
    "FIXED_NUMBERS",
    "AgenticSpec",
    "AxisValues",
    "Entry",
    "EvaluationSpec",
    "ExcludeRule",
    "IncludeRule",
    "Matrix",
    "Recipe",
    "Scenario",
    "SpeculationSpec",
    "Value",
    "WorkloadSpec",
]

Value = Scalar | tuple[Scalar, ...] | Expression
"""A literal, or an expression over the axes of the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisValues:
    """One axis of a scenario: distinct literals, or one expression (a derived field).

    ``default``: the recipe's, which the scenario does not name; ``where`` is the recipe's line.
    """

    name: str
    values: tuple[Scalar | tuple[int, ...], ...] | Expression
    where: Where
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludeRule:
    """Candidates for which ``when`` is true are not run, for this ``reason``."""

    when: Expression
    reason: str
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludeRule:
    """One more candidate beside the cross product; axes that it does not name must be derived,
    have one value in the scenario, or have a default. Exclude rules do not apply to it.

    ``places`` holds the place of each value that was read from a file."""

    values: Mapping[str, Value]
    where: Where
    places: Mapping[str, Where] = field(default_factory=dict)

    def place(self, axis: str) -> Where:
        """Return where the rule says the axis."""
        return self.places.get(axis, self.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSpec:
    """A throughput workload before resolution; fields as in domain.point.FixedLengths."""

    isl: Value
    osl: Value
    requests: Value
    warmup_requests: Value = 0
    seed: Value = 7
    duration_s: Value = None
    error_share: float = 0.05
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class AgenticSpec:
    """A workload of recorded sessions before resolution; fields as in domain.point.Agentic."""

    trace: str
    content: str = ""
    longest: int = 0
    duration_s: Value = 3600
    warmup_requests_per_lane: Value = 10
    cache_warmup_s: Value = 0
    seed: Value = 42
    trajectory_start_min_ratio: float = 0.25
    trajectory_start_max_ratio: float = 0.75
    idle_gap_cap_s: Value = None
    max_context: Value = None
    use_chat_template: bool = False
    error_share: float = 0.10
    where: Where


FIXED_NUMBERS = {
    **{"isl": 1, "osl": 1, "requests": 1},
    **{"warmup_requests": 0, "seed": 0, "duration_s": 1},
}
AGENTIC_NUMBERS = {
    **{"duration_s": 1, "warmup_requests_per_lane": 1, "cache_warmup_s": 0, "seed": 0},
    **{"idle_gap_cap_s": 1, "max_context": 1},
}
"""The fields of a workload that may be expressions, with their least values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A workload and the search space it is measured over; ``axes`` holds the recipe's too."""

    workload: WorkloadSpec | AgenticSpec
    axes: tuple[AxisValues, ...]
    include: tuple[IncludeRule, ...] = ()
    exclude: tuple[ExcludeRule, ...] = ()
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSpec:
    """One lm-eval task to run once for each server computation that differs; ``conc`` requests at
    a time. ``content`` is the sha256 of the task file or of the questions, and ``version:<n>`` of a
    task that infx writes itself. Other fields as in domain.point.Accuracy."""

    task: str
    limit: int | None
    shots: int = 5
    conc: int = 4
    seed: int = 0
    max_tokens: int = 256
    source: str = "generated"
    content: str = ""
    bars: Mapping[str, float] = field(default_factory=dict)
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationSpec:
    """How drafts are made and which golden curve gives their length under synthetic acceptance.

    ``lengths`` maps K to the acceptance length that the golden file holds for ``thinking``; the
    loader read it, so nothing else opens the file. ``golden`` empty means real acceptance, ``law``
    empty the engine's own.
    """

    method: str
    golden: str = ""
    thinking: str = ""
    law: str = ""
    draft: str = ""
    lengths: Mapping[int, float] = field(default_factory=dict)
    where: Where

    def lacks(self, k: int) -> tuple[str, str]:
        """Return the sentence for a K that the golden file has no length for, and its hint."""
        held = ", ".join(map(str, sorted(self.lengths))) or "no K"
        sentence = f"{self.golden} has no length for K={k} with thinking {self.thinking}"
        return sentence, f"it holds K = {held}; lengths are looked up, never interpolated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How an engine is launched for a model on a chip (recipes/NAME.yaml).

    ``axes`` are defaults of server axes, one value or one expression each, for scenarios that do
    not name them. ``option_places`` holds the place of each option that was read from a file.
    """

    name: str
    framework: str
    model: Model
    hardware: tuple[str, ...]
    axes: tuple[AxisValues, ...] = ()
    options: Mapping[str, Value] = field(default_factory=dict)
    option_places: Mapping[str, Where] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    chat_template: bool = False
    start_limit_s: int = 300
    delegated: Delegated | None = None
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A matrix entry: one model x image x engine x cluster with its scenarios.

    Its ``options`` stand over the recipe's.
    """

    name: str
    model_prefix: str
    precision: str
    framework: str
    image: str
    image_digest: str
    recipe: Recipe
    cluster: Cluster
    scenarios: tuple[Scenario, ...]
    evaluations: tuple[EvaluationSpec, ...] = ()
    speculation: SpeculationSpec | None = None
    options: Mapping[str, Value] = field(default_factory=dict)
    option_places: Mapping[str, Where] = field(default_factory=dict)
    where: Where

    def option_place(self, name: str) -> Where:
        """Return where the option that counts is set: in the entry, else in its recipe."""
        places, where = self.recipe.option_places, self.recipe.where
        if name in self.options:
            places, where = self.option_places, self.where
        return places.get(name, where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All entries of one or more files; ``inputs`` maps each file read to its sha256."""

    entries: tuple[Entry, ...]
    inputs: Mapping[str, str]
