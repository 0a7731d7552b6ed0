"""The text that is written from a bundle says what is in it, and check 15 agrees."""

from __future__ import annotations

from dataclasses import replace

from infx.review.body import body
from infx.review.checks import review
from infx.review.claims import claims
from infx.review.rules import load_rules
from tests.review.failing import with_records
from tests.review.minimax_m3 import DIGEST, KEY, NEW, OLD, RUN, minimax_m3


def test_it_says_what_changes_and_what_was_measured() -> None:
    text = body(minimax_m3(), load_rules())
    for words in (
        f"`{KEY}`: image {OLD} → {NEW} ({DIGEST}), atom 0.1.7.dev60+g7fc0926c6",
        "planned: 19, new: 1, gone: 0 (tp2-c4)",
        f"Run {RUN} passed on commit 4b94f096: 19/19 throughput and 19/19 evaluation jobs.",
        "9 of 19 measured points on the frontier, 0 invalid",
        "| tp4-c5 | 1000.0 tok/s/GPU | P90 E2EL ",
        "gsm8k strict-match 0.969 in 1 evaluation, bar 0.9",
        "injected acceptance length 2.78",
        "ships bf16, no quantization config",
    ):
        assert words in text
    assert sum(line.startswith("| tp") for line in text.splitlines()) == 9


def test_check_15_finds_and_accepts_every_claim_of_it() -> None:
    bundle = minimax_m3()
    request = replace(bundle.pull_request, body=body(bundle, load_rules()))
    written = replace(bundle, pull_request=request)
    assert review(written).checks[15].verdict == "PASS"
    kinds = {claim.kind for claim in claims(written)}
    assert kinds == {
        *("image", "digest", "version", "run", "finished", "jobs", "frontier"),
        *("rate", "latency", "gsm8k", "minimax_m3_full", "acceptance length"),
    }


def test_a_text_of_an_older_run_fails() -> None:
    bundle = minimax_m3()
    request = replace(bundle.pull_request, body=body(bundle, load_rules()))

    def faster(record):  # type: ignore[no-untyped-def]
        found = replace(record.measurement, tput_tok_s_gpu=record.measurement.tput_tok_s_gpu + 7)
        return replace(record, measurement=found)

    moved = with_records(replace(bundle, pull_request=request), "throughput", faster)
    found = review(moved).checks[15]
    assert found.verdict == "FAIL"
    assert "1000.0 tok/s/GPU (it is 1007.0 tok/s/GPU)" in found.sentence


def test_repeats_are_told_by_their_mean_which_check_15_accepts() -> None:
    bundle = minimax_m3()

    def second(record):  # type: ignore[no-untyped-def]
        found = record.measurement
        if found:
            found = replace(found, tput_tok_s_gpu=found.tput_tok_s_gpu + 30)
        return replace(record, measurement=found, attempt=replace(record.attempt, repeat=2))

    twice = replace(bundle, records=(*bundle.records, *map(second, bundle.records)))
    text = body(twice, load_rules())
    assert "| tp4-c5 | 1015.0 tok/s/GPU |" in text
    written = replace(twice, pull_request=replace(bundle.pull_request, body=text))
    assert review(written).checks[15].verdict == "PASS"
