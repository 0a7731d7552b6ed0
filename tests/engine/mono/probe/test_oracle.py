"""The probe of the interpreter: the plan passes, and each forbidden plan is caught."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from infx.engine.mono.probe.probing import probe
from infx.engine.mono.table import Table
from tests.engine.mono.probe.oracle_layer import Oracle
from tests.engine.mono.tiny_layers import TINY, with_stage, with_sum


def chunks_by_union_rank(made: Table) -> Table:
    return with_sum(made, "down", dealt_by=("union_rank", "chunk"), lanes=3)


def pads_in_the_union(made: Table) -> Table:
    return with_stage(made, "up", live=("routed",)) if made.width > 4 else made


def combine_by_arrival(made: Table) -> Table:
    return with_sum(made, "combine", lanes=TINY.slots, merged_by="arrival")


def named(change: Callable[[Table], Table], seed: int) -> set[str]:
    tally = probe(Oracle(change), [seed], [5])
    return {name for name, found in tally.findings.items() if found.differing}


@pytest.mark.slow
def test_the_plan_passes() -> None:
    tally = probe(Oracle(), [0, 2], [1, 5])
    assert tally.ok
    assert all(found.rows for found in tally.findings.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (chunks_by_union_rank, "alone"),
        (pads_in_the_union, "pads"),
        (combine_by_arrival, "again"),
    ],
)
def test_a_forbidden_plan_is_caught(change: Callable[[Table], Table], wanted: str) -> None:
    assert wanted in named(change, seed=1)
