"""Every claim of a text is read, and derived again."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.changelog.draft import draft_entry
from infx.config.nodes import Report, parse_yaml, plain
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.review.checks import review
from infx.review.claims import claims, stale, underivable
from infx.review.result import CheckResult
from infx.review.rules import load_rules
from tests.report.sample_runs import sample_plan
from tests.review.failing import with_records
from tests.review.minimax_m3 import DIGEST, NEW, OLD, RUN, minimax_m3
from tests.review.verdicts import one


def wrong(text: str, title: str = "") -> list[str]:
    bundle = minimax_m3()
    request = replace(bundle.pull_request, body=text, title=title)
    found = list(claims(replace(bundle, pull_request=request), load_rules()))
    return [f"{one.kind}: {one.text}" for one in stale(found)]


def unknown(text: str) -> list[tuple[str, bool]]:
    """What nothing in the bundle says, and whether it is a figure."""
    request = replace(minimax_m3().pull_request, body=text, title="")
    found = claims(replace(minimax_m3(), pull_request=request), load_rules())
    return [(one.text, one.figure) for one in underivable(list(found))]


@pytest.mark.parametrize(
    "text",
    [
        "now rocm/atom-dev:nightly_202610070333",
        "from nightly_202609281543 to nightly_202610070333.",
        f"digest {DIGEST}",
        f"digest {DIGEST[:20]}…",
        "ATOM 0.1.7.dev60+g7fc0926c6",
        "LMCache 0.5.6.dev139+gf22dec28 is in the image, ROCm 7.2.4",
        "unchanged between aa0c5c3a and 7fc0926c",
        "aa0c5c3a1..7fc0926c6",
        "The sweep passed",
        f"run {RUN} passed",
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
        "TP4 at C1, C2 and C4; TP2 at concurrency 4",
        "concurrencies 1, 2, 4 and 5",
        "max-num-seqs 8, K=3, --tp=4",
        "removes ATOM_MONO_ENABLE=0",
        "tp4-c8 and tp2-c25",
        "GSM8K 0.969 ± 0.005 against a bar of 0.90",
        "minimax_m3_full 0.970–0.990 in 19 evaluations",
        "P90 E2EL of tp4-c5: 0.972 s",
        "19 planned, 0 invalid",
        "new: 1, gone: 0",
        "| point | tok/s/GPU | P90 E2EL, ms |\n|---|---:|---:|\n| tp4-c8 | **1200.0** | 1009 |",
        "| conc | TP | GSM8K |\n|---|---|---|\n| 48 | 4 | 96.9 % |",
        "see https://github.com/ROCm/ATOM/pull/2479 and [this](/blob/1234/x)",
        "1. first\n2. second",
    ],
)
def test_what_holds(text: str) -> None:
    assert wrong(text) == []
    assert unknown(text) == []


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
        ("GSM8K 0.972", "score: GSM8K 0.972"),
        ("minimax_m3_full 0.96", "score: minimax_m3_full 0.96"),
        ("18/19 evaluation", "jobs: 18/19 evaluation"),
        ("tp4-c5 gives 1200.0 tok/s/GPU", "rate: 1200.0 tok/s/GPU"),
        ("up to 2,700 tok/s/GPU", "rate: 2,700 tok/s/GPU"),
        ("tp4-c5 has P90 E2EL 841 ms", "latency: P90 E2EL 841 ms"),
        ("acceptance length 2.83", "acceptance length: acceptance length 2.83"),
        ("GSM8K 97.1 %", "score: GSM8K 97.1 %"),
        ("GSM8K 0.969 ± 0.001", "score: GSM8K 0.969 ± 0.001"),
        ("above the bar of 0.95", "bar: bar of 0.95"),
        ("minimax_m3_full 0.96–0.99", "score: minimax_m3_full 0.96–0.99"),
        ("tp4-c9 hangs", "point: tp4-c9"),
        ("18 evaluations", "evaluations: 18 evaluations"),
        ("2 invalid", "invalid: 2 invalid"),
        ("at 999.0 tok/s/user", "pace: 999.0 tok/s/user"),
        ("0.25 J/token", "energy: 0.25 J/token"),
        ("median TTFT 7777 ms", "latency: median TTFT 7777 ms"),
        ("| point | tok/s/GPU |\n|---|---:|\n| tp4-c8 | 1000.0 |", "rate: 1000.0 tok/s/GPU"),
    ],
)
def test_what_does_not(text: str, claim: str) -> None:
    assert wrong(text) == [claim]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("730 passed", [("730", False)]),
        ("17 commits apart, 2.5 of them", [("17", False), ("2.5", False)]),
        ("12 % faster", [("12 %", True)]),
        ("1.3× as fast in 40 min", [("1.3×", True), ("40 min", True)]),
        ("from 900 tok/s/GPU to 1000.0 tok/s/GPU", [("900 tok/s/GPU", True)]),
        ("it hung in run 36493321464", [("run 36493321464", False)]),
        ("at C60", [("C60", False)]),
        ("OTHER_SETTING=7", [("OTHER_SETTING=7", False)]),
        ("on 2026-10-07, #2479, v2.39.1, MI355X, sha abc1234", []),
    ],
)
def test_what_cannot_be_derived_is_named(text: str, expected: list[tuple[str, bool]]) -> None:
    assert unknown(text) == expected


def judged(text: str) -> CheckResult:
    request = replace(minimax_m3().pull_request, body=text)
    return review(replace(minimax_m3(), pull_request=request)).checks[15]


def test_a_number_that_cannot_be_derived_passes_and_a_figure_warns() -> None:
    held = "now nightly_202610070333"
    plain, figure = judged(f"{held}, 730 passed"), judged(f"{held}, 12 % faster, 730 passed")
    assert (plain.verdict, figure.verdict) == ("PASS", "WARN")
    assert plain.sentence.endswith("hold; not derivable: 730")
    assert figure.sentence.endswith("hold; not derivable: 12 %, 730")
    assert plain.evidence[0].text == "“730”: not derivable from the bundle"


def test_a_figure_of_an_invalid_point_does_not_hold() -> None:
    def invalid(record: PointRecord) -> PointRecord:
        off = record.point.name == "tp4-c8"
        return replace(record, status=Status("invalid", "acceptance-off") if off else record.status)

    bundle = with_records(minimax_m3(), "throughput", invalid)
    request = replace(bundle.pull_request, body="tp4-c8 gives 1200.0 tok/s/GPU")
    found = review(replace(bundle, pull_request=request)).checks[15]
    assert (found.verdict, "it is not measured" in found.sentence) == ("FAIL", True)


def test_the_changelog_is_read_too_but_may_tell_history() -> None:
    bundle = minimax_m3()
    request = replace(bundle.pull_request, body="now nightly_202610070333")
    (addition,) = bundle.changelog
    told = replace(addition, description=("Image nightly_202610061452", "12 % faster, 730 passed"))
    found = review(replace(bundle, pull_request=request, changelog=(told,))).checks[15]
    assert found.verdict == "WARN"
    assert [one.where for one in found.evidence if "it is" in one.text] == [
        "changelog.json:line 6375"
    ]
    assert "730" not in found.sentence


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_text_as_long_as_any_is_read_fast() -> None:
    line = "tp4-c8 gives 1200.0 tok/s/GPU at P90 E2EL 1009 ms, GSM8K 0.969, 12 % over C60, 3.14\n"
    started = time.process_time()
    assert wrong(line * (65_536 // len(line))) == []
    assert time.process_time() - started < 5


@settings(max_examples=30)
@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    wrong(text)


def test_what_infx_drafts_for_the_changelog_holds() -> None:
    bundle = minimax_m3()
    again = [twice(record) for record in bundle.records]
    records = (*bundle.records, *again)
    drafted = parse_yaml(draft_entry(records, sample_plan(list(records))).encode(), "x", Report())
    (entry,) = plain(drafted) if drafted else ()
    text = "\n".join(entry["description"])
    whole = replace(bundle, records=records)
    request = replace(bundle.pull_request, title="", body=text)
    found = list(claims(replace(whole, pull_request=request), load_rules()))
    assert stale(found) == []
    assert [one for one in underivable(found) if one.figure] == []
    assert {"interval", "rate", "pace", "score", "frontier", "axis"} <= {one.kind for one in found}


def twice(record: PointRecord) -> PointRecord:
    found = record.measurement
    if found:
        found = replace(found, tput_tok_s_gpu=found.tput_tok_s_gpu * 1.01)
    return replace(record, measurement=found, attempt=replace(record.attempt, repeat=2))


def test_what_no_reader_sees_claims_nothing() -> None:
    assert wrong("<!-- image nightly_1\n\nGSM8K 0.1 -->\n") == []
    assert wrong("<!-- GSM8K 0.1") == []
    request = replace(minimax_m3().pull_request, body="<!--\n\n-->\nGSM8K 0.1", title="")
    found = stale(list(claims(replace(minimax_m3(), pull_request=request), load_rules())))
    assert [one.where for one in found] == ["pull-request.json:body:4"]
    hidden = replace(request, body="<!-- image nightly_202610070333 -->")
    assert "names no image" in one(replace(minimax_m3(), pull_request=hidden), 15).sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"Moves from {OLD} to `{NEW}`.", []),
        (f"Moves from {NEW} to `{OLD}`.", [f"image: {OLD}"]),
        (f"{OLD} → {NEW}", []),
        (f"{NEW} -> {OLD}", [f"image: {OLD}"]),
        (f"{NEW}, compared to {OLD}", []),
    ],
)
def test_a_change_moves_to_the_image_of_the_head(text: str, said: list[str]) -> None:
    assert wrong(text) == said


def test_a_list_ends_where_a_number_is_of_something_else() -> None:
    assert unknown("at TP2, 12% faster") == [("12%", True)]
    assert unknown("concurrency 1 to 48, 64k in") == [("64k", True)]
