"""The shape of matrices and recipes as pydantic models: keys, types, ranges, vocabularies.

Used at the boundary only: `infx.config.schema` writes them as JSON Schema, and `infx.config.shape`
checks each mapping of a file against its model. A nested section is named for the schema and
skipped by its parent's validation, since the reader of that section checks it with its own place;
so one bad section hides nothing of the others.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SkipValidation, WithJsonSchema

from infx.config.axis_schema import EXPRESSION_SCHEMA, axes_schema
from infx.config.names import LINE, NAME, RECIPE_KEY, WEIGHTS
from infx.config.sections import Count, Env, Line, Name, Positive, Section, Text, named
from infx.domain.vocabulary import FRAMEWORKS, LAWS, METHODS, PRECISIONS, THINKING

__all__ = [
    "AgenticSection",
    "DelegatedSection",
    "EntrySection",
    "EvaluationSection",
    "ExcludeSection",
    "ModelSection",
    "RecipeSection",
    "ScenarioSection",
    "SpeculationSection",
    "WorkloadSection",
]

_WHOLE = {"anyOf": [{"type": "integer"}, EXPRESSION_SCHEMA]}
_OPTION = {"type": ["string", "number", "boolean", "null", "array"]}

Value = Annotated[Any, WithJsonSchema(_WHOLE)]
"""A whole number or an expression; its reader checks it."""

Options = Annotated[dict[Name, Any], named(NAME, _OPTION)]
_BAR = {"type": "number", "minimum": 0, "maximum": 1}
Bars = Annotated[dict[Line, Annotated[float, Field(ge=0, le=1)]], named(LINE, _BAR)]


Ratio = Annotated[float, Field(ge=0, le=1)]


class WorkloadSection(Section):
    """What the client sends."""

    isl: Value = Field(description="input tokens a request")
    osl: Value = Field(description="output tokens a request")
    requests: Value = Field(description="profiled requests")
    warmup_requests: Value = Field(0, description="requests before, never counted")
    seed: Value = Field(7, description="seed of the random prompts")
    duration_s: Value = Field(None, description="stop after so many seconds")
    error_share: float = Field(
        0.05, ge=0, le=1, description="largest share of failed requests in a valid point"
    )


class AgenticSection(Section):
    """Recorded agentic-coding sessions; the defaults are those of the public runs."""

    trace: Text = Field(
        description="a public data set that aiperf knows, or a folder (a file) of Weka traces"
    )
    duration_s: Value = Field(
        3600, description="seconds to measure; a submission takes 900 or more"
    )
    warmup_requests_per_lane: Value = Field(
        10, description="requests that each lane sends before, never counted"
    )
    cache_warmup_s: Value = Field(
        0, description="after a lane's first warm-up request, go on for so many seconds"
    )
    seed: Value = Field(42, description="seed of the start of each session")
    trajectory_start_min_ratio: Ratio = Field(0.25, description="earliest start in a session")
    trajectory_start_max_ratio: Ratio = Field(0.75, description="latest start in a session")
    idle_gap_cap_s: Value = Field(None, description="shorten longer pauses (not for a submission)")
    max_context: Value = Field(None, description="leave sessions out that grow over so many tokens")
    use_chat_template: bool = Field(
        False, description="aiperf counts input tokens as the chat template makes them"
    )
    error_share: Ratio = Field(
        0.10, description="largest share of failed requests in a valid point"
    )


class ExcludeSection(Section):
    """Candidates that are not run."""

    when: Text = Field(description="an expression over the axes")
    reason: Text = Field(description="why; the ledger shows it")


class ScenarioSection(Section):
    """A workload and the search space it is measured over."""

    workload: SkipValidation[WorkloadSection | AgenticSection] = Field(
        description="requests of fixed lengths, or recorded sessions (a trace)"
    )
    axes: Annotated[dict[str, Any], WithJsonSchema(axes_schema(several=True))] = Field(
        description="what varies: values, lists of values, or expressions over other axes"
    )
    include: list[Annotated[Any, WithJsonSchema(axes_schema(several=False))]] = Field(
        [], description="candidates beside the cross product"
    )
    exclude: list[SkipValidation[ExcludeSection]] = Field([])


class EvaluationSection(Section):
    """One lm-eval task, run once for each server computation that differs."""

    task: Text = Field(
        description="gsm_mini, gsm_mini_heldout, gsm8k, or the path of an lm-eval task file"
    )
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="questions; null: all of them"
    )
    shots: int = Field(5, ge=0, le=100, description="worked examples before each question")
    conc: Positive = Field(4, description="requests in flight")
    seed: int = 0
    max_tokens: Positive = Field(256, description="longest answer")
    source: Text | None = Field(
        None, description="where gsm8k comes from: hub, or a folder with train.jsonl and test.jsonl"
    )
    bars: Bars = Field({}, description="least score for each filter")


class SpeculationSection(Section):
    """How drafts are made, and which golden curve gives their acceptance length."""

    method: Literal[METHODS]  # type: ignore[valid-type]
    golden: Name | None = Field(None, description="a file of golden_al/; none: real acceptance")
    thinking: Literal[THINKING] | None = None  # type: ignore[valid-type]
    law: Literal[LAWS] | None = Field(  # type: ignore[valid-type]
        None, description="how accepted tokens are drawn (default: as the engine draws them)"
    )
    draft: Text | None = Field(None, description="the model that drafts: a hub id or a path")


class EntrySection(Section):
    """One model x image x engine x cluster with its scenarios."""

    model_prefix: Name = Field(description="the model's family; bars are keyed by it")
    precision: Literal[PRECISIONS]  # type: ignore[valid-type]
    framework: Literal[FRAMEWORKS]  # type: ignore[valid-type]
    image: Text = Field(description="the engine's build: pypi:name==version or a container image")
    image_digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    recipe: Name = Field(description="a file of recipes/, without .yaml")
    cluster: Name = Field(description="a key of configs/clusters.yaml")
    speculation: SkipValidation[SpeculationSection] | None = None
    options: Options = Field({}, description="engine options over the recipe's")
    scenarios: list[SkipValidation[ScenarioSection]] = Field(min_length=1)
    evaluations: list[SkipValidation[EvaluationSection]] = Field([])


class ModelSection(Section):
    """The weights under test."""

    name: Text = Field(description="the served model id")
    weights: Annotated[str, Field(pattern=WEIGHTS)] = Field(
        description="package:MODULE/FILE, random:SEED, hf:OWNER/NAME, engines:NAME (a folder of"
        " models/ among the engines), shipped (the checkpoint that comes with infx's engine), or a"
        " path"
    )
    revision: Line = Field("", description="what the weights are: a commit, a checksum")
    tokenizer: Text = Field("engine", description="gguf, engine, a folder or a hub id")
    heads: Count = Field(0, description="attention heads; 0: unknown")
    kv_heads: Count = Field(0, description="key-value heads; 0: unknown")


class DelegatedSection(Section):
    """A deployment that srt-slurm makes of a recipe of its own."""

    recipe: Text = Field(description="FILE or FILE:SELECTOR, from the project's folder")
    gpus: Positive = Field(description="accelerators of all its workers, over all nodes")
    set: Annotated[
        dict[Annotated[str, Field(pattern=RECIPE_KEY)], Text],
        named(RECIPE_KEY, {"type": "string", "minLength": 1, "pattern": LINE}),
    ] = Field({}, description="dotted keys of it, as srtctl's --set has them, in quotes")


class RecipeSection(Section):
    """How an engine is launched for a model on a chip."""

    framework: Literal[FRAMEWORKS] = Field(description="the engine")  # type: ignore[valid-type]
    model: SkipValidation[ModelSection] = Field(description="the weights under test")
    hardware: list[Text] = Field(min_length=1, description="hardware classes it is written for")
    axes: Annotated[dict[str, Any], WithJsonSchema(axes_schema(several=False, load=False))] = Field(
        {},
        description="server axes, a value or an expression each, where a scenario does not name"
        " them",
    )
    options: Options = Field({}, description="engine options: literals or expressions over axes")
    env: Env = Field({}, description="environment variables of the server, as they are")
    chat_template: bool = Field(
        False, description="requests go through the model's chat template; speculation needs it"
    )
    start_limit_s: Positive = Field(300, description="seconds without progress before giving up")
    srt: SkipValidation[DelegatedSection] | None = Field(
        None, description="srt-slurm launches it, of a recipe of its own: for executor srt"
    )
