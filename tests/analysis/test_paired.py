"""McNemar's exact test on hand-computed tables."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.analysis.chance import SEEN, SURE
from infx.analysis.paired import detectable, pair


def run_of(right: int, wrong: int) -> dict[str, bool]:
    return {str(n): n < right for n in range(right + wrong)}


def table(both: int, lost: int, won: int, neither: int):
    rows = [(True, True)] * both + [(True, False)] * lost
    rows += [(False, True)] * won + [(False, False)] * neither
    before, after = ({str(n): row[side] for n, row in enumerate(rows)} for side in (0, 1))
    return before, after


@pytest.mark.parametrize(
    ("lost", "won", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 32),
        (8, 0, 2 / 256),
        (9, 1, 2 * (1 + 10) / 1024),
        (3, 3, 1.0),
        (121, 59, 2 * sum(math.comb(180, k) for k in range(60)) / 2**180),
    ],
)
def test_the_probability_is_that_of_a_fair_coin_over_the_discordant_questions(lost, won, p):
    assert pair(*table(7, lost, won, 11)).p == pytest.approx(p, rel=1e-12)
    assert pair(*table(7, won, lost, 11)).p == pytest.approx(p, rel=1e-12)


def test_concordant_questions_change_scores_and_not_the_verdict():
    few, many = pair(*table(2, 9, 0, 1)), pair(*table(2000, 9, 0, 991))
    assert few.p == many.p < SURE
    assert (few.change, many.change) == ("worse", "worse")
    assert (many.before, many.after) == (2009 / 3000, 2000 / 3000)


def test_a_gain_is_better_and_what_chance_gives_is_no_difference():
    assert pair(*table(50, 1, 14, 3)).change == "better"
    assert pair(*table(50, 4, 6, 3)).change == "no-difference-seen"


@pytest.mark.parametrize(
    ("lost", "won", "change"),
    [
        (8, 0, "worse"),  # p = 0.008
        (7, 0, "perhaps-worse"),  # 0.016: never told as no difference
        (6, 0, "perhaps-worse"),  # 0.031
        (5, 0, "no-difference-seen"),  # 0.063
        (0, 7, "perhaps-better"),
        (0, 8, "better"),
    ],
)
def test_two_levels_tell_a_change_from_one_to_be_measured_again(lost, won, change):
    verdict = pair(*table(50, lost, won, 3))
    assert verdict.change == change
    assert change.replace("-", " ") in verdict.sentence


def test_a_p_of_0016_is_told_as_what_chance_gives():
    assert "chance alone gives as much in 1.6 % of cases" in pair(*table(50, 7, 0, 3)).sentence


def test_chance_alone_is_called_a_change_no_more_often_than_the_levels():
    rng, called = random.Random(0), {"worse": 0, "better": 0, "perhaps": 0}
    for _ in range(3000):
        rows = [(rng.random() < 0.7, rng.random() < 0.7) for _ in range(60)]
        before = {str(n): a for n, (a, _) in enumerate(rows)}
        change = pair(before, {str(n): b for n, (_, b) in enumerate(rows)}).change
        for word in called:
            called[word] += change.startswith(word)
    assert (called["worse"] + called["better"]) / 3000 < SURE
    assert sum(called.values()) / 3000 < SEEN


@pytest.mark.parametrize(
    ("discordance", "change"), [(0.02, 0.011), (0.04, 0.015), (0.06, 0.019), (0.08, 0.022)]
)
def test_what_would_have_been_seen_on_gsm8k(discordance, change):
    assert round(detectable(1319, discordance), 3) == change


@pytest.mark.parametrize(("questions", "discordance"), [(200, 0.2), (600, 0.06), (400, 0.0)])
def test_a_detectable_change_is_seen_in_four_cases_of_five(questions, discordance):
    change = detectable(questions, discordance)
    share = max(discordance, change)
    rng, seen = random.Random(5), 0
    for _ in range(300):
        draws = [rng.random() for _ in range(questions)]
        lost = sum(draw < (share + change) / 2 for draw in draws)
        won = sum((share + change) / 2 <= draw < share for draw in draws)
        seen += pair(*table(questions - lost - won, lost, won, 0)).change.endswith("worse")
    assert 0.72 < seen / 300 < 0.88  # the exact test gives a little of the 0.8 away


def test_more_questions_and_fewer_discordant_ones_detect_less():
    assert detectable(2000, 0.1) < detectable(500, 0.1) < detectable(500, 0.3)
    assert detectable(500, 0.0) > 0
    assert detectable(3, 0.5) == 1.0
    assert "nor would any have been" in pair(*table(1, 1, 0, 0)).sentence


def test_both_standard_errors_are_those_of_lm_eval():
    verdict = pair(*table(80, 10, 5, 5))
    assert verdict.stderrs == (
        pytest.approx(math.sqrt(0.9 * 0.1 / 99)),
        pytest.approx(math.sqrt(0.85 * 0.15 / 99)),
    )
    assert verdict.discordance == 0.15


@pytest.mark.parametrize(("before", "after"), [({}, {}), (run_of(3, 1), run_of(3, 2))])
def test_other_questions_are_refused(before, after):
    with pytest.raises(ValueError, match="the same questions"):
        pair(before, after)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=200), st.randoms())
def test_swapped_sides_turn_the_verdict_and_the_order_does_not_matter(rows, rng):
    before, after = ({str(n): row[side] for n, row in enumerate(rows)} for side in (0, 1))
    there, back = pair(before, after), pair(after, before)
    assert (there.p, there.lost, there.won) == (back.p, back.won, back.lost)
    assert there.detectable == back.detectable
    turned = {"worse": "better", "better": "worse"}
    words = [turned.get(word, word) for word in there.change.split("-")]
    assert "-".join(words) == back.change
    names = list(before)
    rng.shuffle(names)
    assert pair({n: before[n] for n in names}, {n: after[n] for n in names}) == there
