"""What partners share: all of an arm but one axis, and what is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infx.domain.partners import question_of, rest_of
from infx.domain.point import Arm, FixedLengths
from tests.report.sample_runs import MINI, point

POINT = point(MINI, 1, 2)


def with_axes(**axes: object) -> Arm:
    return replace(POINT.arm, axes=replace(POINT.arm.axes, **axes))  # type: ignore[arg-type]


def test_the_rest_leaves_out_the_axis_alone() -> None:
    other = with_axes(mono="on")
    assert rest_of(other, "mono") == rest_of(POINT.arm, "mono")
    assert rest_of(other, "tp") != rest_of(POINT.arm, "tp")
    assert rest_of(with_axes(mono="on", tp=8), "mono") != rest_of(POINT.arm, "mono")


@pytest.mark.parametrize("axis", ["k", "mono"])
def test_only_k_takes_method_draft_and_acceptance_along(axis: str) -> None:
    arm = POINT.arm
    other = replace(
        arm, method="none", draft="made/drafter", acceptance=replace(arm.acceptance, mode="real")
    )
    assert (rest_of(other, axis) == rest_of(arm, axis)) is (axis == "k")


def test_what_is_asked_is_not_what_it_is_judged_by() -> None:
    load = POINT.workload
    assert isinstance(load, FixedLengths)
    lenient = replace(POINT, workload=replace(load, error_share=0.5))
    assert question_of(lenient) == question_of(POINT)
    longer = replace(POINT, workload=replace(load, osl=load.osl + 1))
    assert question_of(longer) != question_of(POINT)
    assert question_of(replace(POINT, conc=2)) != question_of(POINT)
