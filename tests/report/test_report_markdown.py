"""The summary for a pull request: what it holds, how it is cut, and a whole one to read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.report.build import build, build_runs
from infx.report.markdown import LIMIT, markdown
from infx.report.markdown_parts import Cut
from infx.report.model import RunData
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import (
    FACTS,
    MINI,
    empty_plan,
    harder_records,
    measurement,
    mono_records,
    record,
    sample_plan,
    sample_records,
)

GOLDEN = Path(__file__).parent / "golden_report.md"


def once() -> str:
    """Two entries, an invalid and a failed point, two evaluations, what was left out."""
    records = sample_records()
    return markdown(build(records, sample_plan(records), FACTS))


def small() -> str:
    """The same with one entry measured twice, the second time a little slower."""
    records = sample_records()
    times = {1: (3.9, 21.0), 2: (4.6, 30.0), 4: (7.1, 52.0)}
    again = [
        record(r.point, measurement=measurement(r.point.conc, itl_ms * 1.01, ttft_ms * 1.01))
        for r in records[3:6]
        for itl_ms, ttft_ms in (times[r.point.conc],)
    ]
    return markdown(build([*records, *again], sample_plan(records), FACTS))


def test_a_small_run_is_told_as_in_the_golden_file() -> None:
    assert small() == GOLDEN.read_text(encoding="utf-8")


def test_frontier_points_stand_first_and_the_others_are_folded() -> None:
    points = many_points(60)
    text = markdown(build(many_records(points), many_plan(points), FACTS))
    for part in text.split("**minimaxm3")[1:]:
        before, *after = re.split(r"points? not on the frontier</summary>", part, maxsplit=1)
        rows = re.findall(r"^\| (★?) ?tp", before, flags=re.M)
        assert rows
        assert set(rows) == {"★"}
        assert all("★ tp" not in folded.split("</details>")[0] for folded in after)


@pytest.mark.slow
def test_a_large_run_fits_and_says_what_was_left_out() -> None:
    points = many_points(500)
    model = build(many_records(points), many_plan(points), FACTS)
    text = markdown(model)
    assert 30_000 < len(text) < LIMIT
    assert re.search(r"^Left out, to fit into a comment: \d+ points", text, flags=re.M)
    # What decides is whole: every frontier point and every reason.
    assert text.count("| ★ ") == sum(row.on_frontier for row in model.rows)
    assert text.count("<details>") == text.count("</details>")


def test_a_run_of_lines_and_long_texts_fits_too() -> None:
    long = "@" * 9000
    records = [
        replace(
            record,
            point=replace(record.point, entry=f"{n}{long}", name=f"{n}{long}"),
            status=Status("invalid", "errors", long) if n % 2 else record.status,
        )
        for n, record in enumerate(many_records(many_points(80), faults=False))
    ]
    text = markdown(build(records, empty_plan(), replace(FACTS, run_id=long, command=long)))
    assert len(text) < LIMIT
    assert "Left out" in text


@given(st.integers(1, 40), st.integers(0, 60))
@settings(max_examples=30, deadline=None)
def test_what_is_left_out_is_counted(most: int, n: int) -> None:
    cut = Cut(most)
    shown = cut.few(range(n), "points")
    assert len(shown) == min(n, most)
    assert cut.told == ([f"{n - most} points"] if n > most else [])


def test_repeats_and_chances_have_columns_where_there_are_any() -> None:
    points = many_points(20)
    text = markdown(build(many_records(points, repeats=3), many_plan(points, 3), FACTS))
    assert "| Chance |" in text
    assert re.search(r"\| 1 \| 3 \| 30 \| [\d,.]+ \([\d,.]+ – [\d,.]+\) \|", text)
    assert "Chance" not in once()


def test_a_repeat_that_does_not_count_is_told_with_its_reason() -> None:
    records = sample_records()
    bad = Status("invalid", "no-export", "the folder is empty")
    text = markdown(build([*records, record(records[3].point, bad)], sample_plan(records), FACTS))
    assert "1 repeat without effect: not valid." in text
    [line] = [line for line in text.splitlines() if ", a repeat | " in line]
    assert line.endswith("| invalid:no-export | the folder is empty |")


def test_costs_have_columns_where_there_are_any() -> None:
    points = many_points(20)
    text = markdown(build(many_records(points), many_plan(points), FACTS))
    assert "J/token" in text
    assert "$/M tokens" not in text
    assert "J/token" not in once()


def test_a_command_for_each_frontier_point() -> None:
    model = build(sample_records(), empty_plan(), FACTS)
    text = markdown(model)
    block = text.split("```sh\n")[1].split("\n```")[0].splitlines()
    assert block == [row.repro for row in model.rows if row.on_frontier]
    assert all(re.fullmatch(r"infx repro [0-9a-f]{8}", line) for line in block)


def test_runs_are_listed_each() -> None:
    records = sample_records()
    plan = sample_plan(records)
    runs = [
        RunData(facts=replace(FACTS, run_id=name), plan=plan, records=tuple(records))
        for name in ("first-run", "second-run")
    ]
    text = markdown(build_runs(runs))
    assert "| first-run |" in text
    assert "| second-run |" in text


@pytest.mark.parametrize("records", [[], sample_records()[7:8]])
def test_an_empty_report_explains_itself(records: list[PointRecord]) -> None:
    text = markdown(build(records, sample_plan(sample_records()), FACTS))
    assert text.startswith("### FAIL: No valid throughput point")
    assert "not run" in text


def test_what_stands_behind_a_score_and_a_tail_is_shown() -> None:
    text = markdown(build(harder_records(), empty_plan(), FACTS))
    assert "| Empty | Cut | Answer |" in text
    assert "| 2 | 40 | no-bar |" in text
    assert "| Point | conc | Runs | Requests |" in text


def test_an_invalid_evaluation_stands_with_its_status() -> None:
    status = Status("invalid", "config-differs", "dtype is bf16")
    records = [replace(harder_records()[-1], status=status)]
    text = markdown(build(records, sample_plan(records), FACTS))
    assert "| – | – | invalid:config-differs |" in text


def test_lines_are_named_with_what_tells_them_apart() -> None:
    records = mono_records()
    text = markdown(build(records, sample_plan(records), FACTS))
    for value in ("off", "on"):
        assert f"**{MINI} (mono {value})** (64 in, 32 out)" in text
