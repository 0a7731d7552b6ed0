"""Two scores without their answers: the published pair, and the test's size and power."""

from __future__ import annotations

import random

import pytest

from infx.analysis.unpaired import Counted, apart, counted
from infx.domain.errors import UsageError


def of(text: str) -> Counted:
    found = counted(text)
    assert found
    return found


@pytest.mark.parametrize(
    ("a", "b", "z", "p", "change"),
    [
        ("0.909/1319", "0.8802/1319", 2.4, 0.016, "perhaps-worse"),
        ("0.955/1319", "0.9416/1319", 1.6, 0.120, "no-difference-seen"),
        ("0.909/1319", "0.878/1319", 2.6, 0.010, "worse"),
        ("0.8802/1319", "0.909/1319", 2.4, 0.016, "perhaps-better"),
        ("0.909/1319", "0.80/1319", 7.9, 0.0, "worse"),
    ],
)
def test_published_pairs(a: str, b: str, z: float, p: float, change: str) -> None:
    found = apart(of(a), of(b))
    assert (round(found.z, 1), round(found.p, 3), found.change) == (z, p, change)


def test_the_pair_is_never_inside_the_spread() -> None:
    sentence = apart(of("0.909/1319"), of("0.8802/1319")).sentence
    assert "p = 0.016: perhaps worse (chance alone gives as much in 1.6 % of cases)" in sentence


@pytest.mark.parametrize(("share", "change"), [("0.95", 0.024), ("0.90", 0.033)])
def test_what_would_have_been_seen_on_gsm8k(share: str, change: float) -> None:
    found = apart(of(f"{share}/1319"), of(f"{share}/1319"))
    assert found.detectable
    assert round(found.detectable, 3) == change
    assert f"{100 * change:.1f} pp would have been" in found.sentence


def test_a_detectable_change_is_seen_in_four_cases_of_five() -> None:
    n, p = 400, 0.9
    found = apart(Counted(score=p, questions=n), Counted(score=p, questions=n))
    assert found.detectable
    rng, seen = random.Random(3), 0
    for _ in range(300):
        sides = [p + found.detectable / 2, p - found.detectable / 2]
        drawn = [sum(rng.random() < side for _ in range(n)) / n for side in sides]
        verdict = apart(*(Counted(score=score, questions=n) for score in drawn))
        seen += verdict.change.endswith("worse")
    assert 0.72 < seen / 300 < 0.88


@pytest.mark.parametrize(
    ("a", "b"), [("3/3", "0/3"), ("1319/1319", "1319/1319"), ("0/9", "0/9"), ("1/4", "900/1319")]
)
def test_too_few_answers_are_no_verdict(a: str, b: str) -> None:
    found = apart(of(a), of(b))
    assert (found.change, found.detectable) == ("not-enough-data", None)
    assert "fewer than 5" in found.sentence


@pytest.mark.parametrize(
    ("text", "score", "shown"),
    [
        ("1199/1319", 1199 / 1319, "1199/1319"),
        ("0.909/1319", 0.909, "0.909/1319"),
        (".5/10", 0.5, "5/10"),
        ("1.0/10", 1.0, "10/10"),
        ("1/10", 0.1, "1/10"),
        ("0/10", 0.0, "0/10"),
    ],
)
def test_a_score_is_a_count_or_a_share(text: str, score: float, shown: str) -> None:
    assert of(text).score == score
    assert str(of(text)) == shown
    assert of(shown).score == score


@pytest.mark.parametrize("text", ["1320/1319", "90.9/1319", "0/0", "0.5/0"])
def test_what_can_be_no_score_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no score"):
        counted(text)


@pytest.mark.parametrize("text", ["a/b", "samples.jsonl", "0.9", "-1/10", "1e3/1319", "1/2/3", ""])
def test_other_text_is_none(text: str) -> None:
    assert counted(text) is None
