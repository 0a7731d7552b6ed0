"""Injected lengths and the types of drafts: checks 11 and 13."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.review.failing import corrected, with_diff, with_records
from tests.review.verdicts import one, verdicts


def test_a_simulated_evaluation_fails() -> None:
    def simulated(record):  # type: ignore[no-untyped-def]
        argv = (*record.provenance.server_argv, "--spec-decode-acceptance-length", "2.78")
        return replace(record, provenance=replace(record.provenance, server_argv=argv))

    found = one(with_records(corrected(), "evaluation", simulated), 11)
    assert (found.verdict, "simulated acceptance" in found.sentence) == ("FAIL", True)


def test_a_length_that_the_server_was_not_told_fails() -> None:
    def silent(record):  # type: ignore[no-untyped-def]
        return replace(record, provenance=replace(record.provenance, server_argv=("atom",)))

    found = one(with_records(corrected(), "throughput", silent), 11)
    assert (found.verdict, "does not carry 2.78" in found.sentence) == ("FAIL", True)


def test_a_realised_length_that_is_off_fails() -> None:
    def off(record):  # type: ignore[no-untyped-def]
        return replace(record, counters=replace(record.counters, acceptance_length=2.6))

    found = one(with_records(corrected(), "throughput", off), 11)
    assert (found.verdict, "realised 2.6" in found.sentence) == ("FAIL", True)


def test_a_golden_file_that_lacks_the_length_fails() -> None:
    found = one(replace(corrected(), golden={}), 11)
    assert (found.verdict, "holds no length" in found.sentence) == ("FAIL", True)


def test_chance_may_move_a_realised_length_by_so_much() -> None:
    def few(record):  # type: ignore[no-untyped-def]
        counters = replace(record.counters, acceptance_length=2.82, verify_steps=1000)
        return replace(record, counters=counters)

    assert one(with_records(corrected(), "throughput", few), 11).verdict == "PASS"


def test_a_realised_length_that_is_not_told_is_a_warning() -> None:
    found = one(with_records(corrected(), "throughput", lambda r: replace(r, counters=None)), 11)
    assert found.verdict == "WARN"
    assert "and 14 more: the realised length is not told" in found.sentence


def test_a_change_of_the_golden_file_itself_is_a_warning() -> None:
    bundle, path = corrected(), "golden_al_distribution/minimaxm3_eagle3_gqa.yaml"
    request = replace(bundle.pull_request, changed=(*bundle.pull_request.changed, path))
    found = one(replace(bundle, pull_request=request), 11)
    assert (found.verdict, f"changes {path}" in found.sentence) == ("WARN", True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('{"method": "eagle3", "quantization": "fp8"}', "FAIL"),
        ('{"method": "eagle3", "quantization": null}', "PASS"),
    ],
)
def test_a_draft_that_a_server_quantizes_fails(words: str, expected: str) -> None:
    def told(record):  # type: ignore[no-untyped-def]
        argv = (*record.provenance.server_argv, "--speculative-config", words)
        return replace(record, provenance=replace(record.provenance, server_argv=argv))

    assert one(with_records(corrected(), "throughput", told), 13).verdict == expected


@pytest.mark.parametrize(("line", "expected"), [("draft-dtype: fp8", 1), ("draft-dtype: bf16", 0)])
def test_a_change_that_lowers_a_draft_fails(line: str, expected: int) -> None:
    assert verdicts(with_diff(corrected(), line))[13] == ("PASS", "FAIL")[expected]


@pytest.mark.parametrize(
    ("stored", "effective", "expected"),
    [
        ("bf16", "bf16", "PASS"),
        ("fp8", "bf16", "PASS"),
        ("bf16", "fp8", "FAIL"),
        ("fp8", "mxfp4", "FAIL"),
        ("bf16", "unknown", "FAIL"),
        ("bf16/fp32", "fp32", "PASS"),
        ("bf16/fp32", "bf16", "FAIL"),
    ],
)
def test_a_draft_runs_in_no_lower_type(stored: str, effective: str, expected: str) -> None:
    (draft,) = corrected().drafts
    layer = replace(draft.layers[0], stored=stored, effective=effective)
    shown = replace(draft, stored="bf16, fp32, fp8", layers=(layer, *draft.layers[1:]))
    assert verdicts(replace(corrected(), drafts=(shown,)))[13] == expected


def test_layers_are_stored_as_the_checkpoint_holds_them() -> None:
    (draft,) = corrected().drafts
    layer = replace(draft.layers[0], stored="fp8", effective="fp8")
    found = one(replace(corrected(), drafts=(replace(draft, layers=(layer,)),)), 13)
    assert (found.verdict, "stored fp8, it holds bf16" in found.sentence) == ("FAIL", True)
    packed = replace(draft, layers=(layer,), stored="uint8", quantization="nvfp4")
    assert verdicts(replace(corrected(), drafts=(packed,)))[13] == "PASS"


@pytest.mark.parametrize("drafts", [(), None])
def test_a_draft_whose_types_are_not_shown_fails(drafts: tuple[()] | None) -> None:
    (draft,) = corrected().drafts
    shown = () if drafts == () else (replace(draft, layers=()),)
    assert verdicts(replace(corrected(), drafts=shown))[13] == "FAIL"


@pytest.mark.parametrize(("value", "expected"), [("1", "FAIL"), ("true", "FAIL"), ("0", "PASS")])
def test_the_switch_that_lowers_a_draft_is_prohibited(value: str, expected: str) -> None:
    line = f"  SGLANG_NVFP4_CKPT_FP8_NEXTN_MOE: '{value}'"
    assert verdicts(with_diff(corrected(), line))[13] == expected
