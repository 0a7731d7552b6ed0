"""--reuse: what a run of the store has measured stands for a point, in sweep, report and code."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from infx.ci.reuse import reused
from infx.cli.outcome import counted, exit_code
from infx.cli.reporting import stored_run
from infx.cli.reusing import check_reused, reused_statuses, with_reused
from infx.domain.errors import UsageError
from infx.domain.plan import Plan
from infx.domain.point import FixedLengths
from infx.domain.status import OK, Status
from infx.store import FILE, PointRow, Store, find_run
from tests.cli.commands import ROOT, STAND_IN, as_json, here, infx
from tests.report.many_points import STARTED_S, many_plan, many_points, many_records, write_run
from tests.report.sample_runs import LLAMA, evaluation, record, sample_plan, score

OLD, NEW = "20261128-0900-old", "20261129-1740-new"
POINTS = many_points(5)


def ran(results: Path, plan: Plan, name: str, later_s: float = 0) -> None:
    """Write a run of ``plan`` whose every point is ok."""
    jobs = {point.point_id: job.job_id for job in plan.jobs for point in job.points}
    records = [
        replace(r, attempt=replace(r.attempt, job_id=jobs[r.point.point_id]))
        for r in many_records(plan.points, run_id=name, faults=False)
    ]
    write_run(results, plan.points, records, plan, name, STARTED_S + later_s)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two runs: the newer one measured two points and reuses three of the older one."""
    ran(tmp_path, many_plan(POINTS[:3]), OLD)
    ran(tmp_path, reused(many_plan(POINTS), {p.point_id: OLD for p in POINTS[:3]}), NEW, 86_400)
    return tmp_path


def test_the_report_of_a_run_has_what_it_reuses(results: Path) -> None:
    (results / "runs" / OLD / "report.html").write_text("the older report")
    done = here("report", NEW, "--results", results, "--json")
    found = as_json(done)["data"]
    assert [point["conc"] for point in found["points"]] == [1, 2, 4, 8, 16]
    assert [point["reused"] for point in found["points"]] == [OLD] * 3 + [""] * 2
    assert all(point["figures"] for point in found["points"])
    page = (results / "runs" / NEW / "report.html").read_text()
    assert page.count(f'<a href="../{OLD}/report.html#row-') == 3


def test_artifacts_are_where_the_other_run_keeps_them(results: Path) -> None:
    with Store(results / FILE) as store:
        run = stored_run(store, find_run(store, NEW))
    first, *_, last = run.records
    path = first.artifacts["aiperf"]
    assert path.startswith(f"../{OLD}/jobs/")
    home = results / "runs" / OLD
    assert os.path.normpath(run.folder / path).startswith(str(home))
    assert last.artifacts["aiperf"].startswith("jobs/")
    assert run.origins == {OLD: home}


