"""infx bundle: what it gathers, how it is written, and what it refuses."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest

from infx.cli.bundling import Sources, bundled
from infx.domain.errors import InfxError
from infx.domain.plan import Reused
from infx.domain.record import PointRecord
from infx.domain.serial import encode
from infx.domain.status import Status
from infx.launch.runs import open_store
from infx.review.bundle import Bundle
from infx.review.reading import read_bundle
from infx.store.judged import Judged
from tests.cli.commands import as_json, here, infx
from tests.cli.pull_requests import (
    CHANGED,
    ENTRY,
    MATRIX,
    NUMBER,
    REPOSITORY,
    Lab,
    commit,
    git,
    lab_in,
)

LINK = f"https://github.com/{REPOSITORY}/pull/{NUMBER}"
OTHER = ENTRY.replace(f"/pull/{NUMBER}", "/pull/9").replace("Concurrency 2", "Something else")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return lab_in(tmp_path_factory.mktemp("template") / "lab")


@pytest.fixture
def lab(template: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab(Path(shutil.copytree(template.folder, tmp_path / "lab")))
    monkeypatch.chdir(made.folder)
    return made


def sources(lab: Lab, *runs: str, **given: Any) -> Sources:
    nothing: dict[str, Any] = dict.fromkeys(("comments", "results", "drafts", "upstream"))
    told = {"base": "", "head": "", "limit_bytes": 2**20, **nothing, **given}
    return Sources(event=lab.event, runs=runs, **told)


def bundle(lab: Lab, *runs: str, **given: Any) -> Bundle:
    return bundled(sources(lab, *runs, **given), lambda done, total: None).bundle


def refused(lab: Lab, *runs: str, **given: Any) -> tuple[str, str]:
    """The code and the sentence of the error, whose exit code is 2."""
    with pytest.raises(InfxError) as caught:
        bundle(lab, *runs, **given)
    assert caught.value.exit_code == 2
    return caught.value.code, caught.value.message


def test_it_holds_the_branch_the_plan_and_the_run(lab: Lab) -> None:
    run = lab.swept(lab.plan())
    made = bundle(lab, comments=lab.signed(run))
    request = made.pull_request
    assert (request.number, request.author, request.labels) == (
        NUMBER,
        "contributor",
        ("full-sweep-fail-fast",),
    )
    assert [commit.sha for commit in request.commits] == [lab.head]
    assert request.changed == ("configs/mini.yaml", "perf-changelog.yaml")
    assert "+        conc: [1, 2]" in made.diff
    assert made.codeowners.splitlines()[1] == "/configs/mini.yaml @reviewer"
    assert [p.name for p in made.points.base] == ["mini-c1"]
    assert [p.name for p in made.points.head] == ["mini-c1", "mini-c2"]
    assert {p.image for p in made.points.head} == {e.image for e in made.entries.head}
    assert made.changelog[0].config_keys == ("mini",)
    [told] = made.runs
    assert (told.run_id, told.head_sha, told.conclusion) == (run, lab.head, "success")
    assert sorted(check.kind for check in told.checks) == ["evaluation", *["throughput"] * 2]
    assert len(made.records) == 3
    assert set(made.rules) == {"model-status", "bars"}
    assert set(made.golden) == {"minimaxm3-mini_eagle3"}
    assert made.head == {"configs/mini.yaml": CHANGED}
    assert [comment.author for comment in made.comments] == ["reviewer"] * 2


def test_the_same_sources_are_the_same_bytes(lab: Lab) -> None:
    lab.swept(lab.plan())
    for name in ("a.tar.gz", "b.tar.gz", "a.zip", "b.zip", "folder"):
        done = here("bundle", "--event", lab.event, "-o", name)
        assert done.returncode == 0, done.stderr
    assert Path("a.tar.gz").read_bytes() == Path("b.tar.gz").read_bytes()
    assert Path("a.zip").read_bytes() == Path("b.zip").read_bytes()
    one, *others = (read_bundle(Path(name)) for name in ("a.tar.gz", "a.zip", "folder"))
    assert others == [one, one]


def test_a_folder_with_something_in_it_is_left_alone(lab: Lab) -> None:
    (lab.folder / "mine").mkdir()
    (lab.folder / "mine/notes").write_text("x")
    done = here("bundle", "--event", lab.event, "-o", "mine")
    assert done.returncode == 2
    assert [path.name for path in (lab.folder / "mine").iterdir()] == ["notes"]


def test_the_judge_is_that_of_the_base(lab: Lab) -> None:
    lenient = {"bars": "version: 1\ndefault: {}\n", "evidence": "version: 1\n"}
    commit(lab.folder, {f"configs/review/{name}.yaml": text for name, text in lenient.items()})
    lab.tell()
    rules = bundle(lab).rules
    assert set(rules) == {"model-status", "bars"}
    assert "gsm_mini" in rules["bars"]


def test_evidence_stays_within_its_limit_and_a_note_stands_for_the_rest(lab: Lab) -> None:
    lab.swept(lab.plan())
    made = bundle(lab, limit_bytes=0)
    assert len(made.artifacts) == 3
    assert all(path.endswith("server.log.left-out") for path in made.artifacts)
    assert "evidence is limited to 0 MiB" in made.manifest.note
    assert made.records[0].artifacts["server-log"].endswith(".left-out")


def test_commits_that_only_bring_the_base_in_are_told_from_others(lab: Lab) -> None:
    folder = lab.folder
    git(folder, "checkout", "-q", "main")
    commit(folder, {"notes.txt": "main goes on\n"})
    git(folder, "checkout", "-q", "new-point")
    git(folder, "merge", "-q", "--no-ff", "-m", "main", "main")
    git(folder, "checkout", "-q", "main")
    commit(folder, {"notes.txt": "further\n"})
    git(folder, "checkout", "-q", "new-point")
    git(folder, "merge", "-q", "--no-ff", "--no-commit", "main")
    commit(folder, {"configs/mini.yaml": CHANGED.replace("limit: 4", "limit: 3")})
    git(folder, "checkout", "-q", "-b", "side", "HEAD~2")
    commit(folder, {"side.txt": "x"})
    git(folder, "checkout", "-q", "new-point")
    git(folder, "merge", "-q", "--no-ff", "-m", "side", "side")
    lab.tell()
    commits = bundle(lab).pull_request.commits
    told = [(commit.merge, commit.files) for commit in commits]
    assert told[0] == (False, ("configs/mini.yaml", "perf-changelog.yaml"))
    assert (True, ("notes.txt",)) in told
    assert (False, ("configs/mini.yaml",)) in told
    assert (False, ("side.txt",)) in told
    merge = told[-1]
    assert not merge[0]
    assert set(merge[1]) == {"configs/mini.yaml", "notes.txt", "side.txt"}


def test_a_merge_with_a_conflict_tells_what_was_resolved(lab: Lab) -> None:
    folder = lab.folder
    git(folder, "checkout", "-q", "main")
    commit(folder, {"perf-changelog.yaml": OTHER, "notes.txt": "main goes on\n"})
    git(folder, "checkout", "-q", "new-point")
    with pytest.raises(CalledProcessError):
        git(folder, "merge", "-q", "main")
    commit(folder, {"perf-changelog.yaml": f"{OTHER}\n{ENTRY}"})
    lab.tell()
    made = bundle(lab)
    merge = made.pull_request.commits[-1]
    assert (merge.merge, merge.files) == (False, ("perf-changelog.yaml",))
    assert [one.pr_link for one in made.changelog] == [LINK]


def test_a_base_that_went_on_is_no_change_of_the_branch(lab: Lab) -> None:
    git(lab.folder, "checkout", "-q", "main")
    commit(lab.folder, {"notes.txt": "main goes on\n"})
    git(lab.folder, "checkout", "-q", "new-point")
    lab.tell()
    assert "notes.txt" not in bundle(lab).diff


def test_a_project_below_the_root_of_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab_in(tmp_path / "lab", below="bench/")
    monkeypatch.chdir(made.folder / "bench")
    found = bundle(made)
    assert found.pull_request.changed == ("bench/configs/mini.yaml", "bench/perf-changelog.yaml")
    assert found.entries.head[0].files[0] == "bench/configs/mini.yaml"
    assert found.head == {"bench/configs/mini.yaml": CHANGED}
    assert set(found.rules) == {"model-status", "bars"}


def test_a_waiver_goes_with_it(lab: Lab) -> None:
    path = f"docs/waiver/{NUMBER}.md"
    commit(lab.folder, {path: "# What\n"})
    lab.tell()
    assert bundle(lab).head[path] == "# What\n"


def test_a_point_that_changes_unasked_is_told_of(lab: Lab) -> None:
    changes = {"configs/more.yaml": MATRIX.replace("mini:\n", "more:\n", 1).replace("[1]", "[4]")}
    commit(lab.folder, changes)
    lab.tell()
    made = bundle(lab)
    assert [p.name for p in made.points.head if p.entry == "more"] == ["more-c4"]
    assert [p.name for p in made.points.base] == ["mini-c1"]


def test_given_facts_go_with_it(lab: Lab) -> None:
    Path("drafts.json").write_text(json.dumps([{"model": "m", "stored": "bf16"}]))
    recipe = {"entry": "mini", "url": "https://example.org", "state": "merged"}
    upstream = Path("upstream.json")
    upstream.write_text(json.dumps([recipe]))
    made = bundle(lab, drafts=Path("drafts.json"), upstream=upstream)
    assert made.drafts[0].model == "m"
    assert made.upstream[0].state == "merged"
    upstream.write_text(json.dumps([recipe | {"state": "perhaps"}]))
    assert refused(lab, upstream=upstream)[0] == "bad-record"


# Runs


def test_runs_of_other_pull_requests_are_left_out(lab: Lab) -> None:
    lab.swept(lab.plan(pull_request=3, repository="example/other"))
    mine = lab.swept(lab.plan())
    lab.swept(lab.plan(pull_request=4))
    made = bundle(lab)
    assert [run.run_id for run in made.runs] == [mine]


def test_points_that_another_run_of_the_repository_measured_stand_here(lab: Lab) -> None:
    other = lab.swept(lab.plan(pull_request=3))
    [run] = bundle(lab).runs
    assert (run.run_id, run.reused, run.pull_request) == (other, True, 3)


def test_what_a_person_measured_stands_for_nothing_unasked(lab: Lab) -> None:
    lab.swept(replace(lab.plan(), origin=None))
    assert bundle(lab).runs == ()
    assert bundle(lab, comments=lab.signed("")).runs == ()


def test_the_newest_run_counts_and_an_older_one_fills_what_it_lacks(lab: Lab) -> None:
    older = lab.swept(lab.plan(), failing)
    plan = lab.plan()
    [first, *_] = plan.jobs
    newest = lab.swept(replace(plan, jobs=(first,), points=first.points))
    made = bundle(lab)
    by = {record.point.name: record.attempt.run_id for record in made.records}
    assert by == {"mini-c1": newest, "mini-c2": older, "mini-eval-gsm_mini": older}
    assert {run.run_id: run.conclusion for run in made.runs} == {
        newest: "success",
        older: "failure",
    }


def test_the_run_that_a_comment_reuses_goes_first(lab: Lab) -> None:
    older = lab.swept(lab.plan())
    newest = lab.swept(lab.plan(), failing)
    assert {r.attempt.run_id for r in bundle(lab).records} == {newest}
    for named in (older, ""):
        made = bundle(lab, comments=lab.signed(named))
        assert {r.attempt.run_id for r in made.records} == {older}
    made = bundle(lab, comments=lab.signed("no-such-run"))
    assert {r.attempt.run_id for r in made.records} == {newest}


def failing(record: PointRecord) -> PointRecord:
    return replace(record, status=Status("failed", "engine-died", "it died"))


def test_a_run_that_a_person_made_needs_its_commit(lab: Lab) -> None:
    plan = replace(lab.plan(), origin=None)
    run = lab.swept(plan)
    [told] = bundle(lab, run).runs
    assert (told.head_sha, told.reused) == (lab.head, False)

    def dirty(record: PointRecord) -> PointRecord:
        return replace(record, provenance=replace(record.provenance, git_dirty=True))

    def unknown(record: PointRecord) -> PointRecord:
        return replace(record, provenance=replace(record.provenance, git_revision=""))

    for change in (dirty, unknown):
        assert refused(lab, lab.swept(plan, change))[0] == "run-unplaced"


# What is refused


def test_a_malformed_event_exits_with_2_and_writes_nothing(lab: Lab) -> None:
    lab.event.write_text("{}")
    done = here("bundle", "--event", lab.event, "-o", "out.zip", "--json")
    assert (done.returncode, as_json(done)["diagnostics"][0]["code"]) == (2, "bad-event")
    assert not Path("out.zip").exists()
    lab.event.unlink()
    assert refused(lab)[0] == "bad-option"


def test_an_event_of_another_commit(lab: Lab) -> None:
    commit(lab.folder, {"more.txt": "x"})
    lab.tell()
    assert "does not contain" in refused(lab, head="new-point~1")[1]


def test_revisions_that_are_not_there(lab: Lab) -> None:
    assert "git knows no commit v9" in refused(lab, base="v9")[1]
    assert "adds no commit" in refused(lab, base="new-point")[1]


def test_a_run_of_another_repository(lab: Lab) -> None:
    run = lab.swept(lab.plan(repository="example/other"))
    code, sentence = refused(lab, run)
    assert code == "foreign-run"
    assert "example/other" in sentence


def test_a_run_that_is_not_there(lab: Lab) -> None:
    lab.swept(lab.plan())
    assert refused(lab, "no-such-run")[0] == "unknown-run"
    assert refused(lab, results=Path("nowhere"))[0] == "unknown-run"


def test_a_run_that_has_not_ended(lab: Lab) -> None:
    lab.swept(lab.plan(), lambda record: None if record.point.conc == 2 else record)
    code, sentence = refused(lab)
    assert code == "run-unfinished"
    assert "mini-c2" in sentence


def test_a_run_that_is_reused_and_was_not_fetched(lab: Lab) -> None:
    plan = lab.plan()
    lost = tuple(Reused(point=point, run_id="run-7") for point in plan.points[:1])
    lab.swept(replace(plan, reused=lost))
    assert refused(lab)[0] == "reused-lost"


def test_evidence_that_is_missing_or_lies_elsewhere(lab: Lab) -> None:
    run = lab.swept(lab.plan())
    shutil.rmtree(lab.folder / "results/runs" / run / "jobs/mini-c2")
    code, sentence = refused(lab)
    assert code == "bad-bundle"
    assert "jobs/mini-c2/server.log" in sentence
    for outside in ("../../../event.json", "../../.."):
        lab.swept(lab.plan(), partial(replace, artifacts={"server-log": outside}))
        assert refused(lab)[0] == "bad-bundle"


def test_evidence_that_a_light_push_left_behind(lab: Lab) -> None:
    run = lab.swept(lab.plan())
    [log] = (lab.folder / "results/runs" / run / "jobs").glob("mini-c2/server.log")
    [record] = [one for one in bundle(lab).records if one.point.conc == 2]
    log.unlink()
    told = log.parent / "a1/points" / record.point.label / "judged.json"
    told.parent.mkdir(parents=True)
    told.write_bytes(encode(Judged(record=record, left=(record.artifacts["server-log"],))))
    made = bundle(lab)
    assert f"{run}/jobs/mini-c2/server.log.left-out" in made.artifacts
    assert made.manifest.note.endswith("too large or not here (1)")


def test_a_run_without_its_folder(lab: Lab) -> None:
    run = lab.swept(lab.plan())
    shutil.rmtree(lab.folder / "results/runs" / run)
    assert refused(lab, run)[0] == "not-a-run"


def test_a_faulty_changelog_or_matrix(lab: Lab) -> None:
    commit(lab.folder, {"perf-changelog.yaml": ENTRY.replace("/pull/", "/pulls/")})
    lab.tell()
    assert refused(lab)[0] == "link-form"
    commit(lab.folder, {"perf-changelog.yaml": ENTRY, "configs/mini.yaml": MATRIX + "x"})
    lab.tell()
    assert refused(lab)


@pytest.mark.slow
def test_a_real_sweep_of_a_pull_request_is_reviewed(tmp_path: Path) -> None:
    """Labels, plan, sweep, bundle, review: each as the workflow runs it."""
    lab = lab_in(tmp_path / "lab")

    def run(*words: object, code: int = 0) -> Any:
        # A path of one's own for Python would be a patch of the engine.
        done = infx(*words, "--json", cwd=lab.folder, limit_s=600, PYTHONPATH="")
        assert done.returncode == code, done.stdout + done.stderr
        return as_json(done)["data"]

    run("ci", "plan", "--event", lab.event, "--base", "main", "--head", lab.head, "-o", "p.json")
    run("sweep", "p.json")
    [run_id] = (path.name for path in (lab.folder / "results/runs").iterdir())
    words = ("bundle", "--event", lab.event, "--comments", lab.signed(run_id), "-o")
    data = run(*words, "first.tar.gz")
    assert (data["runs"], data["records"], data["left_out"]) == ([run_id], 3, [])
    body = infx("review", "first.tar.gz", "--body", cwd=lab.folder).stdout
    lab.tell(body=body)
    run(*words, "bundle.tar.gz")
    found = run("review", "bundle.tar.gz")
    verdicts = {check["number"]: check["verdict"] for check in found["checks"]}
    told = {number: verdict for number, verdict in verdicts.items() if verdict != "PASS"}
    assert told == {2: "WARN", 3: "N/A", 12: "N/A", 14: "WARN"}, found["checks"]
    with open_store(lab.folder / "results") as store:
        store.replace([faster(record) for record in store.records(run_id)])
    done = infx(*words, "faster.tar.gz", "--json", cwd=lab.folder)
    assert done.returncode == 2
    assert "tok/s/GPU, its export gives" in as_json(done)["diagnostics"][0]["sentence"]


def faster(record: PointRecord) -> PointRecord:
    made = record.measurement
    told = made and replace(made, tput_tok_s_gpu=2 * made.tput_tok_s_gpu)
    return replace(record, measurement=told)
