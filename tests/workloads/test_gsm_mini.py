"""The generator: sound arithmetic, honest distractors, splits that cannot meet."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.workloads.gsm_mini import Question, Split, few_shot, question, questions
from infx.workloads.templates import HELDOUT, LARGEST, TEMPLATES

ANNOTATION = re.compile(r"<<([^=>]+)=(\d+)>>(\d+)")
OPERATION = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
}

splits = st.sampled_from(["train", "test", "heldout"])
anything = st.builds(question, splits, st.integers(0, 10**6), st.integers(0, 10**6))


def steps(answer: str) -> list[tuple[list[str], int]]:
    """Each annotation as its terms and operators, and the value it says."""
    found = []
    for expression, value, repeated in ANNOTATION.findall(answer):
        assert value == repeated
        found.append((re.split(r"([+*/-])", expression), int(value)))
    return found


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


@given(anything)
@settings(max_examples=2 * settings.default.max_examples)
def test_every_annotation_is_worth_what_it_says(made: Question) -> None:
    for terms, value in steps(made.answer):
        total = Fraction(terms[0])
        for operator, term in zip(terms[1::2], terms[2::2], strict=True):
            total = OPERATION[operator](total, Fraction(term))
            assert total.denominator == 1
            assert 1 <= total <= LARGEST
        assert total == value


@given(anything)
@settings(max_examples=2 * settings.default.max_examples)
def test_the_last_line_is_the_target_and_the_last_step(made: Question) -> None:
    *lines, last = made.answer.split("\n")
    assert last == f"#### {made.target}"
    assert len(steps(made.answer)) == len(lines)
    assert steps(made.answer)[-1][1] == made.target
    assert made.target not in numbers(made.question)


@given(anything)
@settings(max_examples=2 * settings.default.max_examples)
def test_operations_are_two_to_four_and_counted(made: Question) -> None:
    operators = sum(len(terms) // 2 for terms, _ in steps(made.answer))
    assert operators == made.operations
    assert 2 <= made.operations <= 4


@given(anything)
@settings(max_examples=2 * settings.default.max_examples)
def test_a_distractor_stands_in_the_question_and_in_no_step(made: Question) -> None:
    if made.distractor is None:
        return
    used = [int(term) for terms, _ in steps(made.answer) for term in terms[::2]]
    results = [value for _, value in steps(made.answer)]
    assert numbers(made.question).count(made.distractor) == 1
    assert made.distractor not in used + results


@given(anything)
@settings(max_examples=2 * settings.default.max_examples)
def test_every_other_number_of_the_question_is_used(made: Question) -> None:
    used = {int(term) for terms, _ in steps(made.answer) for term in terms[::2]}
    # "30%" is told as ten percent, three times.
    percent = {int(found) for found in re.findall(r"(\d+)0%", made.question)}
    given_numbers = set(numbers(made.question.replace("0%", "")))
    assert given_numbers - {made.distractor} <= used
    assert percent <= used


@given(anything)
def test_questions_are_short_and_complete(made: Question) -> None:
    assert 15 <= len(made.question.split()) <= 60
    assert made.question.endswith("?")
    assert not set("{}") & set(made.question + made.answer)


@given(splits, st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_same_arguments_give_the_same_question(split: Split, index: int, seed: int) -> None:
    assert question(split, index, seed) == question(split, index, seed)


def test_the_questions_never_change() -> None:
    """A trained checkpoint and every published score rest on these very texts."""
    texts = [
        made.question + made.answer
        for split in ("train", "test", "heldout")
        for made in questions(split, 300, 7)  # type: ignore[arg-type]
    ]
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest() == FIXED


def test_seeds_and_splits_give_other_questions() -> None:
    assert questions("test", 20, 0) != questions("test", 20, 1)
    assert questions("test", 20, 0) != questions("train", 20, 0)


def test_train_and_test_share_no_question() -> None:
    train = {made.question for seed in range(3) for made in questions("train", 1000, seed)}
    test = {made.question for seed in range(3) for made in questions("test", 200, seed)}
    assert len(train) > 2950
    assert len(test) > 590
    assert not train & test


def test_train_and_test_share_no_numbers() -> None:
    """The same sum with another name would be the same problem."""
    assert not _problems("train", 3000) & _problems("test", 600)


def test_a_test_set_repeats_no_question() -> None:
    texts = [made.question for made in questions("test", 500, 0)]
    assert len(set(texts)) == len(texts)


def test_there_are_enough_templates_and_heldout_ones_are_apart() -> None:
    assert len(TEMPLATES) >= 40
    names = Counter(template.name for template in (*TEMPLATES, *HELDOUT))
    assert max(names.values()) == 1
    trained = {made.template for made in questions("train", 500, 3)}
    held = {made.template for made in questions("heldout", 500, 3)}
    assert trained == {template.name for template in TEMPLATES}
    assert held == {template.name for template in HELDOUT}


@pytest.mark.parametrize("split", ["train", "test", "heldout"])
def test_a_third_carries_a_distractor(split: Split) -> None:
    made = questions(split, 300, 0)
    for count in range(2, 301):
        distracted = sum(one.distractor is not None for one in made[:count])
        assert distracted / count >= 1 / 3


def test_neighbours_differ_in_template() -> None:
    for seed in range(5):
        assert len({made.template for made in questions("test", len(TEMPLATES), seed)}) == len(
            TEMPLATES
        )


def test_examples_are_of_the_train_split_in_a_stream_of_their_own() -> None:
    shots = few_shot(0, 8)
    assert len({shot.template for shot in shots}) == 8
    assert shots[:5] == few_shot(0, 5)
    assert not {shot.question for shot in shots} & {
        made.question for made in questions("test", 500, 0)
    }
    assert shots != questions("train", 8, 0)


def test_samples_are_printed() -> None:
    command = [sys.executable, "-m", "infx.workloads.gsm_mini", "--count", "2", "--seed", "3"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.count("Question: ") == 2
    assert f"Answer: {question('test', 1, 3).answer}" in printed


REASONABLE = {
    "car-park": lambda floors, spaces, cars, leave: leave <= cars <= floors * spaces,
    "library-shelves": lambda shelves, books, lent, back: back <= lent <= shelves * books,
    "museum-tickets": lambda adult, child, *_: child < adult,
    "father-later": lambda age, times, _later: 18 <= age * (times - 1) <= 45,
    "change-from-bill": lambda _count, _each, _bag, bill: bill in (50, 100),
}
"""What a teacher would mark: a template and what its numbers must be, in their order."""


@pytest.fixture(scope="module")
def many() -> list[Question]:
    return [made for seed in range(4) for made in questions("train", 1000, seed)]


@pytest.mark.parametrize("template", REASONABLE)
def test_the_numbers_could_be_true(template: str, many: list[Question]) -> None:
    made = [one for one in many if one.template == template]
    assert len(made) > 60
    for one in made:
        told = [number for number in numbers(one.question) if number != one.distractor]
        assert REASONABLE[template](*told), one.question


def test_no_target_stands_in_its_question(many: list[Question]) -> None:
    """Neither as it is nor made of two parts: $100 with 50% off is $50."""
    for made in many:
        assert made.target not in numbers(made.question), made.question


def _problems(split: Split, count: int) -> set[tuple[str, tuple[int, ...]]]:
    return {
        (made.template, tuple(n for n in numbers(made.question) if n != made.distractor))
        for made in questions(split, count, 0)
    }


FIXED = "296de1aa91269fd3981a71cf4d4a849ffae4ace83b2d310a67353631411e39db"
