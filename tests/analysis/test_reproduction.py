"""A point measured again: within the margin, within what runs scatter by, or nobody can tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.analysis.answers import ScoreChange
from infx.analysis.changes import Observed, Sides
from infx.analysis.paired import pair
from infx.analysis.reproduction import (
    JUDGED,
    WIDE,
    Again,
    figures_again,
    judged,
    made_otherwise,
    overall,
    recorded_figures,
    scores_again,
)
from infx.domain.record import Provenance
from tests.analysis.made_arms import noisy, observed, rows_of

RATIOS = st.floats(0.2, 5)
MARGINS = st.floats(0.001, 0.5)
KEYS = [metric.key for metric in JUDGED]


def sides(before: Sequence[Observed], after: Sequence[Observed]) -> Sides:
    return Sides(before=tuple(before), after=tuple(after))


def faster(one: Observed, factor: float) -> Observed:
    """The same run with another throughput: the other figures stay."""
    made = one.measurement
    return replace(one, measurement=replace(made, tput_tok_s_gpu=made.tput_tok_s_gpu * factor))


def told(figures: Sequence[Again]) -> dict[str, Again]:
    return {figure.key: figure for figure in figures}


# One figure


@given(RATIOS, MARGINS, st.floats(0, 3))
def test_runs_reproduce_within_the_margin_or_within_what_they_scatter_by(
    ratio: float, margin: float, reach: float
) -> None:
    low, high = ratio / (1 + reach), ratio * (1 + reach)
    verdict = judged(ratio, (low, high), margin, repeated=True)
    holds, narrow = low <= 1 <= high, high - low <= 2 * WIDE * margin
    assert (verdict == "reproduced") == (abs(ratio - 1) <= margin or (holds and narrow))
    assert (verdict == "not-reproduced") == (abs(ratio - 1) > margin and not holds)


@given(RATIOS, st.floats(0, 0.5), st.floats(0, 0.5), MARGINS)
def test_a_verdict_on_one_run_needs_an_interval_that_is_no_wider_than_the_margin(
    ratio: float, below: float, above: float, margin: float
) -> None:
    low, high = ratio * (1 - below), ratio * (1 + above)
    verdict = judged(ratio, (low, high), margin, repeated=False)
    if verdict == "reproduced":
        assert abs(ratio - 1) <= margin
        assert high - low <= 2 * margin
    if verdict == "not-reproduced":
        assert abs(ratio - 1) > margin
    if verdict == "cannot-tell":
        assert high - low > 2 * margin
        assert low <= 1 + margin
        assert high >= 1 - margin


@given(RATIOS, RATIOS, MARGINS, MARGINS)
def test_a_larger_margin_never_takes_a_reproduction_back(
    ratio: float, width: float, one: float, other: float
) -> None:
    interval = (ratio / (1 + width / 10), ratio * (1 + width / 10))
    small, large = sorted((one, other))
    for repeated in (True, False):
        if judged(ratio, interval, small, repeated=repeated) == "reproduced":
            assert judged(ratio, interval, large, repeated=repeated) == "reproduced"


@pytest.mark.parametrize(
    ("ratio", "interval", "repeated", "verdict"),
    [
        (1.04, None, True, "reproduced"),
        (1.06, (0.99, 1.13), True, "reproduced"),
        (1.06, (1.01, 1.11), True, "not-reproduced"),
        (1.06, (0.80, 1.40), True, "cannot-tell"),
        (1.06, None, True, "not-reproduced"),
        (1.00, None, False, "cannot-tell"),
        (1.00, (0.94, 1.06), False, "cannot-tell"),
        (1.00, (0.97, 1.03), False, "reproduced"),
        (1.06, (1.03, 1.09), False, "not-reproduced"),
        (1.50, (1.20, 1.80), False, "not-reproduced"),  # wide, and beyond the margin for sure
        (1.20, (1.00, 1.40), False, "cannot-tell"),
    ],
)
def test_verdicts(ratio: float, interval: Any, repeated: bool, verdict: str) -> None:
    assert judged(ratio, interval, 0.05, repeated=repeated) == verdict


# A point


def test_the_same_requests_reproduce_every_figure() -> None:
    side = observed(rows_of(noisy(200, 1)))
    found = figures_again(sides([side], [side]))
    assert [figure.key for figure in found] == KEYS
    assert {(f.ratio, f.verdict, f.basis) for f in found} == {(1.0, "reproduced", "requests")}
    assert overall(found) == "reproduced"


def test_a_slower_engine_does_not_reproduce() -> None:
    before, after = observed(rows_of(noisy(300, 1))), observed(rows_of(noisy(300, 1, 1.3)))
    found = told(figures_again(sides([before], [after])))
    assert {found[key].verdict for key in KEYS if key != "ttft_p90"} == {"not-reproduced"}
    assert found["ttft_p90"].verdict == "reproduced"
    assert overall([*found.values()]) == "not-reproduced"


def test_few_requests_of_one_run_each_cannot_tell_and_say_how_many_are_needed() -> None:
    before, after = (observed(rows_of(noisy(12, seed))) for seed in (1, 2))
    found = told(figures_again(sides([before], [after])))
    assert "20" in found["ttft_p90"].why
    assert found["ttft_p90"].verdict == "cannot-tell"
    assert overall([*found.values()]) in ("cannot-tell", "not-reproduced")


def test_without_the_requests_nobody_can_tell() -> None:
    side = replace(observed(rows_of(noisy(40, 1))), requests=None)
    found = figures_again(sides([side], [side]))
    assert {(f.verdict, f.why) for f in found} == {
        ("cannot-tell", "the requests of a side cannot be read any more")
    }


def test_repeats_say_how_far_runs_lie_apart() -> None:
    side = observed(rows_of(noisy(40, 1)))
    noise = [faster(side, factor) for factor in (0.96, 1.00, 1.04)]
    [near] = [f for f in figures_again(sides(noise, [faster(side, 0.92)])) if f.key == KEYS[0]]
    [far] = [f for f in figures_again(sides(noise, [faster(side, 0.50)])) if f.key == KEYS[0]]
    assert (near.verdict, far.verdict) == ("reproduced", "not-reproduced")
    assert (near.old.runs, near.new.runs, near.basis) == (3, 1, "runs")
    assert near.old.low is not None
    assert near.new.low is None
    quiet = [faster(side, factor) for factor in (0.999, 1.000, 1.001)]
    found = told(figures_again(sides(quiet, [faster(side, 0.92)])))
    assert found[KEYS[0]].verdict == "not-reproduced"
    assert found["ttft_p90"].verdict == "reproduced"


@given(st.lists(st.floats(0.8, 1.25), min_size=2, max_size=5), st.floats(0.8, 1.25))
def test_old_and_new_may_change_places_where_runs_decide(old: list[float], new: float) -> None:
    side = observed(rows_of(noisy(20, 1)))
    before, after = [faster(side, factor) for factor in old], [faster(side, new)]
    there = told(figures_again(sides(before, after)))[KEYS[0]]
    back = told(figures_again(sides(after, before)))[KEYS[0]]
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.low is not None
    assert there.low == pytest.approx(1 / (back.high or math.nan))


def test_recorded_figures_have_an_interval_where_there_are_repeats() -> None:
    side = observed(rows_of(noisy(20, 1)))
    [(title, figure), *rest] = recorded_figures([side, faster(side, 1.1)])
    assert title == "Throughput, tok/s/GPU"
    assert (figure.runs, len(rest)) == (2, len(KEYS) - 1)
    assert figure.low < figure.value < figure.high
    assert recorded_figures([side])[0][1].low is None


# A score


def score_change(before: Sequence[bool], after: Sequence[bool]) -> ScoreChange:
    sides_ = ({str(n): right for n, right in enumerate(side)} for side in (before, after))
    return ScoreChange(filter="strict-match", verdict=pair(*sides_), identical=1.0)


@pytest.mark.parametrize(
    ("lost", "won", "verdict"),
    [
        (0, 0, "reproduced"),
        (1, 1, "reproduced"),
        (40, 40, "cannot-tell"),
        (60, 0, "not-reproduced"),
    ],
)
def test_a_score_is_judged_question_by_question(lost: int, won: int, verdict: str) -> None:
    before = [True] * 150 + [False] * 50
    after = [False] * lost + [True] * (150 - lost) + [True] * won + [False] * (50 - won)
    [found] = scores_again([score_change(before, after)])
    assert (found.verdict, found.basis) == (verdict, "answers")
    assert found.low is not None
    assert found.low <= found.ratio <= (found.high or 0)


def test_a_score_of_nothing_has_no_ratio() -> None:
    [found] = scores_again([score_change([False] * 9, [True] * 9)])
    assert (found.verdict, found.why) == ("cannot-tell", "a score of 0 has no ratio")
    [found] = scores_again([score_change([False] * 9, [False] * 9)])
    assert (found.verdict, found.why, found.ratio) == ("reproduced", "", 1.0)


# How it was made


def test_what_was_made_otherwise_is_told_and_what_passes_is_not() -> None:
    old = Provenance(
        infx_version="1",
        git_revision="abc",
        packages={"numpy": "1", "torch": "2"},
        host={"name": "a", "load_average_1min": 0.1, "gpus": ["x", "y"]},
    )
    new = replace(
        old,
        git_dirty=True,
        packages={"numpy": "2", "torch": "2"},
        host={"name": "a", "load_average_1min": 9.9, "gpus": []},
    )
    assert [str(d) for d in made_otherwise(old, new)] == [
        "git revision abc → abc with changes",
        "numpy 1 → 2",
        "host gpus x, y → none",
    ]
    assert made_otherwise(old, old) == ()


def test_without_a_figure_nobody_can_tell() -> None:
    assert overall([]) == "cannot-tell"
