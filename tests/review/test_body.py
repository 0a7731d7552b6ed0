"""The text that is written from a bundle says what is in it, and check 15 agrees."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.point import FixedLengths, Workload
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.review.body import body
from infx.review.bundle import Bundle
from infx.review.checks import review
from infx.review.claims import claims
from infx.review.result import CheckResult
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
        "stored bf16, no quantization config; 7 layers run bf16",
    ):
        assert words in text
    assert sum(line.startswith("| tp") for line in text.splitlines()) == 9


def test_check_15_finds_and_accepts_every_claim_of_it() -> None:
    bundle = minimax_m3()
    request = replace(bundle.pull_request, body=body(bundle, load_rules()))
    written = replace(bundle, pull_request=request)
    assert review(written).checks[15].verdict == "PASS"
    kinds = {claim.kind for claim in claims(written, load_rules())}
    assert kinds == {
        *("image", "digest", "version", "run", "finished", "jobs", "frontier", "point", "bar"),
        *("rate", "latency", "score", "acceptance length", "setting", "axis"),
        *("points", "new", "gone", "invalid", "evaluations", "layers", "workload"),
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
    assert "1000.0 tok/s/GPU (it is 1007 tok/s/GPU)" in found.sentence


def test_repeats_are_told_by_their_mean_which_check_15_accepts() -> None:
    bundle = minimax_m3()

    def second(record):  # type: ignore[no-untyped-def]
        found = record.measurement
        if found:
            found = replace(found, tput_tok_s_gpu=found.tput_tok_s_gpu + 30)
        return replace(record, measurement=found, attempt=replace(record.attempt, repeat=2))

    twice = replace(bundle, records=(*bundle.records, *map(second, bundle.records)))
    text = body(twice, load_rules())
    assert "| tp4-c5 | 1014.9 tok/s/GPU |" in text
    written = replace(twice, pull_request=replace(bundle.pull_request, body=text))
    assert review(written).checks[15].verdict == "PASS"


RATES = st.floats(1e-3, 1e7, allow_subnormal=False)
PLACES = st.lists(st.tuples(RATES, RATES, st.sampled_from(["ok", "ok", "invalid"])), min_size=1)


def measured(places: list[tuple[float, float, str]], workload: Workload | None = None) -> Bundle:
    """The public case with other throughputs, latencies and ends at its points, in turn."""
    at = count()

    def changed(record: PointRecord) -> PointRecord:
        rate, latency, state = places[next(at) % len(places)]
        assert record.measurement
        found = replace(
            record.measurement,
            tput_tok_s_gpu=rate,
            e2el_ms=replace(record.measurement.e2el_ms, p90=latency),
        )
        status = Status(state, "" if state == "ok" else "few-requests")  # type: ignore[arg-type]
        point = replace(record.point, workload=workload or record.point.workload)
        return replace(record, point=point, measurement=found, status=status)

    return with_records(minimax_m3(), "throughput", changed)


def written(bundle: Bundle) -> CheckResult:
    """Check 15 of a bundle whose text was written from it."""
    request = replace(bundle.pull_request, body=body(bundle, load_rules()))
    return review(replace(bundle, pull_request=request)).checks[15]


@pytest.mark.slow
@settings(max_examples=12)
@given(PLACES)
def test_whatever_was_measured_check_15_agrees(places: list[tuple[float, float, str]]) -> None:
    found = written(measured(places))
    assert (found.verdict, "not derivable" in found.sentence) == ("PASS", False)


def test_of_fixed_lengths_too() -> None:
    lengths = FixedLengths(isl=1024, osl=128, requests=40)
    bundle = measured([(900.0, 800.0, "ok")], lengths)
    assert "/ 1024 in, 128 out /" in body(bundle, load_rules())
    assert written(bundle).verdict == "PASS"


def test_before_a_sweep_it_is_pending() -> None:
    bundle = replace(minimax_m3(), records=(), runs=())
    assert "The sweep is pending." in body(bundle, load_rules())
    assert written(bundle).verdict == "PASS"


def test_a_sweep_that_failed_has_not_passed() -> None:
    bundle = minimax_m3()
    (run,) = bundle.runs
    failed = replace(bundle, runs=(replace(run, conclusion="failure"),))
    assert f"Run {RUN} ended in failure" in body(failed, load_rules())
    assert written(failed).verdict == "PASS"
