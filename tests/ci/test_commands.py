"""infx ci plan and infx diff in a repository of git, with recorded event files."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from infx.config.project import Project
from infx.domain.plan import Origin, Plan
from infx.forge.planned import plan_of_all
from infx.launch.runs import open_store
from infx.plan.saved import check_inputs, read_plan, write_plan
from tests.ci.cases import EVENTS
from tests.cli.commands import as_json, here
from tests.store.tiny_plans import record, run_row

MATRIX = """\
mini:
  model-prefix: minimaxm3
  precision: mxfp4
  framework: infx
  image: pypi:infx
  recipe: minimaxm3-mini-cpu-infx
  cluster: local
  scenarios:
    - workload: {isl: 64, osl: 32, requests: 4*conc}
      axes: {conc: [1, 2], max-num-seqs: 2*conc}
"""
ENTRY = """\
- config-keys:
    - mini
  description:
    - "A point more."
  pr-link: https://github.com/example/lab/pull/17
"""
HISTORY = ENTRY.replace("/17", "/3").replace("A point more", "The first ones")


MERGED = EVENTS / "merged.json"


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, **files: str) -> str:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two commits: the second adds conc 4 and its changelog entry."""
    folder = tmp_path / "lab"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "perf-changelog.yaml").write_text(HISTORY)
    commit(folder, configs__mini_yaml=MATRIX)
    (folder / "perf-changelog.yaml").write_text(f"{HISTORY}\n{ENTRY}")
    commit(folder, configs__mini_yaml=MATRIX.replace("[1, 2]", "[1, 2, 4]"))
    monkeypatch.chdir(folder)
    return folder


PLAN = ("ci", "plan", "--base", "HEAD~1", "--head", "HEAD", "--event")


def test_labels_and_an_entry_make_a_plan_that_sweep_takes(repository: Path) -> None:
    done = here(*PLAN, EVENTS / "labeled.json", "-o", "plan.json", "--json")
    assert done.returncode == 0, done.stdout
    data = as_json(done)["data"]
    assert (data["decision"], data["pull_request"]) == ("sweep", 17)
    [canary] = data["canaries"]
    assert canary["label"].startswith("mini-c1-")
    assert data["jobs"][0]["job_id"] == canary["job_id"]
    saved: Plan = read_plan(Path("plan.json"))
    check_inputs(saved, repository)
    assert [job.job_id for job in saved.jobs] == [job["job_id"] for job in data["jobs"]]
    assert sorted(point.conc for point in saved.points) == [1, 2, 4]


def test_people_read_a_table_and_a_sentence(repository: Path) -> None:
    done = here(*PLAN, EVENTS / "labeled.json")
    assert done.returncode == 0
    assert "canary" in done.stdout
    assert "sweep: full-sweep-fail-fast: 3 points in 3 jobs" in done.stdout


def test_what_is_planned_is_the_revision_not_the_files(repository: Path) -> None:
    (repository / "configs" / "mini.yaml").write_text("broken: [")
    assert here(*PLAN, EVENTS / "labeled.json").returncode == 0


def test_a_change_without_an_entry_warns(repository: Path) -> None:
    commit(repository, configs__mini_yaml=MATRIX.replace("osl: 32", "osl: 16"))
    done = here(*PLAN, EVENTS / "labeled.json", "--json")
    found = as_json(done)
    assert (done.returncode, found["data"]["decision"]) == (0, "nothing")
    assert [f["code"] for f in found["diagnostics"]] == ["change-unannounced"]


@pytest.mark.parametrize(
    ("name", "code"),
    [("push", "bad-event"), ("synchronize-two-primaries", "two-primaries")],
)
def test_a_bad_event_or_bad_labels_exit_with_2(repository: Path, name: str, code: str) -> None:
    done = here(*PLAN, EVENTS / f"{name}.json", "--json")
    assert done.returncode == 2
    assert [f["code"] for f in as_json(done)["diagnostics"]] == [code]


def test_a_missing_event_or_revision_exits_with_2(repository: Path) -> None:
    missing = here(*PLAN, "nowhere.json")
    assert missing.returncode == 2
    assert "nowhere.json cannot be read" in missing.stderr
    done = here("ci", "plan", "--base", "v99", "--head", "HEAD", "--event", EVENTS / "labeled.json")
    assert done.returncode == 2
    assert "git knows no commit v99" in done.stderr
    assert here("diff", "--base=--output=x").returncode == 2
    assert not (repository / "x").exists()


