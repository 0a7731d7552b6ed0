"""How a run is driven where nobody says it: whether a canary goes first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.ci.plan import plan
from infx.cli.driving import asked_again
from infx.domain.plan import Plan
from infx.launch.executors import executor_for
from tests.ci.cases import RULES, added, change, event, mini, plan_of
from tests.launch.slurm.played import cluster
from tests.plan.matrices import LOCAL
from tests.store.tiny_plans import run_row

BY_HAND = plan_of(mini())


def of_label(name: str) -> Plan:
    made = plan(event(name), change(BY_HAND, added("mini")), RULES).plan
    assert made
    return made


@pytest.mark.parametrize(
    ("made", "here", "on_slurm"),
    [
        (BY_HAND, False, True),
        (of_label("full-sweep-enabled"), True, True),
        (of_label("full-sweep-fail-fast"), True, True),
        (of_label("non-canary-full-sweep-enabled"), False, False),
    ],
    ids=["by hand", "canary", "canary and fail-fast", "no canary"],
)
def test_a_canary_goes_first_as_labels_say_and_by_hand_where_jobs_run_side_by_side(
    made: Plan, here: bool, on_slurm: bool
) -> None:
    for site, first in ((LOCAL, here), (cluster(), on_slurm)):
        executor = executor_for(site)
        run = run_row(Path("results"))
        assert asked_again(run, made, executor).canary is first
        assert asked_again(replace(run, canary=not first), made, executor).canary is not first
        assert asked_again(run, made, executor, canary=not first).canary is not first
