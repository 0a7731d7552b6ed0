"""The public case is judged as its reviewer judged it, and each check can fail."""

from __future__ import annotations

import pytest

from infx.review.checks import CHECKS, review
from infx.review.reading import bundle_of
from infx.review.writing import bundle_files
from tests.review.failing import FAILING, corrected
from tests.review.minimax_m3 import ARTIFACTS, RUN, minimax_m3
from tests.review.verdicts import one, verdicts


def test_the_public_case_is_judged_as_its_reviewer_did() -> None:
    found = review(minimax_m3())
    said = {check.number: check.verdict for check in found.checks}
    assert said == dict.fromkeys(range(16), "PASS") | {3: "N/A", 12: "N/A", 15: "WARN"}
    assert found.verdict == "WARN"
    assert "synthetic" in found.note


def test_the_text_of_the_public_case_has_three_stale_claims() -> None:
    found = one(minimax_m3(), 15)
    assert len(found.evidence) == 3
    for claim in ("nightly_202610061452", "ATOM 0.1.7.dev58+g08735170a", "GPU sweep pending"):
        assert claim in found.sentence
    assert [e.where for e in found.evidence] == [f"pull-request.json:body:{n}" for n in (2, 2, 6)]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "@seungrokj"),
        (1, "19/19 throughput and 19/19 evaluation jobs"),
        (2, "0.970–0.990 in 19 evaluations"),
        (2, "gsm8k strict-match 0.969"),
        (4, f"(COLLABORATOR) reuses run {RUN}"),
        (11, "injected 2.78 = minimaxm3_eagle3_gqa thinking-on K=3"),
        (13, "stored bf16, no quantization config; 7 layers run bf16"),
        (14, "9 of 19 measured points on the frontier, 0 invalid"),
    ],
)
def test_what_passes_says_why(number: int, words: str) -> None:
    assert words in one(minimax_m3(), number).sentence


def test_a_corrected_text_passes_everything() -> None:
    assert review(corrected()).verdict == "PASS"


@pytest.mark.parametrize("number", range(16))
def test_each_check_fails_alone(number: int) -> None:
    break_it, words = FAILING[number]
    broken = break_it(corrected())
    whole, found = verdicts(corrected()), verdicts(broken)
    assert {n for n in found if found[n] != whole[n]} == {number}
    assert found[number] == "FAIL"
    assert words in one(broken, number).sentence
    assert review(bundle_of(bundle_files(broken, ARTIFACTS), "b")).verdict == "FAIL"


def test_there_are_sixteen_checks_each_with_a_failing_bundle() -> None:
    assert [check.number for check in CHECKS] == list(range(16)) == list(FAILING)