def test_outside_of_a_repository_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = here(*PLAN, EVENTS / "labeled.json")
    assert done.returncode == 2
    assert f"{tmp_path} is in no repository of git" in done.stderr


def test_where_nothing_is_planned_no_plan_is_written_and_that_is_said(repository: Path) -> None:
    Path("plan.json").write_text("of yesterday")
    done = here(*PLAN, EVENTS / "unlabeled.json", "-o", "plan.json")
    assert done.returncode == 0
    assert "no plan is written to plan.json" in done.stderr
    assert Path("plan.json").read_text() == "of yesterday"


def test_a_faulty_changelog_exits_with_2(repository: Path) -> None:
    commit(repository, **{"perf-changelog_yaml": HISTORY.replace("first", "second")})
    done = here(*PLAN, EVENTS / "labeled.json")
    assert done.returncode == 2
    assert "history-changed" in done.stderr


def test_a_base_that_cannot_be_planned_is_a_warning(repository: Path) -> None:
    bad = commit(repository, configs__mini_yaml=MATRIX.replace("isl: 64", "isl: x y"))
    (repository / "perf-changelog.yaml").write_text(f"{HISTORY}\n{ENTRY}\n{ENTRY}")
    commit(repository, configs__mini_yaml=MATRIX)
    words = ("ci", "plan", "--base", bad, "--head", "HEAD", "--event", EVENTS / "labeled.json")
    found = as_json(here(*words, "--json"))
    assert found["data"]["decision"] == "sweep"
    assert [f["code"] for f in found["diagnostics"]] == ["base-unreadable"]


def test_diff_says_what_appears_and_why_points_change(repository: Path) -> None:
    done = here("diff", "--base", "HEAD~1")
    assert done.returncode == 0
    assert "appears" in done.stdout
    assert "1 appear, 0 vanish, 0 change, 2 are the same since HEAD~1" in done.stdout
    (repository / "configs" / "mini.yaml").write_text(MATRIX.replace("2*conc", "3*conc"))
    data = as_json(here("diff", "--base", "HEAD~1", "--json"))["data"]
    fields = [field for pair in data["changed"] for field in pair["fields"]]
    assert fields[0] == {"name": "axes.max-num-seqs", "before": "2", "after": "3"}
    back = as_json(here("diff", "--base", "HEAD", "--head", "HEAD~1", "--json"))["data"]
    assert [point["why"] for point in back["vanished"]] == ["gone: conc 4"]


def test_diff_of_many_points_is_short_unless_each_is_asked_for(repository: Path) -> None:
    concs = ", ".join(str(conc) for conc in range(1, 41))
    (repository / "configs" / "mini.yaml").write_text(MATRIX.replace("1, 2", concs))
    done = here("diff", "--base", "HEAD")
    rows = done.stdout.splitlines()
    assert len(rows) == 3
    assert rows[1].endswith(" and 36 more  new: conc 3, 5, 6, 7 and 33 more")
    assert len(here("diff", "--base", "HEAD", "--points").stdout.splitlines()) == 39


def test_diff_of_nothing_says_so(repository: Path) -> None:
    assert here("diff", "--base", "HEAD").stdout == "nothing changes, 3 are the same since HEAD\n"
    data = as_json(here("diff", "--base", "HEAD", "--json"))["data"]
    assert data == {"appeared": [], "vanished": [], "changed": [], "same": 3}


def test_diff_with_a_base_that_cannot_be_planned_warns(repository: Path) -> None:
    commit(repository, configs__mini_yaml=MATRIX.replace("isl: 64", "isl: x y"))
    (repository / "configs" / "mini.yaml").write_text(MATRIX)
    done = here("diff", "--base", "HEAD", "--json")
    found = as_json(done)
    assert (done.returncode, len(found["data"]["appeared"])) == (0, 2)
    assert [f["code"] for f in found["diagnostics"]] == ["base-unreadable"]


def test_a_project_below_the_root_of_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    git(tmp_path, "init", "-q")
    commit(tmp_path, below__configs__mini_yaml=MATRIX)
    monkeypatch.chdir(tmp_path / "below")
    (tmp_path / "below" / "elsewhere").symlink_to("/nonexistent")
    commit(tmp_path)
    assert "2 are the same since HEAD" in here("diff", "--base", "HEAD").stdout


