"""A resolved combination to a server configuration and a point with its identities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from infx import __version__
from infx.config.expressions import Expression
from infx.config.matrix import (
    AGENTIC_NUMBERS,
    FIXED_NUMBERS,
    AgenticSpec,
    Entry,
    EvaluationSpec,
    Value,
    WorkloadSpec,
)
from infx.domain.acceptance import Acceptance
from infx.domain.axes import AXES, Axes
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where
from infx.domain.identity import content_id
from infx.domain.point import (
    SERVER_AXES,
    Accuracy,
    Agentic,
    Arm,
    FixedLengths,
    Harness,
    Point,
    Workload,
)
from infx.frameworks.base import Framework, Option
from infx.frameworks.options import fault
from infx.golden import acceptance
from infx.plan.expand import Values, memoised, whole

__all__ = [
    "OWN",
    "ArmMaker",
    "PointMaker",
    "accuracy",
    "identities",
    "throughput",
    "workload_identity",
]

OWN = "pypi:infx"
"""The image of infx's own engine: it is of this very version."""

_SHORT = {"conc": "c", "max_num_seqs": "mns", "tp": "tp", "pp": "pp", "ep": "ep", "k": "k"}
_OFFLOAD = {"kv_offload": "", "kv_offload_backend": "", "kv_offload_gb": "gb"}
"""Axes that a name tells where they are set, by their value and these letters."""


class ArmMaker:
    """Makes the arms of one entry, each distinct configuration once."""

    def __init__(self, entry: Entry, framework: Framework) -> None:
        """Each value of an option must be of the kind that ``framework`` says."""
        self.entry, self._laws = entry, framework.laws
        known = framework.options
        self.options = {**entry.recipe.options, **entry.options}
        self._evaluate = {
            name: _value(value, partial(_check_option, known[name], entry.option_place(name)))
            for name, value in self.options.items()
            if name in known  # lint names the others
        }
        self._made: dict[Any, Arm] = {}

    def arm(self, values: Values, mode: str) -> Arm:
        """Return the server configuration for ``values``; ``mode`` as in Point.mode.

        An evaluation has real acceptance, whatever the throughput points use.
        """
        options = {name: evaluate(values) for name, evaluate in self._evaluate.items()}
        key = (mode, *(values[name] for name in SERVER_AXES), *options.values())
        if key not in self._made:
            self._made[key] = self._make(values, options, mode)
        return self._made[key]

    def _make(self, values: Values, options: Mapping[str, Any], mode: str) -> Arm:
        entry, recipe = self.entry, self.entry.recipe
        return Arm(
            framework=entry.framework,
            image=f"{OWN}=={__version__}" if entry.image == OWN else entry.image,
            image_digest=entry.image_digest,
            recipe=recipe.name,
            model=recipe.model,
            cluster=entry.cluster.name,
            hardware=entry.cluster.hardware,
            axes=Axes(conc=0, **{name: values[name] for name in SERVER_AXES}),
            acceptance=self._acceptance(values["k"], mode),
            method=entry.speculation.method if entry.speculation and values["k"] else "none",
            draft=entry.speculation.draft if entry.speculation and values["k"] else "",
            options=options,
            env=recipe.env,
            start_limit_s=recipe.start_limit_s,
            accelerators=entry.cluster.gpus_per_node > 0,
            delegated=recipe.delegated,
        )

    def _acceptance(self, k: int, mode: str) -> Acceptance:
        if mode == "evaluation" or self.entry.speculation is None:
            return Acceptance(k=k)
        return acceptance(self.entry.speculation, k, next(iter(self._laws), "min-variance"))


class PointMaker:
    """Makes the points of one entry, with their three identities."""

    def __init__(self, arms: ArmMaker, harness: Harness) -> None:
        self.arms, self.harness = arms, harness
        self._arm_content: dict[int, tuple[Arm, dict[str, Any]]] = {}

    def point(
        self,
        arm: Arm,
        values: Values,
        workload: Workload,
        mode: Any,
        expressions: Mapping[str, str],
        varied: Iterable[str],
    ) -> Point:
        """Return the point for a resolved combination.

        ``expressions`` are the fields that follow the concurrency (their value is replaced by the
        text in curve_id); ``varied`` the axes that tell this point from its neighbours by name.
        """
        content = self._content(values, arm, workload, mode)
        point_id, curve_id, series_id = identities(content, expressions)
        return Point(
            point_id=point_id,
            curve_id=curve_id,
            series_id=series_id,
            entry=self.arms.entry.name,
            name=_name(self.arms.entry.name, values, workload, varied),
            mode=mode,
            conc=values["conc"],
            queueing=values["queueing"],
            arm=arm,
            workload=workload,
            harness=self.harness,
            expressions=dict(expressions),
        )

    def _content(self, values: Values, arm: Arm, workload: Workload, mode: str) -> dict[str, Any]:
        if id(arm) not in self._arm_content:
            self._arm_content[id(arm)] = (arm, arm.identity())
        return {
            "mode": mode,
            "conc": values["conc"],
            "arm": self._arm_content[id(arm)][1],
            "workload": workload_identity(workload),
            "harness": self.harness,
        }


