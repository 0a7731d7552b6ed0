from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infx.changelog.draft import draft_entry
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.report.build import build
from infx.report.figures import figure
from infx.report.model import Baseline, RunFacts
from tests.public_data import shared
from tests.report.sample_runs import (
    LLAMA,
    MINI,
    evaluation,
    harder_records,
    measurement,
    mono_records,
    point,
    record,
    sample_plan,
    sample_records,
    with_mono,
)


def parsed(text: str) -> dict[str, Any]:
    (entry,) = yaml.safe_load(text)
    return dict(entry)


def drafted() -> str:
    records = sample_records()
    return draft_entry(records, sample_plan(records))


def test_holds_what_a_reviewer_reads() -> None:
    entry = parsed(drafted())
    assert entry["config-keys"] == [LLAMA, MINI]
    assert entry["scenario-type"] == ["fixed-seq-len"]
    assert entry["pr-link"] == "XXX"
    told = "\n".join(entry["description"])
    assert "pypi:xllamacpp==2026.10.11549" in told
    assert "synthetic acceptance length 2.78" in told
    assert "highest throughput 1,411 tok/s/GPU at 98.0 tok/s/user" in told
    assert "3 frontier points out of 5 planned, 3 valid" in told
    assert "1 invalid:acceptance-off" in told
    assert "strict-match 0.000 ± 0.000 over 64 questions" in told


def test_keys_are_those_of_the_public_format() -> None:
    public = yaml.load(
        shared("data/inferencex/perf-changelog.yaml").read_text(), Loader=yaml.CSafeLoader
    )
    known = {key for entry in public for key in entry}
    entry = parsed(drafted())
    assert set(entry) <= known
    assert {type(entry[key]) for key in ("config-keys", "description")} == {list}


def test_bytes_are_what_the_format_asks() -> None:
    text = drafted()
    assert text.startswith("- config-keys:\n")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert "\t" not in text
    assert "\r" not in text


def test_evaluations_alone_say_so() -> None:
    records = [r for r in sample_records() if r.point.mode == "evaluation"]
    entry = parsed(draft_entry(records, sample_plan(records), "https://github.com/o/r/pull/7"))
    assert entry["evals-only"] is True
    assert "scenario-type" not in entry
    assert entry["pr-link"] == "https://github.com/o/r/pull/7"


def test_nothing_measured_is_said() -> None:
    entry = parsed(draft_entry([], sample_plan(sample_records())))
    assert any(
        "0 frontier points out of 3 planned, 0 valid, 3 not run" in t for t in entry["description"]
    )


def described(records: list[PointRecord]) -> list[str]:
    return list(parsed(draft_entry(records, sample_plan(records)))["description"])


def test_each_workload_has_its_own_curve_whatever_its_requests() -> None:
    told = described(harder_records())
    # One line of 64 in: two of three points, the repeated one counted once; one line of 128 in.
    assert f"{LLAMA}, 64 in, 32 out: 2 frontier points out of 3 planned, 3 valid" in told
    assert f"{LLAMA}, 128 in, 256 out: 1 frontier point out of 1 planned, 1 valid" in told
    heads = [text for text in told if "highest" in text]
    assert [text.split(" tok/s/GPU")[0].rsplit(" ", 1)[0] for text in heads] == [
        f"{LLAMA}, 64 in, 32 out: highest throughput",
        f"{LLAMA}, 64 in, 32 out: highest interactivity",
        f"{LLAMA}, 128 in, 256 out: highest throughput and interactivity",
    ]


def test_a_repeated_point_is_told_by_the_mean_of_its_figures() -> None:
    of = point(LLAMA, 2, 2)
    records = [record(of, measurement=measurement(2, itl_ms, 40.0)) for itl_ms in (10.0, 40.0)]
    first, second = (r.measurement.tput_tok_s_gpu for r in records if r.measurement)
    (head,) = [text for text in described(records) if "highest" in text]
    assert f"interactivity {figure((first * second) ** 0.5)} tok/s/GPU (95 % " in head


def test_a_figure_that_is_no_number_is_told_and_does_not_end_the_draft() -> None:
    good, odd = (record(point(LLAMA, c, c), measurement=measurement(c, 9.0, 9.0)) for c in (1, 2))
    seen = replace(measurement(2, 9.0, 9.0), tput_tok_s_gpu=math.nan)
    told = described([good, replace(odd, measurement=seen)])
    assert f"{LLAMA}: 1 frontier point out of 2 planned, 1 valid, 1 without figures" in told


def test_mono_off_and_on_are_two_curves() -> None:
    records = mono_records()
    text = draft_entry(records, sample_plan(records))
    assert f"{MINI}, mono off: " in text
    assert f"{MINI}, mono on: " in text


def test_evaluations_of_one_entry_are_told_apart() -> None:
    off, on = (with_mono(evaluation(MINI, 0.5), value) for value in ("off", "on"))
    plan = sample_plan([record(off), record(on)])
    told = parsed(draft_entry([record(off)], plan))["description"]
    assert any(text.startswith(f"{MINI}, mono off: gsm_mini") for text in told)
    assert f"{MINI}, mono on: gsm_mini, 5-shot: not run" in told


