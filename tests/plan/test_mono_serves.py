"""What a plan says of mono is what the engine does."""

from __future__ import annotations

import re

import pytest

from infx.engine.mono.coverage import eligible
from infx.plan.make import make_plan
from tests.plan.matrices import eagle, entry, matrix, scenario


@pytest.mark.parametrize("k", [0, 1, 2, 3, 7, 15])
def test_the_plan_says_how_many_requests_a_mono_step_holds(k: int) -> None:
    drafts = {"k": k, "speculation": eagle({k: 1.5})} if k else {"k": 0, "speculation": None}
    space = scenario(conc=[1], mono=["off", "on"], k=drafts["k"])
    plan = make_plan(matrix(entry(space, speculation=drafts["speculation"])))  # type: ignore[arg-type]
    (told,) = [finding for finding in plan.findings if finding.code == "mono-serves"]
    found = re.search(r"at most (\d+) requests of (\d+) at K=(\d+);", told.sentence)
    assert found
    most, rows, said = map(int, found.groups())
    assert (rows, said) == (k + 1, k)
    assert eligible(most * rows, prefill=False)
    assert not eligible((most + 1) * rows, prefill=False)