def identities(content: Mapping[str, Any], expressions: Mapping[str, str]) -> tuple[str, str, str]:
    """Return ``point_id``, ``curve_id`` and ``series_id`` of a point's content; ``expressions`` are
    the fields of it that follow the concurrency."""
    curve = _curve_content(content, expressions)
    return content_id(content), content_id(curve), content_id(_series_content(curve))


def workload_identity(workload: Workload) -> dict[str, Any]:
    """Return what identifies a workload: not the limits that only judge it, and no paths."""
    left_out = {"bars", "error_share", "source", "longest"}
    if isinstance(workload, Accuracy) and "/" in workload.task:
        left_out.add("task")  # its content identifies it
    if isinstance(workload, Agentic) and workload.content:
        left_out.add("trace")
    names = (field.name for field in fields(workload) if field.name not in left_out)
    return {name: getattr(workload, name) for name in names}


def throughput(spec: WorkloadSpec | AgenticSpec) -> Callable[[Values], FixedLengths | Agentic]:
    """Return a function from a combination to the workload that ``spec`` describes for it.

    It raises ConfigError where an expression gives no whole number, or too small a one.
    """
    agentic = isinstance(spec, AgenticSpec)
    kind, numbers = (Agentic, AGENTIC_NUMBERS) if agentic else (FixedLengths, FIXED_NUMBERS)
    evaluate = {
        name: _value(getattr(spec, name), partial(whole, name, least, spec.where))
        for name, least in numbers.items()
    }
    said = {f.name: getattr(spec, f.name) for f in fields(spec) if f.name not in numbers}
    said.pop("where")

    def resolve(combination: Values) -> FixedLengths | Agentic:
        return kind(**said, **{name: get(combination) for name, get in evaluate.items()})

    return resolve


def accuracy(spec: EvaluationSpec) -> Accuracy:
    """Return the evaluation workload of ``spec``."""
    return Accuracy(
        task=spec.task,
        limit=spec.limit,
        shots=spec.shots,
        seed=spec.seed,
        max_tokens=spec.max_tokens,
        source=spec.source,
        content=spec.content,
        bars=spec.bars,
    )


def _value(value: Value, check: Callable[[Any], Any]) -> Callable[[Values], Any]:
    """Return a value as a function of a combination; only what is computed needs the check."""
    if isinstance(value, Expression):
        return memoised(value, check)
    return lambda _: value


def _check_option(option: Option, where: Where, raw: Any) -> Any:
    if raw is None:
        sentence = f"{option.name} has no value: its expression uses an axis that is not set"
        hint = "set the axis in the scenario (max-num-seqs: conc), or write the option's value"
        raise ConfigError([Finding("expression-failed", "error", sentence, where, hint)])
    value = whole(option.name, 0, where, raw) if option.kind is int else raw
    if sentence := fault(option, value):
        raise ConfigError([Finding("option-value", "error", sentence, where)])
    return value


def _curve_content(content: Mapping[str, Any], expressions: Mapping[str, str]) -> dict[str, Any]:
    arm = content["arm"]
    arm = arm | {name: _replaced(arm[name], expressions) for name in ("axes", "options")}
    # An axis that follows is part of the curve where it has its default value too.
    arm["axes"] |= {n: f"={text}" for n, text in expressions.items() if n in SERVER_AXES}
    if "k" in expressions:
        arm |= {"acceptance": f"={expressions['k']}", "method": f"={expressions['k']}"}
    workload = _replaced(content["workload"], expressions)
    return {**content, "conc": "=conc", "arm": arm, "workload": workload}


def _replaced(values: Mapping[str, Any], expressions: Mapping[str, str]) -> dict[str, Any]:
    return {n: f"={expressions[n]}" if n in expressions else v for n, v in values.items()}


def _series_content(curve: dict[str, Any]) -> dict[str, Any]:
    arm = {name: value for name, value in curve["arm"].items() if name != "image"}
    name, precision, *_ = arm["model"]
    return curve | {"arm": arm | {"model": [name, precision]}, "harness": None}


def _name(entry: str, values: Values, workload: Workload, varied: Iterable[str]) -> str:
    if isinstance(workload, Accuracy):
        task = workload.task.rsplit("/", 1)[-1].removesuffix(".yaml")
        parts = [entry, f"eval-{task}"]
    else:
        kind = ["agentic"] if isinstance(workload, Agentic) else []
        parts = [entry, *kind, f"c{values['conc']}"]
    parts += [_part(name, values[name]) for name in varied if name not in ("conc", "queueing")]
    return "-".join(filter(None, parts))


def _part(name: str, value: object) -> str:
    if isinstance(value, tuple):
        return f"g{len(value)}x{max(value, default=0)}"
    if name in _OFFLOAD:
        return "" if value == AXES[name].default else f"{value}{_OFFLOAD[name]}"
    if name in _SHORT:
        return f"{_SHORT[name]}{value}"
    return f"{name.replace('_', '')}-{value}"
