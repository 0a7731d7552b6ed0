"""The workflows' form: actionlint passes, rights are few, nothing of others becomes a script."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflows.runner import ROOT, WORKFLOWS, read

FILES = sorted(WORKFLOWS.glob("*.yml"))
ACTIONS = sorted((ROOT / ".github/actions").glob("*/action.yml"))
EVERY = [pytest.param(path, id=path.parent.name + "/" + path.name) for path in (*FILES, *ACTIONS)]


def program(name: str) -> str:
    """A program of the development environment; a test needs it, and in CI it has to be there."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None and os.environ.get("CI") != "true":
        pytest.skip(f"{name} is not installed: pip install -e '.[dev]'")
    assert found, f"{name} is missing"
    return found


def jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from read(path)["jobs"].items()


def steps(path: Path) -> list[dict[str, Any]]:
    if path.name == "action.yml":
        found: list[dict[str, Any]] = read(path)["runs"]["steps"]
        return found
    return [step for _, job in jobs(path) for step in job.get("steps", [])]


def lint(*words: str) -> subprocess.CompletedProcess[str]:
    given = ["-no-color", "-shellcheck", program("shellcheck"), "-pyflakes", "", *words]
    return subprocess.run(
        [program("actionlint"), *given], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_actionlint_and_shellcheck_find_nothing() -> None:
    done = lint(*map(str, FILES))
    assert (done.returncode, done.stdout) == (0, "")


def test_actionlint_and_shellcheck_would_find_something(tmp_path: Path) -> None:
    text = (WORKFLOWS / "sweep.yml").read_text()
    for wrong in (
        text.replace("needs.plan.outputs.decision ==", "needs.plan.outputs.desicion =="),
        text.replace("timeout-minutes: 20", "timeout-minuets: 20", 1),
        text.replace('"${runs[@]}" --live', "$RUNS --live"),
    ):
        assert wrong != text
        (tmp_path / "wrong.yml").write_text(wrong)
        assert lint(str(tmp_path / "wrong.yml")).returncode == 1


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.parent.name)
def test_actions_are_linted_as_a_workflow_of_their_steps(path: Path, tmp_path: Path) -> None:
    whole = read(path)
    given = {name: {"type": "string"} for name in whole["inputs"]}
    outputs = {name: one["value"] for name, one in whole.get("outputs", {}).items()}
    job = {"runs-on": "ubuntu-24.04", "steps": whole["runs"]["steps"]}
    job |= {"outputs": outputs} if outputs else {}
    made = {"on": {"workflow_call": {"inputs": given}}, "jobs": {"job": job}}
    (tmp_path / "action.yml").write_text(yaml.safe_dump(made, sort_keys=False))
    done = lint(str(tmp_path / "action.yml"))
    assert (done.returncode, done.stdout) == (0, "")


def test_there_are_the_workflows_that_the_pages_name() -> None:
    page = (ROOT / "docs/ci.md").read_text()
    assert {path.name for path in FILES} == set(re.findall(r"`(\w+\.yml)`", page))


@pytest.mark.parametrize("path", EVERY)
def test_no_script_holds_an_expression(path: Path) -> None:
    """A title or a label reaches bash as a variable; in a script it would be one."""
    assert not [step for step in steps(path) if "${{" in step.get("run", "")]


@pytest.mark.parametrize("path", EVERY)
def test_actions_of_others_are_pinned_by_their_commit(path: Path) -> None:
    text = path.read_text()
    uses = re.findall(r"(?<!\w)uses: (\S+)(.*)", text)
    others = [(name, note) for name, note in uses if not name.startswith("./")]
    for name, note in others:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name), name
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", note), f"{name}{note}"


def test_one_action_is_one_version() -> None:
    found = re.findall(r"uses: (actions/[\w-]+)@(\w+)", "".join(p.read_text() for p in ALL))
    assert len({name for name, _ in found}) == len(set(found))


ALL = [*FILES, *ACTIONS]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_rights_are_named_for_each_job_and_reading_is_the_most_by_default(path: Path) -> None:
    whole = read(path)
    assert whole["permissions"] in ("{}", {}, {"contents": "read"})
    for name, job in jobs(path):
        given = job.get("permissions", whole["permissions"])
        assert isinstance(given, dict), name
        assert set(given) <= {"actions", "contents", "pull-requests", "statuses"}
        assert whole["permissions"] == {"contents": "read"} or "permissions" in job, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_job_ends_by_itself_and_runs_in_one_kind_of_shell(path: Path) -> None:
    assert read(path)["defaults"]["run"]["shell"] == "bash"
    for name, job in jobs(path):
        assert "uses" in job or int(job["timeout-minutes"]) < 360, name


def test_no_workflow_runs_what_a_fork_wrote_with_rights_or_secrets() -> None:
    triggers = {path.name: set(read(path)["on"]) for path in FILES}
    assert not {"pull_request_target", "workflow_run"} & {t for on in triggers.values() for t in on}
    own = "github.event.pull_request.head.repo.full_name == github.repository"
    plan = read(WORKFLOWS / "sweep.yml")["jobs"]
    assert plan["plan"]["if"] == own
    assert all(job["needs"] == "plan" for name, job in plan.items() if name != "plan")
    assert "secrets" not in (WORKFLOWS / "checks.yml").read_text()
    checkouts = [s for s in steps(WORKFLOWS / "comments.yml") if "checkout" in s.get("uses", "")]
    assert all("ref" not in step["with"] for step in checkouts)  # the default branch's


@pytest.mark.parametrize("name", ["measure.yml", "verdict.yml"])
def test_what_was_measured_is_kept_whatever_is_judged(name: str) -> None:
    [job] = [job for _, job in jobs(WORKFLOWS / name) if "steps" in job]
    uploads = [s for s in job["steps"] if "upload-artifact" in s.get("uses", "")]
    assert all(step["if"].startswith("always()") for step in uploads)
    names = [step.get("name") for step in job["steps"]]
    if name == "verdict.yml":
        assert names.index("Keep report and bundle") < names.index("Review")
        assert names[-1] == "Verdict"


def test_a_pull_request_is_planned_and_measured_by_one_at_a_time() -> None:
    groups = {
        (path.name, name): job["concurrency"]["group"]
        for path in FILES
        for name, job in jobs(path)
        if "concurrency" in job
    }
    groups["measure.yml", ""] = read(WORKFLOWS / "measure.yml")["concurrency"]["group"]
    number = "${{ github.event.pull_request.number }}"
    assert groups["sweep.yml", "plan"] == f"plan-{number}"
    assert groups["sweep.yml", "stop"] == f"measure-{number}"
    assert groups["measure.yml", ""] == "measure-${{ inputs.number }}"
    assert "concurrency" not in read(WORKFLOWS / "sweep.yml")  # any label would end a sweep
    starts = [group for (name, _), group in groups.items() if name == "comments.yml"]
    assert starts == ["comments-${{ github.event.issue.number }}"]  # a comment would end a plan
