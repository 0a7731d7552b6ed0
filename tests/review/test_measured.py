"""The sweep, its evaluations, append-only and the frontier: checks 1, 2, 12 and 14."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infx.domain.status import Status
from infx.review.bundle import Bundle
from tests.review.failing import corrected, with_records
from tests.review.minimax_m3 import HEAD, KEY
from tests.review.verdicts import one, verdicts

# 1: the sweep


def swept_by(bundle: Bundle, **changes: object) -> Bundle:
    (run,) = bundle.runs
    return replace(bundle, runs=(replace(run, **changes),))  # type: ignore[arg-type]


@pytest.mark.parametrize("sha", ["", "4b94f09", "4b94f096" + "5" * 32, "deadbeef"])
def test_a_run_is_of_a_commit_of_the_pull_request(sha: str) -> None:
    passes = sha.startswith("4b94f09")
    assert verdicts(swept_by(corrected(), head_sha=sha))[1] == ("PASS" if passes else "FAIL")


def test_a_skipped_job_is_no_passed_one() -> None:
    (run,) = corrected().runs
    skipped = replace(run.checks[0], conclusion="skipped")
    found = one(swept_by(corrected(), checks=(skipped, *run.checks[1:])), 1)
    assert (found.verdict, "skipped" in found.sentence) == ("FAIL", True)


def test_a_run_without_evaluation_jobs_is_not_enough() -> None:
    (run,) = corrected().runs
    only = tuple(check for check in run.checks if check.kind == "throughput")
    assert "has no evaluation job" in one(swept_by(corrected(), checks=only), 1).sentence


def test_a_shortened_run_is_not_enough() -> None:
    assert verdicts(swept_by(corrected(), submission_valid=False))[1] == "FAIL"


def test_a_commit_that_changes_a_config_after_the_run_needs_another() -> None:
    bundle = corrected()
    *before, head = bundle.pull_request.commits
    own = replace(head, merge=False, files=("inferencex-e2e/configs/amd-master.yaml",))
    request = replace(bundle.pull_request, commits=(*before, own))
    found = one(replace(bundle, pull_request=request), 1)
    assert found.verdict == "FAIL"
    assert f"commit {HEAD[:8]} changed" in found.sentence


def test_a_planned_point_without_a_record_fails() -> None:
    bundle = corrected()
    found = one(replace(bundle, records=bundle.records[1:]), 1)
    assert "1 of 19 planned points have no record: tp4-c5" in found.sentence


def test_a_point_that_a_merge_changed_was_not_measured() -> None:
    bundle = corrected()
    moved = replace(bundle.points.head[0], point_id="7" * 64)
    head = (moved, *bundle.points.head[1:])
    found = one(replace(bundle, points=replace(bundle.points, head=head)), 1)
    assert found.verdict == "FAIL"
    assert "of no point that is planned" in found.sentence


# 2: evaluations


def test_an_evaluation_with_another_image_fails() -> None:
    def other(record):  # type: ignore[no-untyped-def]
        arm = replace(record.point.arm, image="rocm/atom-dev:nightly_202610061452")
        return replace(record, point=replace(record.point, arm=arm))

    found = one(with_records(corrected(), "evaluation", other), 2)
    assert found.verdict == "FAIL"
    assert "the config pins rocm/atom-dev:nightly_202610070333" in found.sentence


def test_a_point_that_was_not_evaluated_fails() -> None:
    bundle = corrected()
    left = tuple(
        r for r in bundle.records if r.point.mode == "throughput" or r.point.arm.axes.tp == 4
    )
    found = one(replace(bundle, records=left), 2)
    assert found.verdict == "FAIL"
    assert "no evaluation of what computed tp2-c25" in found.sentence


def test_a_point_evaluated_at_another_concurrency_only_is_a_warning() -> None:
    bundle = corrected()
    left = tuple(r for r in bundle.records if r.point.name != "accuracy-tp4-c8")
    found = one(replace(bundle, records=left), 2)
    assert found.verdict == "WARN"
    assert "1 of 19 points" in found.sentence


def test_a_score_that_chance_decides_is_a_warning() -> None:
    def few(record):  # type: ignore[no-untyped-def]
        return replace(record, score=replace(record.score, questions=20))

    found = one(with_records(corrected(), "evaluation", few), 2)
    assert found.verdict == "WARN"
    assert "not enough data" in found.sentence


# 12, 14


def test_append_only_passes_where_every_point_stays() -> None:
    bundle = corrected()
    (addition,) = bundle.changelog
    base = bundle.points.head[:18]
    bundle = replace(bundle, points=replace(bundle.points, base=base))
    found = one(replace(bundle, changelog=(replace(addition, append_only=True),)), 12)
    assert (found.verdict, "new: 1" in found.sentence) == ("PASS", True)


def test_append_only_fails_where_the_image_moves() -> None:
    bundle = corrected()
    (addition,) = bundle.changelog
    found = one(replace(bundle, changelog=(replace(addition, append_only=True),)), 12)
    assert found.verdict == "FAIL"
    assert "changed from rocm/atom-dev:nightly_202609281543" in found.sentence


def appending(**changes: str) -> Bundle:
    """An append-only change that adds the last point, which differs so."""
    bundle = corrected()
    (addition,) = bundle.changelog
    *stood, new = bundle.points.head
    points = replace(bundle.points, base=tuple(stood), head=(*stood, replace(new, **changes)))
    return replace(bundle, changelog=(replace(addition, append_only=True),), points=points)


def test_append_only_adds_to_curves_that_were_there() -> None:
    assert one(appending(), 12).verdict == "PASS"
    found = one(appending(scenario="fixed-seq-len"), 12)
    assert (found.verdict, "is on no curve of" in found.sentence) == ("FAIL", True)


def test_under_append_only_the_new_points_alone_are_measured() -> None:
    bundle = appending()
    new = bundle.points.head[-1].point_id
    kept = [r for r in bundle.records if r.point.mode == "evaluation" or r.point.point_id == new]
    assert one(replace(bundle, records=tuple(kept)), 1).verdict == "PASS"
    assert one(replace(corrected(), records=tuple(kept)), 1).verdict == "FAIL"


def test_a_changelog_entry_may_be_of_one_scenario() -> None:
    bundle = corrected()
    other = replace(bundle.points.head[0], point_id="8" * 64, scenario="fixed-seq-len")
    points = replace(bundle.points, head=(*bundle.points.head, other))
    bundle = replace(bundle, points=points)
    (addition,) = bundle.changelog
    limited = replace(addition, scenario_types=("agentic-coding",))
    assert one(bundle, 1).verdict == "FAIL"
    found = one(replace(bundle, changelog=(limited,)), 1)
    assert found.verdict == "WARN"
    assert f"new or changed in {KEY}: 1 point whose throughput no changelog" in found.sentence
    stood = replace(bundle.points, base=(*bundle.points.base, other))
    assert one(replace(bundle, changelog=(limited,), points=stood), 1).verdict == "PASS"
    elsewhere = replace(addition, scenario_types=("fixed-seq-len",))
    assert one(replace(bundle, changelog=(elsewhere,)), 14).verdict == "FAIL"


@pytest.mark.parametrize("state", ["failed", "cancelled", "skipped"])
def test_a_point_that_did_not_end_well_was_not_measured(state: str) -> None:
    bundle = corrected()
    first, *others = bundle.records
    lost = replace(first, status=Status(state, "server-crash", "seen"))  # type: ignore[arg-type]
    found = one(replace(bundle, records=(lost, *others)), 1)
    assert "1 of 19 planned points have no record: tp4-c5" in found.sentence


def test_two_workloads_are_two_curves() -> None:
    bundle = corrected()

    def longer(record):  # type: ignore[no-untyped-def]
        workload = replace(record.point.workload, duration_s=7200)
        return replace(record, point=replace(record.point, workload=workload))

    other = [longer(r) if r.point.conc > 20 else r for r in bundle.records if r.counters]
    evidence = one(replace(bundle, records=tuple(other)), 14).evidence
    assert [", 7200 s" in one.text for one in evidence] == [False, True]


def test_few_points_on_the_frontier_are_a_warning() -> None:
    bundle = corrected()
    few = [r for r in bundle.records if r.point.mode == "evaluation" or r.point.conc in (5, 8, 12)]
    found = one(replace(bundle, records=tuple(few)), 14)
    assert found.verdict == "WARN"
    assert "3 of 3 measured points on the frontier" in found.sentence


def test_repeats_of_a_point_are_one_point() -> None:
    bundle = corrected()
    again = [replace(r, attempt=replace(r.attempt, repeat=2)) for r in bundle.records]
    found = one(replace(bundle, records=(*bundle.records, *again)), 14)
    assert "9 of 19 measured points on the frontier" in found.sentence


def test_a_shortened_workload_is_no_submission() -> None:
    def short(record):  # type: ignore[no-untyped-def]
        workload = replace(record.point.workload, duration_s=600)
        return replace(record, point=replace(record.point, workload=workload))

    found = one(with_records(corrected(), "throughput", short), 1)
    assert (found.verdict, "duration-s 600 is under 900" in found.sentence) == ("FAIL", True)


def test_an_entry_that_selects_nothing_never_passes() -> None:
    bundle = corrected()
    (addition,) = bundle.changelog
    nothing = replace(bundle, changelog=(replace(addition, config_keys=("no-such-*",)),))
    found = verdicts(nothing)
    assert {found[1], found[2]} == {"WARN"}
    assert found[14] == "FAIL"
    assert KEY not in one(nothing, 6).sentence


def test_an_evaluation_with_another_digest_fails() -> None:
    def other(record):  # type: ignore[no-untyped-def]
        arm = replace(record.point.arm, image_digest="sha256:" + "b" * 64)
        return replace(record, point=replace(record.point, arm=arm))

    found = one(with_records(corrected(), "evaluation", other), 2)
    assert (found.verdict, "ran digest sha256:bbbb" in found.sentence) == ("FAIL", True)


def test_a_length_of_another_number_of_drafts_fails() -> None:
    def two(record):  # type: ignore[no-untyped-def]
        arm = replace(record.point.arm, axes=replace(record.point.arm.axes, k=2))
        return replace(record, point=replace(record.point, arm=arm))

    found = one(with_records(corrected(), "throughput", two), 11)
    assert (found.verdict, "of K=3, the server drafts 2" in found.sentence) == ("FAIL", True)


def test_append_only_entries_stand_alone() -> None:
    bundle = corrected()
    (addition,) = bundle.changelog
    same = replace(bundle, points=replace(bundle.points, base=bundle.points.head))
    mixed = replace(same, changelog=(replace(addition, append_only=True), addition))
    found = one(mixed, 12)
    assert (found.verdict, "beside normal ones" in found.sentence) == ("FAIL", True)
