"""Prompts of one length, none like another, whatever the tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.errors import MeasurementError
from infx.workloads.prompt_words import WORDS
from infx.workloads.prompts import Measure, make_prompts


def by(count: Callable[[str], int], template: int = 20) -> Measure:
    return lambda texts: [template + count(text) for text in texts]


def pieces_of_three(text: str) -> int:
    return sum(-(-len(word) // 3) for word in text.split())


def joined(text: str) -> int:
    """A tokenizer that has a token for two words that begin alike."""
    words = text.split()
    return len(words) - sum(a[0] == b[0] for a, b in pairwise(words))


MEASURES = {"bytes": by(len), "words": by(lambda t: len(t.split())), "pieces": by(pieces_of_three)}


@given(
    st.sampled_from(sorted(MEASURES)),
    st.integers(0, 40),
    st.integers(40, 400),
    st.integers(0, 1 << 28),
)
@settings(max_examples=40, deadline=None)
def test_each_is_of_the_length_and_no_two_are_alike(
    name: str, count: int, tokens: int, seed: int
) -> None:
    measure = MEASURES[name]
    texts = make_prompts(count, tokens, seed, measure)
    assert measure(texts) == [tokens] * count
    assert len({text.split()[0] for text in texts}) == count
    assert all(set(text.split()) <= set(WORDS) for text in texts)
    assert texts == make_prompts(count, tokens, seed, measure)


def test_seeds_give_other_prompts() -> None:
    first, second = (make_prompts(50, 64, seed, by(len)) for seed in (1, 2))
    assert not set(first) & set(second)


def test_there_are_more_prompts_than_words() -> None:
    count = 2 * len(WORDS) + 10
    texts = make_prompts(count, 64, 0, by(len))
    assert len(set(texts)) == count


def test_words_that_a_tokenizer_joins_are_drawn_again() -> None:
    texts = make_prompts(30, 30, 3, by(joined))
    assert by(joined)(texts) == [30] * 30


@pytest.mark.parametrize(
    ("count", "tokens", "sentence"),
    [(1, 20, "template take 23 tokens"), (2000, 23, "no more than")],
)
def test_an_isl_without_prompts_is_refused(count: int, tokens: int, sentence: str) -> None:
    with pytest.raises(MeasurementError, match=sentence) as caught:
        make_prompts(count, tokens, 0, by(len))
    assert caught.value.code == "isl-too-short"
    assert f"isl {tokens}" in str(caught.value)


def test_words_are_plain_and_distinct() -> None:
    assert len(set(WORDS)) == len(WORDS) > 900
    assert all(word.isascii() and word.isalpha() and word.islower() for word in WORDS)


def counted(measure: Measure) -> tuple[Measure, list[int]]:
    asked: list[int] = []

    def counting(texts: Sequence[str]) -> Sequence[int]:
        asked.append(len(texts))
        return measure(texts)

    return counting, asked


def test_long_workloads_are_not_tokenised_whole() -> None:
    measure, asked = counted(by(len))
    make_prompts(1000, 1024, 0, measure)
    assert sum(asked) < 2 * len(WORDS) + 100
