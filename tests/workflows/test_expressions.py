"""The player's own reading of GitHub's expressions, as GitHub documents them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workflows.expressions import filled, holds, value

CONTEXT: dict[str, Any] = {
    "github": {"event": {"action": "closed", "number": 17}, "repository": "example/lab"},
    "steps": {"plan": {"outputs": {"decision": "sweep"}, "outcome": "success"}},
    "vars": {},
    "failed": False,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vars.NOTHING || 'default'", "default"),
        ("github.event.number && 'yes' || 'no'", "yes"),
        ("github.event.pull_request.head.sha", None),
        ("steps.plan.outputs.decision == 'sweep'", True),
        ("steps.plan.outputs.decision != 'SWEEP'", False),
        ("contains('a /reuse-sweep-run', '/reuse-sweep-run')", True),
        ('contains(fromJSON(\'["closed", "labeled"]\'), github.event.action)', True),
        ("contains(fromJSON('[\"close\"]'), github.event.action)", False),
        ("!(vars.A || github.event.number == '17')", False),
        ("'it''s'", "it's"),
    ],
)
def test_values(text: str, expected: Any) -> None:
    assert value(text, CONTEXT) == expected


@pytest.mark.parametrize("text", ["nothing.x", "1 +", "a b", "github.event.number =", "${{ x }}"])
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, KeyError, IndexError)):
        value(text, CONTEXT)


def test_texts_are_filled_in() -> None:
    assert filled("measure-${{ github.event.number }}${{ vars.X }}", CONTEXT) == "measure-17"


@pytest.mark.parametrize(
    ("condition", "before", "after"),
    [
        (None, True, False),
        ("steps.plan.outcome == 'success'", True, False),
        ("always()", True, True),
        ("always() && vars.X", False, False),
        ("failure()", False, True),
    ],
)
def test_a_step_runs_after_a_failure_only_where_it_says_so(
    condition: str | None, before: bool, after: bool
) -> None:
    assert holds(condition, CONTEXT) is before
    assert holds(condition, {**CONTEXT, "failed": True}) is after
