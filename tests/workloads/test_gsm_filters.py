"""The robust filter: the last number of an answer, by value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.workloads.gsm_filters import NO_NUMBER, last_number, normal_form

CASES = {
    "so 9 + 9 = 18\n#### 18": "18",
    "The answer is 18.": "18",
    "$1,234.00.": "1234",
    "It costs $18.00": "18",
    "#### 18.0": "18",
    "that is 50%": "50",
    "**18**": "18",
    r"\boxed{72}": "72",
    "<<16-3-4=9>>9": "9",
    "47-9": "9",
    "47 - 9 = 38": "38",
    "#### -5": "-5",
    "-$7": "-7",
    "\u22125": "-5",
    "-0": "0",
    "0.50": "0.5",
    "007": "7",
    "3,4": "4",
    "1,000,000": "1000000",
    "100": "100",
    "no number": NO_NUMBER,
    "1" * 5000: "1" * 5000,
    "#### " + "0" * 5000 + "7." + "0" * 5000: "7",
    ".50": "0.5",
    "-0.00": "0",
    "": NO_NUMBER,
}


@pytest.mark.parametrize("answer", CASES)
def test_normal_form(answer: str) -> None:
    assert normal_form(answer) == CASES[answer]


@given(st.integers(-(10**9), 10**9))
def test_every_spelling_of_a_whole_number_is_one(number: int) -> None:
    for text in (
        f"#### {number}",
        f"#### {number:,}",
        f"is {number}.00.",
        f"is {number:,} dollars",
    ):
        assert normal_form(text) == str(number)


def test_answers_keep_their_questions() -> None:
    assert last_number([["#### 1"], ["a 2", "b 3"]], [{}, {}]) == [["1"], ["2", "3"]]
