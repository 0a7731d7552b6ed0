"""Every claim of a text is read, and derived again."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.review.checks import review
from infx.review.claims import claims, stale
from tests.review.minimax_m3 import DIGEST, RUN, minimax_m3


def wrong(text: str, title: str = "") -> list[str]:
    bundle = minimax_m3()
    request = replace(bundle.pull_request, body=text, title=title)
    found = list(claims(replace(bundle, pull_request=request)))
    return [f"{one.kind}: {one.text}" for one in stale(found)]


@pytest.mark.parametrize(
    "text",
    [
        "now rocm/atom-dev:nightly_202610070333",
        "from nightly_202609281543 to nightly_202610070333.",
        f"digest {DIGEST}",
        f"digest {DIGEST[:20]}…",
        "ATOM 0.1.7.dev60+g7fc0926c6",
        "LMCache 0.5.6.dev139+gf22dec28 is in the image",
        "unchanged between aa0c5c3a and 7fc0926c",
        "aa0c5c3a1..7fc0926c6",
        "The sweep passed",
        f"run {RUN} passed",
        "mono hung in run 36493321464",
        "the plan holds 19 throughput points",
        "9 of 19 on the frontier",
        "GSM8K 0.969",
        "GSM8K: 96.9 %",
        "GSM8K is 0.97",
        "based on ubuntu/base:24.04",
        "minimax_m3_full 0.97",
        "19/19 throughput and 19/19 evaluation jobs",
        "tp4-c8 gives 1200.0 tok/s/GPU at P90 E2EL 1009 ms",
        "up to 2,600 tok/s/GPU",
        "injected acceptance length 2.78",
        "the 1007 nightly",
    ],
)
def test_what_holds(text: str) -> None:
    assert wrong(text) == []


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("now rocm/atom-dev:nightly_202610061452.", "image: rocm/atom-dev:nightly_202610061452"),
        ("the nightly_202610061452", "image: nightly_202610061452"),
        ("manifest sha256:b0ebacc", "digest: sha256:b0ebacc"),
        ("ATOM 0.1.7.dev58+g08735170a", "version: ATOM 0.1.7.dev58+g08735170a"),
        ("between aa0c5c3a and 08735170", "commit range: between aa0c5c3a and 08735170"),
        ("aa0c5c3a1...08735170a", "commit range: aa0c5c3a1...08735170a"),
        ("GPU sweep pending", "pending: GPU sweep pending"),
        ("GPU sweep validation is still pending", "pending: GPU sweep validation is still pending"),
        ("awaiting the GPU sweep", "pending: awaiting the GPU sweep"),
        ("The sweep passed in run 11111111", "run: run 11111111"),
        ("18 throughput points", "points: 18 throughput points"),
        ("10 of 19 on the frontier", "frontier: 10 of 19 on the frontier"),
        ("GSM8K 0.972", "gsm8k: GSM8K 0.972"),
        ("minimax_m3_full 0.96", "minimax_m3_full: minimax_m3_full 0.96"),
        ("18/19 evaluation", "jobs: 18/19 evaluation"),
        ("tp4-c5 gives 1200.0 tok/s/GPU", "rate: 1200.0 tok/s/GPU"),
        ("up to 2,700 tok/s/GPU", "rate: 2,700 tok/s/GPU"),
        ("tp4-c5 has P90 E2EL 841 ms", "latency: P90 E2EL 841 ms"),
        ("acceptance length 2.83", "acceptance length: acceptance length 2.83"),
        ("GSM8K 97.1 %", "gsm8k: GSM8K 97.1 %"),
    ],
)
def test_what_does_not(text: str, claim: str) -> None:
    assert wrong(text) == [claim]


def test_the_title_is_read_too() -> None:
    assert wrong("", "MiniMax-M3 on the 1006 nightly") == ["image: 1006 nightly"]


def test_a_claim_that_stands_twice_is_told_once() -> None:
    assert wrong("GPU sweep pending\nGPU sweep pending") == ["pending: GPU sweep pending"]


def test_pending_is_true_before_a_run() -> None:
    bundle = minimax_m3()
    (run,) = bundle.runs
    waiting = replace(bundle, runs=(replace(run, conclusion="pending"),))
    found = review(waiting).checks[15]
    assert "GPU sweep pending" not in found.sentence


def test_a_text_that_claims_nothing_is_a_warning() -> None:
    bundle = minimax_m3()
    request = replace(bundle.pull_request, title="", body="Some words.")
    assert review(replace(bundle, pull_request=request)).checks[15].verdict == "WARN"


@pytest.mark.parametrize(
    "piece",
    [
        "a/",
        "a",
        "1,",
        "run ",
        "sweep ",
        "nightly_",
        "pending ",
        "aaaaaaa",
        "0.",
        "1.2.dev3+g1234567 ",
        " ",
        "P90 E2EL ",
    ],
)
def test_no_line_takes_long(piece: str) -> None:
    started = time.process_time()
    wrong(piece * (65_536 // len(piece)))
    assert time.process_time() - started < 5


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    wrong(text)
