from __future__ import annotations

from dataclasses import replace

import pytest

from infx.launch.timing import Timing
from infx.plan.jobs import SERVER_START_S, point_s
from tests.store.tiny_plans import job


def test_one_slow_phase_does_not_spoil_the_estimate():
    timing, tiny = Timing(), job(points=3)
    for point, factor in zip(tiny.points, (2, 3, 50), strict=True):
        timing.measured(point, factor * point_s(point))
    assert timing.point_s(tiny.points[0]) == pytest.approx(3 * point_s(tiny.points[0]))
    assert timing.start_s(tiny) == SERVER_START_S


def test_an_engine_learns_nothing_from_another_one():
    timing, known, unknown = Timing(), job(0), job(1)
    unknown = replace(unknown, arm=replace(unknown.arm, framework="another"))
    timing.started(known, SERVER_START_S / 5)
    assert timing.start_s(known) == SERVER_START_S / 5
    assert timing.start_s(unknown) == SERVER_START_S
