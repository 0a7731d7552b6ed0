"""Small matrices written as dataclasses, for the tests of the planner."""

from __future__ import annotations

from typing import Any

from infx.config.expressions import parse_expression
from infx.config.matrix import (
    AxisValues,
    Entry,
    EvaluationSpec,
    ExcludeRule,
    IncludeRule,
    Matrix,
    Recipe,
    Scenario,
    SpeculationSpec,
    WorkloadSpec,
)
from infx.config.sites import Cluster
from infx.domain.axes import AXES
from infx.domain.findings import Where
from infx.domain.point import Model

AT = Where("matrix.yaml", 1, 1)
LOCAL = Cluster(name="local", executor="local", hardware="cpu", where=AT)


def expression(text: str, where: Where = AT) -> Any:
    return parse_expression(text, frozenset(AXES), where)


def value(raw: Any, where: Where = AT) -> Any:
    return expression(raw[1:], where) if isinstance(raw, str) and raw.startswith("=") else raw


def axes(**named: Any) -> tuple[AxisValues, ...]:
    """``conc=[1, 2]`` is a list of values, ``tp=2`` one value, ``k="=conc"`` an expression."""
    made = []
    for line, (name, raw) in enumerate(named.items(), 10):
        where = Where("matrix.yaml", line, 9)
        values = value(raw, where)
        if not isinstance(values, list) and values is raw:
            values = [values]
        content = tuple(values) if isinstance(values, list) else values
        made.append(AxisValues(name=name, values=content, where=where))
    return tuple(made)


def scenario(
    exclude: list[tuple[str, str]] | None = None,
    include: list[dict[str, Any]] | None = None,
    workload: dict[str, Any] | None = None,
    **named: Any,
) -> Scenario:
    load = {"isl": 64, "osl": 32, "requests": "=4*conc", "warmup_requests": "=conc"}
    load |= workload or {}
    return Scenario(
        workload=WorkloadSpec(**{n: value(v) for n, v in load.items()}, where=AT),
        axes=axes(**named),
        include=tuple(
            IncludeRule(
                values={n: value(v) for n, v in rule.items()}, where=Where("matrix.yaml", 30, 7)
            )
            for rule in include or []
        ),
        exclude=tuple(
            ExcludeRule(when=expression(when), reason=reason, where=Where("matrix.yaml", 40 + i, 7))
            for i, (when, reason) in enumerate(exclude or [])
        ),
        where=AT,
    )


def entry(
    *scenarios: Scenario,
    name: str = "mini",
    framework: str = "infx",
    chat_template: bool = True,
    cluster: Cluster = LOCAL,
    evaluations: tuple[EvaluationSpec, ...] = (),
    speculation: SpeculationSpec | None = None,
    image: str = "pypi:infx",
    options: dict[str, Any] | None = None,
    heads: int = 8,
    kv_heads: int = 2,
    tokenizer: str = "engine",
    weights: str = "random:0",
) -> Entry:
    recipe = Recipe(
        name="mini-recipe",
        framework=framework,
        model=Model(
            name="mini",
            prefix="",
            precision="",
            weights=weights,
            tokenizer=tokenizer,
            heads=heads,
            kv_heads=kv_heads,
        ),
        hardware=("cpu",),
        options={n: value(v) for n, v in (options or {}).items()},
        chat_template=chat_template,
        where=Where("recipe.yaml", 3, 1),
    )
    return Entry(
        name=name,
        model_prefix="minimaxm3",
        precision="fp32",
        framework=framework,
        image=image,
        image_digest="",
        recipe=recipe,
        cluster=cluster,
        scenarios=scenarios,
        evaluations=evaluations,
        speculation=speculation,
        where=AT,
    )


def eagle(lengths: dict[int, float]) -> SpeculationSpec:
    return SpeculationSpec(
        method="eagle3", golden="minimaxm3_eagle3_gqa", thinking="on", lengths=lengths, where=AT
    )


def evaluation(**given: Any) -> EvaluationSpec:
    fields: dict[str, Any] = {"task": "gsm_mini", "limit": 8, "bars": {"strict-match": 0.0}}
    return EvaluationSpec(**(fields | given), where=AT)


def matrix(*entries: Entry) -> Matrix:
    return Matrix(entries=entries, inputs={})
