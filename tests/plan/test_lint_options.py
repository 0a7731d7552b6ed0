"""A flag that an engine does not have is refused at planning, with the name that was meant; so is
a law that it does not draw by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from infx import frameworks
from infx.config.matrix import Matrix
from infx.domain.errors import ConfigError
from infx.plan.lint_options import lint_options
from infx.plan.make import make_plan
from tests.plan import matrices

BATCH = "batch-min-variance"


@pytest.mark.parametrize(
    ("framework", "name", "code", "told"),
    [
        ("atom", "enforce-eagr", "option-unknown", "did you mean `enforce-eager`?"),
        ("sglang", "attention-backnd", "option-unknown", "did you mean `attention-backend`?"),
        ("trtllm", "moe-config.backnd", "option-unknown", "did you mean `moe-config.backend`?"),
        ("trtllm", "max-num-seqs", "option-unknown", "is an axis"),
    ],
)
def test_an_option_that_the_engine_does_not_have(
    framework: str, name: str, code: str, told: str
) -> None:
    [found] = _lint(framework, name, True)
    assert (found.code, found.level) == (code, "error")
    assert told in found.hint


def _lint(framework: str, name: str, value: Any) -> list[Any]:
    made = matrices.entry(matrices.scenario(conc=[1]), framework=framework, options={name: value})
    return list(lint_options(made, frameworks.get(framework)))


def _speculating(framework: str, law: str) -> Matrix:
    speculation = replace(matrices.eagle({3: 2.78}), law=law, draft="owner/draft")
    return matrices.matrix(
        matrices.entry(
            matrices.scenario(conc=[1], k=3),
            framework=framework,
            image="pypi:engine==1",
            weights="hf:owner/model",
            tokenizer="owner/model",
            speculation=speculation,
        )
    )


@pytest.mark.parametrize(
    ("framework", "law"),
    [
        ("infx", "batch-min-variance"),
        ("atom", "batch-min-variance"),
        ("trtllm", "geometric"),
        ("sglang", "min-variance"),
    ],
)
def test_a_law_that_the_engine_does_not_draw_by(framework: str, law: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_plan(_speculating(framework, law))
    told = {finding.code: finding.sentence for finding in error.value.findings}
    assert f"{framework} cannot draw by {law}" in told["unsupported-law"]


@pytest.mark.parametrize(("framework", "law"), [("atom", "min-variance"), ("sglang", BATCH)])
def test_an_engine_draws_by_its_own_law(framework: str, law: str) -> None:
    [made] = make_plan(_speculating(framework, "")).points
    assert (made.arm.acceptance.law, made.arm.acceptance.length) == (law, 2.78)