def test_an_arm_that_was_measured_before_is_compared(tmp_path: Path) -> None:
    """mono off is reused, mono on measured: the two are compared as if they were of one run."""
    arms = [point for point in many_points(80) if point.arm.axes.tp == 1 and point.conc <= 4]
    pairs = [point for point in arms if point.entry == arms[0].entry]
    off = [point for point in pairs if point.arm.axes.mono == "off"]
    ran(tmp_path, many_plan(off), OLD)
    ran(tmp_path, reused(many_plan(pairs), {p.point_id: OLD for p in off}), NEW, 86_400)
    done = here("compare", NEW, "--axis", "mono", "--results", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    # A made-up run has no requests to compare; it is in the older run that they are looked for.
    left = as_json(done)["data"]["left_out"]
    assert len(left) == len(off) == 3
    assert all(f"/{OLD}/jobs/" in one["why"] for one in left)


def test_status_tells_what_a_run_reuses(results: Path) -> None:
    assert f"3 more reused from run {OLD}" in here("status", NEW, "--results", results).stdout
    told = as_json(here("status", NEW, "--results", results, "--json"))["data"]
    assert told["reused"] == {OLD: 3}


def test_what_the_store_lost_ends_no_sweep_well(results: Path) -> None:
    plan = reused(many_plan(POINTS), {p.point_id: "gone" for p in POINTS[:1]})
    with Store(results / FILE) as store:
        with pytest.raises(UsageError) as refused:
            check_reused(store, plan)
        records = with_reused(store, results, plan, ())
    assert refused.value.code == "unknown-run"
    assert "infx store pull PLACE gone" in refused.value.hint
    [status] = reused_statuses(plan, records)
    assert str(status) == "skipped:reused-lost"
    assert "in run gone" in status.sentence
    assert exit_code([], records, whole=True, reused=[status]) == 4
    assert counted([], [status]) == "0 of 1 points ok, 1 skipped:reused-lost, 1 reused"


def test_a_measurement_that_is_valid_no_more_is_lost(results: Path) -> None:
    with Store(results / FILE) as store:
        spoilt = replace(store.records(OLD)[0], status=Status("invalid", "stale-export", "old"))
        store.replace([spoilt])
        run = stored_run(store, find_run(store, NEW))
    states = reused_statuses(run.plan, run.records)
    assert [str(status) for status in states] == ["skipped:reused-lost", "ok", "ok"]


def test_bars_and_limits_are_those_of_the_plan(tmp_path: Path) -> None:
    """They are no part of an identity: what is reused is judged as the plan says."""
    scored = record(evaluation(LLAMA, 0.5), score=score(LLAMA, {"strict": 0.6}, 64, 0.5, 0.06))
    plan = sample_plan([scored])
    attempt = replace(scored.attempt, run_id=OLD, job_id=plan.jobs[0].job_id)
    write_run(tmp_path, plan.points, [replace(scored, attempt=attempt)], plan, OLD)
    stricter = replace(scored.point.workload, bars={"strict": 0.9})
    planned = replace(plan, points=(replace(scored.point, workload=stricter),))
    with Store(tmp_path / FILE) as store:
        asked = reused(planned, {scored.point.point_id: OLD})
        [found] = with_reused(store, tmp_path, asked, ())
    assert found.score
    assert found.score.filters["strict"].bar == 0.9
    assert exit_code([], [found], whole=True, reused=[OK]) == 1


def test_a_stricter_limit_of_errors_judges_the_evidence_again(tmp_path: Path) -> None:
    ran(tmp_path, many_plan(POINTS[:1]), OLD)
    point = POINTS[0]
    assert isinstance(point.workload, FixedLengths)
    stricter = replace(point, workload=replace(point.workload, error_share=0.0))
    plan = reused(many_plan([stricter]), {point.point_id: OLD})
    with Store(tmp_path / FILE) as store:
        [found] = with_reused(store, tmp_path, plan, ())
    assert str(found.status) == "invalid:no-export"  # of a made-up run there is no evidence


def test_a_machine_that_failed_all_but_what_is_reused_left_a_partial_run() -> None:
    failed = PointRow(
        run_id=NEW, point_id="p", job_id="j", label="p", mode="throughput", attempt=1,
        status=Status("failed", "disk-full", "no space"),
    )  # fmt: skip
    assert exit_code([failed], [], whole=True) == 3
    assert exit_code([failed], [], whole=True, reused=[OK]) == 4


def test_reused_points_count_as_done() -> None:
    assert exit_code([], [], whole=True, reused=[OK, OK]) == 0
    assert counted([], [OK, OK]) == "2 of 2 points ok, 2 reused"


@pytest.mark.parametrize("words", [("--repeats", "2"), ("--interleave", "mono")])
def test_nothing_is_measured_again_and_not(words: tuple[str, ...], tmp_path: Path) -> None:
    done = here("plan", "quickstart", "--reuse", *words, "--results", tmp_path)
    assert done.returncode == 2
    assert f"--reuse measures nothing again, {words[0]} does" in done.stderr


def test_a_saved_plan_is_run_as_it_is(tmp_path: Path) -> None:
    done = here("sweep", "plan.json", "--reuse", "--results", tmp_path)
    assert done.returncode == 2
    assert "--reuse" in done.stderr


def test_before_the_first_run_there_is_nothing_to_reuse(tmp_path: Path) -> None:
    done = here("plan", "quickstart", "--reuse", "--results", tmp_path, "--json")
    assert done.returncode == 0
    assert "reused" not in as_json(done)["data"]["counts"]


@pytest.mark.slow
def test_sweep_measures_what_no_run_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = (ROOT / "configs/quickstart.yaml").read_text()
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/mine.yaml").write_text(matrix)
    asked = ("mine", "--entry", "smol*")
    assert infx("sweep", *asked, cwd=tmp_path, program=STAND_IN).returncode == 0
    more = matrix.replace("conc: [1, 2, 4]", "conc: [1, 2, 3, 4]", 1)
    (tmp_path / "configs/mine.yaml").write_text(more)
    saved = tmp_path / "plan.json"
    planned = infx("plan", *asked, "--reuse", "-o", saved, "--json", cwd=tmp_path)
    assert as_json(planned)["data"]["counts"] == {"run": 1, "reused": 4}
    swept = infx("sweep", saved, "--json", cwd=tmp_path, program=STAND_IN)
    assert swept.returncode == 0, swept.stderr
    told = as_json(swept)["data"]
    assert len(told["points"]) == 1
    assert [one["status"]["state"] for one in told["reused"]] == ["ok"] * 4
    # All is measured now: a sweep makes a report of it, and measures nothing.
    again = infx("sweep", *asked, "--reuse", cwd=tmp_path, program=STAND_IN)
    assert again.returncode == 0, again.stderr
    assert "5 of 5 points ok, 5 reused" in again.stdout
    assert "nothing is left to run" in again.stderr
    # What the store does not have is no result.
    lost = infx("sweep", saved, "--results", tmp_path / "empty", cwd=tmp_path, program=STAND_IN)
    assert lost.returncode == 2
    assert "infx store pull PLACE" in lost.stderr
    assert not (tmp_path / "empty/runs").exists() or not list((tmp_path / "empty/runs").iterdir())
