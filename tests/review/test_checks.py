"""The public case is judged as its reviewer judged it, and each check can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infx.review.bundle import Bundle, UpstreamRecipe
from infx.review.checks import CHECKS, review
from infx.review.result import CheckResult
from tests.review.failing import FAILING, corrected, with_diff, with_records
from tests.review.minimax_m3 import HEAD, KEY, NUMBER, RUN, VLLM, minimax_m3


def verdicts(bundle: Bundle) -> dict[int, str]:
    return {check.number: check.verdict for check in review(bundle).checks}


def one(bundle: Bundle, number: int) -> CheckResult:
    return review(bundle).checks[number]


def test_the_public_case_is_judged_as_its_reviewer_did() -> None:
    found = review(minimax_m3())
    said = {check.number: check.verdict for check in found.checks}
    assert said == dict.fromkeys(range(16), "PASS") | {3: "N/A", 12: "N/A", 15: "WARN"}
    assert found.verdict == "WARN"
    assert "synthetic" in found.note


def test_the_text_of_the_public_case_has_three_stale_claims() -> None:
    found = one(minimax_m3(), 15)
    assert len(found.evidence) == 3
    for claim in ("nightly_202610061452", "ATOM 0.1.7.dev58+g08735170a", "GPU sweep pending"):
        assert claim in found.sentence
    assert [e.where for e in found.evidence] == [f"pull-request.json:body:{n}" for n in (2, 2, 6)]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "@seungrokj"),
        (1, "19/19 throughput and 19/19 evaluation jobs"),
        (2, "0.970–0.988 in 19 evaluations"),
        (2, "gsm8k strict-match 0.969"),
        (4, f"(COLLABORATOR) reuses run {RUN}"),
        (11, "injected 2.78 = minimaxm3_eagle3_gqa thinking-on K=3"),
        (13, "bf16, no quantization config"),
        (14, "9 of 19 measured points on the frontier, 0 invalid"),
    ],
)
def test_what_passes_says_why(number: int, words: str) -> None:
    assert words in one(minimax_m3(), number).sentence


def test_a_corrected_text_passes_everything() -> None:
    assert review(corrected()).verdict == "PASS"


@pytest.mark.parametrize("number", range(16))
def test_each_check_fails_alone(number: int) -> None:
    break_it, words = FAILING[number]
    broken = break_it(corrected())
    found = {n for n, verdict in verdicts(broken).items() if verdict == "FAIL"}
    assert found == {number}
    assert words in one(broken, number).sentence
    assert review(broken).verdict == "FAIL"


def test_there_are_sixteen_checks_each_with_a_failing_bundle() -> None:
    assert [check.number for check in CHECKS] == list(range(16)) == list(FAILING)


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


# 3, 6: upstream


def vllm_touched(state: str) -> Bundle:
    bundle = corrected()
    (addition,) = bundle.changelog
    bundle = replace(bundle, changelog=(replace(addition, config_keys=(KEY, VLLM)),))
    recipe = UpstreamRecipe(entry=VLLM, url="https://recipes.vllm.ai/x", state=state)  # type: ignore[arg-type]
    return replace(bundle, upstream=(recipe,))


@pytest.mark.parametrize("state", ["published", "merged", "open", "draft", "closed"])
def test_an_upstream_recipe_must_be_out(state: str) -> None:
    expected = "PASS" if state in ("published", "merged") else "FAIL"
    assert verdicts(vllm_touched(state))[3] == expected


def test_an_affected_entry_without_figures_fails() -> None:
    found = review(vllm_touched("merged")).checks
    assert f"no point of {VLLM} is planned" in found[1].sentence
    assert f"nothing was evaluated of {VLLM}" in found[2].sentence


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("vllm/vllm-openai-rocm:v0.27.1", "PASS"),
        ("docker.io/vllm/vllm-openai:v0.27.1", "PASS"),
        ("vllm/vllm-openai@sha256:" + "a" * 64, "PASS"),
        ("rocm/vllm-dev:nightly", "FAIL"),
        ("localhost:5000/vllm/vllm-openai", "FAIL"),
    ],
)
def test_vllm_runs_from_an_upstream_image(image: str, expected: str) -> None:
    bundle = vllm_touched("merged")
    atom, vllm = bundle.entries.head
    entries = replace(bundle.entries, head=(atom, replace(vllm, image=image)))
    assert verdicts(replace(bundle, entries=entries))[6] == expected


# 8, 10: what the change holds


@pytest.mark.parametrize("file", ["docs/note.md", "inferencex-e2e/perf-changelog.yaml"])
@pytest.mark.parametrize("line", ["--hf-overrides '{}'", "git apply x"])
def test_prose_may_name_what_a_change_may_not_do(file: str, line: str) -> None:
    found = verdicts(with_diff(corrected(), line, file))
    assert (found[8], found[10]) == ("PASS", "PASS")


def test_a_server_that_was_started_with_an_override_fails() -> None:
    def overridden(record):  # type: ignore[no-untyped-def]
        argv = (*record.provenance.server_argv, "--hf-overrides", "{}")
        return replace(record, provenance=replace(record.provenance, server_argv=argv))

    found = one(with_records(corrected(), "throughput", overridden), 8)
    assert (found.verdict, "--hf-overrides" in found.sentence) == ("FAIL", True)


WAIVER = "# What is patched\na\n# Why\nb\n# Upstream link\nc\n# Removal plan\n{plan}\n"


@pytest.mark.parametrize(("plan", "expected"), [("with 0.2", "PASS"), ("", "FAIL")])
def test_a_patch_needs_a_filled_waiver(plan: str, expected: str) -> None:
    patched = FAILING[10][0](corrected())
    waived = replace(patched, head={f"docs/waiver/{NUMBER}.md": WAIVER.format(plan=plan)})
    found = one(waived, 10)
    assert found.verdict == expected
    assert ("lacks removal" in found.sentence) == (expected == "FAIL")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("patch -p1 < fix", "FAIL"),
        ("sed -i s/a/b/ /usr/lib/python3/dist-packages/vllm/x.py", "FAIL"),
        ("pip install git+https://github.com/x/vllm", "FAIL"),
        ("cat x > /opt/site-packages/atom/y.py", "FAIL"),
        ("pip install sentencepiece tiktoken", "PASS"),
        ("sed -i s/a/b/ recipe.yaml", "PASS"),
    ],
)
def test_what_patches_an_engine(line: str, expected: str) -> None:
    assert verdicts(with_diff(corrected(), line))[10] == expected


# 11, 13: drafts


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


@pytest.mark.parametrize("drafts", [(), None])
def test_a_draft_whose_types_are_not_shown_fails(drafts: tuple[()] | None) -> None:
    (draft,) = corrected().drafts
    shown = () if drafts == () else (replace(draft, layers=()),)
    assert verdicts(replace(corrected(), drafts=shown))[13] == "FAIL"


@pytest.mark.parametrize(("value", "expected"), [("1", "FAIL"), ("true", "FAIL"), ("0", "PASS")])
def test_the_switch_that_lowers_a_draft_is_prohibited(value: str, expected: str) -> None:
    line = f"  SGLANG_NVFP4_CKPT_FP8_NEXTN_MOE: '{value}'"
    assert verdicts(with_diff(corrected(), line))[13] == expected


# 12, 14


def test_append_only_passes_where_every_point_stays() -> None:
    bundle = corrected()
    (addition,) = bundle.changelog
    base = bundle.points.head[:18]
    bundle = replace(bundle, points=replace(bundle.points, base=base))
    found = one(replace(bundle, changelog=(replace(addition, append_only=True),)), 12)
    assert (found.verdict, "1 are new" in found.sentence) == ("PASS", True)


def test_append_only_fails_where_the_image_moves() -> None:
    bundle = corrected()
    (addition,) = bundle.changelog
    found = one(replace(bundle, changelog=(replace(addition, append_only=True),)), 12)
    assert found.verdict == "FAIL"
    assert "changed from rocm/atom-dev:nightly_202609281543" in found.sentence


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