def measured(folder: Path, matrix: str, run_id: str) -> str:
    """Put a run of ``matrix`` into the project's store, every point ok; return its name."""
    (folder / "configs" / "mini.yaml").write_text(matrix)
    plan = plan_of_all(Project.find(folder))
    git(folder, "checkout", "-q", "configs")
    with open_store(folder / "results") as store:
        store.create_run(run_row(folder / "results", run_id), plan)
        for job in plan.jobs:
            for point in job.points:
                store.save(record(point, run_id, job.job_id))
    return run_id


REUSE = (*PLAN, EVENTS / "labeled.json", "--reuse-from", "results", "--json")


def test_points_of_the_store_are_reused_by_their_identity(repository: Path) -> None:
    measured(repository, MATRIX, "37598205362")
    data = as_json(here(*REUSE))["data"]
    assert data["counts"] == {"run": 1, "reused": 2}
    assert [point[:7] for job in data["jobs"] for point in job["points"]] == ["mini-c4"]


def test_a_run_that_a_comment_names_stands_for_all_or_is_refused(repository: Path) -> None:
    whole = MATRIX.replace("[1, 2]", "[1, 2, 4]")
    measured(repository, whole.replace("osl: 32", "osl: 16"), "37598205362")
    comments = ("--comments", EVENTS / "comments.json")
    done = here(*REUSE, *comments)
    found = as_json(done)
    assert (done.returncode, found["data"]["decision"]) == (1, "reuse")
    assert {f["code"] for f in found["diagnostics"]} == {"reuse-refused"}
    assert all("workload.osl 16 → 32" in f["sentence"] for f in found["diagnostics"])
    text = (EVENTS / "comments.json").read_text().replace("37598205362", "other-run")
    (repository / "comments.json").write_text(text)
    measured(repository, whole, "other-run")
    done = here(*REUSE, "--comments", "comments.json")
    assert (done.returncode, as_json(done)["data"]["runs"]) == (0, ["other-run"])
    (repository / "comments.json").write_text(text.replace("other-run", ""))
    assert as_json(here(*REUSE, "--comments", "comments.json"))["data"]["runs"] == ["other-run"]
    (repository / "comments.json").write_text(text.replace("other-run", "no-such-run"))
    assert here(*REUSE, "--comments", "comments.json").returncode == 2


def outputs(path: Path) -> dict[str, str]:
    """A file of outputs as GitHub's runner reads it."""
    found: dict[str, str] = {}
    lines = iter(path.read_text().split("\n"))
    for line in lines:
        if not line:
            continue
        name, sign, value = line.partition("=")
        if not sign or "<<" in name:
            name, _, mark = line.partition("<<")
            value = "\n".join(iter(lambda: next(lines), mark))
        found[name] = value
    return found


def test_later_steps_read_what_was_decided(repository: Path) -> None:
    Path("out.txt").write_text("earlier=kept\n")
    assert here(*PLAN, EVENTS / "labeled.json", "--outputs", "out.txt").returncode == 0
    found = outputs(Path("out.txt"))
    assert found.pop("head_sha") == git(repository, "rev-parse", "HEAD")  # git has no 4b94f096
    assert found == {
        "earlier": "kept",
        "decision": "sweep",
        "reason": "full-sweep-fail-fast: 3 points in 3 jobs",
        "pull_request": "17",
        "canary": "true",
        "fail_fast": "true",
        "run": "",
        "runs": "",
        "entries": "mini",
        "jobs": "3",
        "points": "3",
        "submission_valid": "true",
        "reusable": "true",
    }
    assert here(*PLAN, EVENTS / "labeled.json", "--outputs", "no/where").returncode == 2


def test_a_merge_publishes_what_the_store_holds_or_says_what_lacks(repository: Path) -> None:
    words = (*PLAN, MERGED, "--reuse-from", "results", "--outputs", "out.txt")
    measured(repository, MATRIX, "part")
    done = here(*words)
    assert done.returncode == 1
    assert (
        "publish: pull request 17 is merged: no run has measured 1 of its 3 points" in done.stdout
    )
    assert "not-measured mini has no valid measurement of mini-c4-" in done.stderr
    assert outputs(Path("out.txt"))["runs"] == ""
    measured(repository, MATRIX.replace("[1, 2]", "[1, 2, 4]"), "whole")
    done = here(*words)
    assert done.returncode == 0
    found = outputs(Path("out.txt"))
    assert (found["decision"], found["run"], found["runs"]) == ("publish", "whole", "whole")


