"""What came and went, told arm by arm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infx.changelog.moves import moves
from infx.domain.point import Point
from infx.report.build import build_runs
from infx.report.model import Baseline, RunData, RunFacts
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import LLAMA, evaluation

POINTS = many_points(30)
ENTRY = POINTS[0].entry
OFF, ON = (POINTS[n : n + 3] for n in (0, 20))
"""Two arms of one entry, without and with mono."""


def since(before: list[Point], now: list[Point], **more: object) -> Baseline:
    """Return a baseline that had the points ``before``; ``more`` is what became of them."""
    old, new = (
        RunData(
            facts=RunFacts(run_id=name),
            plan=many_plan(points),
            records=tuple(many_records(points, run_id=name, faults=False)),
        )
        for name, points in (("old", before), ("new", now))
    )
    found = build_runs([new], [old]).baseline
    assert found
    return replace(found, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ([*OFF], [*OFF, *ON], [f"1 arm added (3 points): {ENTRY} mono=on (conc 1, 2, 4)"]),
        ([*OFF, *ON], [*OFF], [f"1 arm dropped (3 points): {ENTRY} mono=on (conc 1, 2, 4)"]),
        ([*OFF], [*OFF[:2]], [f"1 point dropped: {ENTRY} (conc 4)"]),
        ([*OFF[:1]], [*OFF], [f"2 points added: {ENTRY} (conc 2, 4)"]),
        ([*OFF], [*OFF], []),
    ],
)
def test_whole_arms_and_points_of_arms_that_stay(
    before: list[Point], now: list[Point], told: list[str]
) -> None:
    assert list(moves(since(before, now), now)) == told


def test_what_follows_the_concurrency_tells_no_arm_apart() -> None:
    off, on = ([follows(point) for point in arm] for arm in (OFF, ON))
    (told,) = moves(since(off, [*off, *on]), [*off, *on])
    assert told == f"1 arm added (3 points): {ENTRY} mono=on (conc 1, 2, 4)"


def follows(point: Point) -> Point:
    axes = replace(point.arm.axes, max_num_seqs=2 * point.conc)
    arm, said = replace(point.arm, axes=axes), {"max_num_seqs": "2*conc"}
    return replace(point, arm=arm, expressions=said)


def test_what_is_valid_no_more_is_points_of_an_arm() -> None:
    labels = tuple(point.label for point in OFF)
    found = moves(since(OFF, OFF, broken=labels), OFF)
    assert list(found) == [f"3 points valid no more: {ENTRY} (conc 1, 2, 4)"]


def test_an_evaluation_has_its_label() -> None:
    scored = evaluation(LLAMA, 0.5)
    found = moves(since(OFF, OFF, added=(scored.label,)), [*OFF, scored])
    assert list(found) == [f"1 point added: {scored.label}"]
