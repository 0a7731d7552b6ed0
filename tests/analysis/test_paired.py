"""McNemar's exact test on hand-computed tables."""

from __future__ import annotations

import math
import random

import pytest

from infx.analysis.paired import LEVEL, pair


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
    assert few.p == many.p < LEVEL
    assert (few.change, many.change) == ("worse", "worse")
    assert (many.before, many.after) == (2009 / 3000, 2000 / 3000)


def test_a_gain_is_better_and_what_chance_gives_is_no_difference():
    assert pair(*table(50, 1, 14, 3)).change == "better"
    assert pair(*table(50, 4, 6, 3)).change == "no-difference-seen"


def test_chance_alone_is_called_a_change_no_more_often_than_the_level():
    rng, called = random.Random(0), 0
    for _ in range(3000):
        rows = [(rng.random() < 0.7, rng.random() < 0.7) for _ in range(60)]
        before = {str(n): a for n, (a, _) in enumerate(rows)}
        called += pair(before, {str(n): b for n, (_, b) in enumerate(rows)}).change != (
            "no-difference-seen"
        )
    assert called / 3000 < LEVEL


def test_what_could_have_been_seen_is_told():
    verdict = pair(*table(400, 2, 1, 97))
    assert verdict.detectable == 8 / 500
    assert "a loss of 1.6% would have been" in verdict.sentence
    assert pair(*table(1, 1, 0, 0)).detectable == 1.0


@pytest.mark.parametrize(("before", "after"), [({}, {}), (run_of(3, 1), run_of(3, 2))])
def test_other_questions_are_refused(before, after):
    with pytest.raises(ValueError, match="the same questions"):
        pair(before, after)