def test_a_merge_by_a_squash_is_what_it_changed_of_its_first_parent(repository: Path) -> None:
    measured(repository, MATRIX.replace("[1, 2]", "[1, 2, 4]"), "whole")
    words = ("ci", "plan", "--base", "HEAD^1", "--head", "HEAD", "--reuse-from", "results")
    assert as_json(here(*words, "--event", MERGED, "--json"))["data"]["runs"] == ["whole"]


def test_an_event_of_a_comment_reuses_the_run_that_it_names(repository: Path) -> None:
    measured(repository, MATRIX.replace("[1, 2]", "[1, 2, 4]"), "37598205362")
    done = here(*PLAN, EVENTS / "commented.json", "--reuse-from", "results", "--json")
    data = as_json(done)["data"]
    assert (data["decision"], data["runs"]) == ("reuse", ["37598205362"])
    assert data["head_sha"] == git(repository, "rev-parse", "HEAD")


def test_where_an_event_settles_it_no_revision_is_needed(repository: Path) -> None:
    """A branch is often gone once its pull request is closed."""
    words = ("ci", "plan", "--base", "gone", "--head", "gone-too", "--event")
    done = here(*words, EVENTS / "closed.json")
    assert (done.returncode, done.stdout) == (0, "nothing: pull request 17 is closed\n")


def test_what_the_base_got_since_is_no_change_of_the_head(repository: Path) -> None:
    """Somebody else's entry and matrix were merged meanwhile."""
    git(repository, "checkout", "-q", "-b", "elsewhere", "HEAD~1")
    theirs = ENTRY.replace("/17", "/16").replace("mini", "other")
    (repository / "perf-changelog.yaml").write_text(f"{HISTORY}\n{theirs}")
    other = MATRIX.replace("mini:", "other:").replace("isl: 64", "isl: 32")
    commit(repository, configs__other_yaml=other)
    git(repository, "checkout", "-q", "-")
    words = ("ci", "plan", "--base", "elsewhere", "--head", "HEAD", "--json", "--event")
    found = as_json(here(*words, EVENTS / "labeled.json"))
    assert (found["data"]["entries"], found["diagnostics"]) == (["mini"], [])
    git(repository, "checkout", "-q", "--orphan", "unrelated")
    commit(repository)
    done = here("ci", "plan", "--base", "elsewhere", "--head", "HEAD", "--event", MERGED)
    assert done.returncode == 2
    assert "have no commit in common" in done.stderr


def test_a_head_without_the_commit_of_the_event_is_refused(repository: Path) -> None:
    """What it measured would carry the name of that commit."""
    sha = git(repository, "rev-parse", "HEAD")
    text = (EVENTS / "labeled.json").read_text()
    (repository / "event.json").write_text(
        text.replace("4b94f0960000000000000000000000000000beef", sha)
    )
    assert here(*PLAN, "event.json").returncode == 0
    done = here("ci", "plan", "--base", "HEAD~1", "--head", "HEAD~1", "--event", "event.json")
    assert done.returncode == 2
    assert f"does not contain {sha}" in done.stderr


def test_a_first_run_finds_no_store_to_reuse(repository: Path) -> None:
    done = here(*REUSE)
    assert (done.returncode, as_json(done)["data"]["decision"]) == (0, "sweep")
    assert "no runs in results: nothing is reused" in done.stderr


def test_a_run_of_another_repository_is_not_reused(repository: Path) -> None:
    run = measured(repository, MATRIX, "theirs")
    assert as_json(here(*REUSE))["data"]["counts"] == {"run": 1, "reused": 2}
    plan = plan_of_all(Project.find(repository))
    folder = repository / "results" / "runs" / run
    folder.mkdir(parents=True)
    origin = Origin(repository="another/lab", pull_request=17, head_sha="4b94f096")
    write_plan(replace(plan, origin=origin), folder / "plan.json")
    assert as_json(here(*REUSE))["data"]["counts"] == {"run": 3}
