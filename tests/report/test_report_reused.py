"""Points that other runs measured: shown with their figures, marked and linked, counted once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from infx.changelog.draft import draft_entry
from infx.ci.reuse import reused
from infx.domain.plan import Plan
from infx.domain.point import Point
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.report.build import build_runs
from infx.report.data import data_of
from infx.report.html import html, write_html
from infx.report.markdown import markdown
from infx.report.model import RunData, RunFacts
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import LLAMA, evaluation, record, sample_plan, score

OLD, NEW = "20261129-1740-old", "20261130-0910-new"
POINTS = many_points(10)
KNOWN = {point.point_id: OLD for point in POINTS[:7]}


def data(name: str, plan: Plan, records: Sequence[PointRecord], **more: object) -> RunData:
    run = RunData(facts=RunFacts(run_id=name), plan=plan, records=tuple(records))
    return replace(run, **more)  # type: ignore[arg-type]


def measured(points: Sequence[Point], name: str) -> list[PointRecord]:
    return many_records(points, run_id=name, faults=False)


OLD_RECORDS = measured(POINTS[:7], OLD)
BEFORE = data(OLD, many_plan(POINTS[:7]), OLD_RECORDS)
PLAN = reused(many_plan(POINTS), KNOWN)
AFTER = data(NEW, PLAN, [*OLD_RECORDS, *measured(POINTS[7:], NEW)])


def test_reused_points_count_and_say_so() -> None:
    model = build_runs([AFTER])
    assert [row.reused for row in model.rows] == [OLD] * 7 + [""] * 3
    assert model.verdict.startswith("10 of 10 throughput points valid")
    told = {gate.name: gate.sentence for gate in model.gates}
    assert told["Points"] == "10 ok; 7 points reused from other runs."
    assert told["Ledger"] == "3 run + 7 reused + 100 excluded = 110 candidates."
    assert [point["reused"] for point in data_of(model)["points"]] == [OLD] * 7 + [""] * 3
    text = markdown(model)
    assert text.count(f"reused from {OLD}") == 7


def test_a_reused_point_without_its_record_is_not_run() -> None:
    model = build_runs([replace(AFTER, records=AFTER.records[1:])])
    told = {gate.name: gate for gate in model.gates}
    assert told["Points"].items == (f"{POINTS[0].label}: not run",)
    assert told["Points"].level == "attention"


def test_a_reused_point_that_is_judged_invalid_says_so() -> None:
    status = Status("invalid", "stale-export", "old")
    spoilt = replace(OLD_RECORDS[0], status=status)
    text = markdown(build_runs([replace(AFTER, records=(spoilt, *AFTER.records[1:]))]))
    assert text.count(f"reused from {OLD}") == 6


def test_a_lost_measurement_says_why() -> None:
    status = Status("skipped", "reused-lost", "the store has none")
    lost = replace(OLD_RECORDS[0], status=status, measurement=None)
    model = build_runs([replace(AFTER, records=(lost, *AFTER.records[1:]))])
    [told] = [gate for gate in model.gates if gate.name == "Points"]
    assert told.items == (f"{POINTS[0].label}: skipped:reused-lost the store has none",)


def test_runs_that_reuse_each_other_measure_a_point_once() -> None:
    third = data("third", PLAN, AFTER.records)
    for runs in ([BEFORE, AFTER], [AFTER, BEFORE], [AFTER, third], [BEFORE, AFTER, third]):
        rows = build_runs(runs).rows
        assert len(rows) == 10
        own = [row for row in rows if row.record.point.point_id in KNOWN]
        assert {row.runs for row in own} == {1}
        assert {row.reused for row in own} == ({""} if BEFORE in runs else {OLD})


def test_what_one_of_several_runs_measured_itself_is_not_reused() -> None:
    """One run measured all points, the other took seven of a run that is not told."""
    both = build_runs([data("own", many_plan(POINTS), measured(POINTS, "own")), AFTER])
    assert [row.reused for row in both.rows] == [""] * 10
    assert [row.runs for row in both.rows] == [2] * 10


def test_a_baseline_that_points_are_reused_from_is_no_comparison_of_them() -> None:
    since = build_runs([AFTER], [BEFORE]).baseline
    assert since
    assert since.itself == 7
    assert "7 points reused from it: the same measurement, so no change." in since.sentences


def test_a_reused_score_is_marked() -> None:
    scored = record(evaluation(LLAMA, 0.5), score=score(LLAMA, {"strict": 0.6}, 64, 0.5, 0.06))
    scored = replace(scored, attempt=replace(scored.attempt, run_id=OLD))
    plan = reused(sample_plan([scored]), {scored.point.point_id: OLD})
    model = build_runs([data(NEW, plan, [scored])])
    [row] = model.scores
    assert row.reused == OLD
    assert f"{LLAMA}, reused from {OLD}" in markdown(model)
    assert data_of(model)["scores"][0]["reused"] == OLD
    assert f'<a href="x.html#accuracy">reused from {OLD}</a>' in html(model, {OLD: "x.html"})
    other = data("other", plan, [scored])
    assert len(build_runs([data(NEW, plan, [scored]), other]).scores) == 1
    own = replace(scored, attempt=replace(scored.attempt, run_id="own"))
    rows = build_runs([data("own", sample_plan([own]), [own]), other]).scores
    assert [(row.run, row.reused) for row in rows] == [("own", ""), ("other", OLD)]


def test_the_page_links_to_the_report_of_the_run(tmp_path: Path) -> None:
    home = tmp_path / "runs" / "o&ld"
    model = build_runs([replace(AFTER, origins={OLD: home})])
    page = tmp_path / "runs" / NEW / "report.html"
    page.parent.mkdir(parents=True)
    write_html(model, page)
    assert "o%26ld" not in page.read_text()
    home.mkdir()
    (home / "report.html").write_text("a page")
    write_html(model, page)
    link = f'<a href="../o%26ld/report.html#row-{model.rows[0].anchor}">reused from {OLD}</a>'
    assert link in page.read_text()


def test_the_changelog_tells_what_was_reused() -> None:
    text = draft_entry(AFTER.records, PLAN, run=NEW)
    assert f'"run {NEW}: 3 of 10 points; reused from run {OLD}: 7 of 10 points"' in text
    assert "out of 10 planned, 10 valid" in text