def test_an_evaluation_that_is_not_ok_is_told_with_its_status() -> None:
    status = Status("invalid", "config-differs", "dtype is bf16")
    records = [replace(harder_records()[-1], status=status)]
    (told,) = [text for text in described(records) if "gsm_mini" in text]
    assert told == f"{LLAMA}: gsm_mini, 5-shot: not judged, invalid:config-differs dtype is bf16"


def test_an_evaluation_that_did_not_run_is_told() -> None:
    records = harder_records()
    entry = parsed(draft_entry(records[:-1], sample_plan(records)))
    assert f"{LLAMA}: gsm_mini, 5-shot: not run" in entry["description"]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_comes_back(text: str) -> None:
    records = sample_records()
    plan = sample_plan(records)
    points = tuple(
        replace(point, entry=text, arm=replace(point.arm, image=text)) for point in plan.points[:1]
    )
    entry = parsed(draft_entry([], replace(plan, points=points), pr_link=text))
    assert entry["config-keys"] == [text]
    assert entry["pr-link"] == text
    assert f"{text}: image {text}" in entry["description"][0]


@pytest.mark.parametrize("word", ["yes", "null", "1e3", "on", "12:30", "-", "a: b", "# c"])
def test_words_that_yaml_reads_otherwise_are_quoted(word: str) -> None:
    records = sample_records()
    plan = sample_plan(records)
    points = (replace(plan.points[0], entry=word),)
    assert parsed(draft_entry([], replace(plan, points=points)))["config-keys"] == [word]


def test_what_changed_since_a_baseline_comes_first() -> None:
    settings = {f"option-{n} 1 → 2": n for n in range(1, 7)}
    since = Baseline(
        runs=(RunFacts(run_id="old"),),
        headline="12 points compared.",
        sentences=("12 points compared.", "Servers differ in option-1 1 → 2 (1 pair)."),
        settings=settings,
        added=("one",),
        dropped=("two", "three"),
    )
    records = sample_records()
    told = parsed(draft_entry(records, sample_plan(records), since=since))["description"]
    assert told[:6] == [
        "since run old: 12 points compared.",
        "since run old: Servers differ in option-1 1 → 2 (1 pair).",
        "since run old: option-5 1 → 2 (5 pairs)",
        "since run old: option-6 1 → 2 (6 pairs)",
        "since run old: 1 point added: one",
        "since run old: 2 points dropped: two, three",
    ]
    assert told[6].startswith(f"{LLAMA}: image ")


def rows_of(records: list[PointRecord]) -> Baseline:
    model = build(records, sample_plan(records), RunFacts(run_id="old"))
    return Baseline(runs=model.runs, rows=model.rows, headline="h", sentences=("h",))


def with_server(of: PointRecord, image: str, version: str) -> PointRecord:
    point = replace(of.point, arm=replace(of.point.arm, image=image))
    made = replace(of.provenance, server={"version": version} if version else {})
    return replace(of, point=point, provenance=made)


def told_of(was: tuple[str, str] | None, now: tuple[str, str]) -> str:
    of = record(point(LLAMA, 1, 1), measurement=measurement(1, 10.0, 10.0))
    since = rows_of([with_server(of, *was)]) if was else None
    records = [with_server(of, *now)]
    text = draft_entry(records, sample_plan(records), since=since)
    return next(t for t in parsed(text)["description"] if t.startswith(f"{LLAMA}: image"))


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (("a:1", "0.1"), ("a:2", "0.2"), "image a:1 → a:2, llamacpp 0.1 → 0.2"),
        (("a:1", "0.1"), ("a:1", "0.1"), "image a:1, llamacpp 0.1"),
        (("a:1", ""), ("a:2", "0.2"), "image a:1 → a:2, llamacpp 0.2"),
        (("a:1", "0.1"), ("a:2", ""), "image a:1 → a:2"),
        (None, ("a:2", "0.2"), "image a:2, llamacpp 0.2"),
    ],
)
def test_image_and_version_old_to_new(
    was: tuple[str, str] | None, now: tuple[str, str], told: str
) -> None:
    assert told_of(was, now) == f"{LLAMA}: {told}"


def test_an_image_is_told_with_its_digest() -> None:
    records = sample_records()[:1]
    of = records[0].point
    digest = "sha256:0123456789abcdef"
    pinned = replace(records[0], point=replace(of, arm=replace(of.arm, image_digest=digest)))
    told = parsed(draft_entry([pinned], sample_plan([pinned])))["description"][0]
    assert told == f"{LLAMA}: image {of.arm.image} (01234567)"


def test_the_run_is_named() -> None:
    records = sample_records()
    text = draft_entry(records, sample_plan(records), run="20261129-1740-3fa1")
    assert (
        parsed(text)["description"][-1]
        == "run 20261129-1740-3fa1: 8 of 8 points, 2 of 2 evaluations"
    )
    part = [record for record in records if record.point.mode == "throughput"][:5]
    told = parsed(draft_entry(part, sample_plan(records), run="20261129-1740-3fa1"))["description"]
    assert told[-1] == "run 20261129-1740-3fa1: 5 of 8 points, 0 of 2 evaluations"
