"""The workflows' own steps, in their order, in a repository of git and with GitHub on loopback.

Jobs are the stand-in's: they measure nothing, in no time; all else is what runs on a runner.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infx.ci.comment import hidden_mark
from infx.store import holder
from tests.ci.cases import EVENTS
from tests.cli.pull_requests import BASE, CHANGED, ENTRY, commit, git
from tests.cli.pull_requests import Lab as Work
from tests.workflows.github_server import BOT, TOKEN, Repository, served
from tests.workflows.runner import ROOT, Runner, workflow

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

NUMBER = "17"


@dataclass
class Lab:
    """A repository on GitHub with pull request 17, and somebody who works on it."""

    github: Repository
    tmp: Path
    environ: dict[str, str]
    gate: Path

    @property
    def origin(self) -> Path:
        return self.tmp / "origin.git"

    @property
    def work(self) -> Path:
        return self.tmp / "work"

    def pushed(self, **files: str) -> str:
        """Commit on the branch, push it; return the commit."""
        named = {name.replace("__", "/").replace("_yaml", ".yaml"): t for name, t in files.items()}
        sha = commit(self.work, named)
        git(self.work, "push", "-q", "-f", "origin", "HEAD:new-point", "HEAD:refs/pull/17/head")
        return sha

    def event(self, action: str, *labels: str, **more: Any) -> dict[str, Any]:
        """Tell GitHub how the pull request is now; return the event of the change."""
        told = json.loads((EVENTS / "labeled.json").read_bytes())
        request = told["pull_request"] | {"body": "One more.", **more}
        request["head"]["sha"] = git(self.work, "rev-parse", "new-point")
        request["base"]["sha"] = git(self.work, "rev-parse", "main")
        request["labels"] = [{"name": name} for name in labels]
        self.github.pulls[17] = request
        return {**told, "action": action, "pull_request": request}

    def runner(self, event: dict[str, Any], **more: Any) -> Runner:
        folder = self.tmp / f"runner-{len(list(self.tmp.glob('runner-*')))}"
        folder.mkdir()
        return Runner(self.origin, folder, self.environ, event, **more)

    def comment(self, mark: str) -> str:
        [found] = [c for c in self.github.comments if f"infx ci comment: {mark} -->" in c["body"]]
        return str(found["body"])

    def taken_away(self) -> None:
        """End what drives runs, and lose their files, as with a runner that is taken away."""
        for folder in list(self.tmp.glob("runner-*/*/results/runs/*")):
            if words := holder(folder).split():
                os.kill(int(words[1]), signal.SIGKILL)
            folder.rename(folder.parents[1] / f"lost-{time.monotonic_ns()}")

    def states(self) -> list[str]:
        return [body["state"] for _, body in self.github.statuses]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q")
    commit(work, BASE)
    git(tmp_path, "clone", "-q", "--bare", "work", "origin.git")
    git(work, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(work, "checkout", "-q", "-b", "new-point")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "infx"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.cli.stand_in_infx "$@"\n')
    program.chmod(0o755)
    with served(Repository()) as github:
        lab = Lab(github, tmp_path, environment(tmp_path, github.url), tmp_path / "gate")
        lab.pushed(configs__mini_yaml=CHANGED, **{"perf-changelog_yaml": ENTRY})
        yield lab
        lab.taken_away()


def environment(tmp: Path, url: str) -> dict[str, str]:
    return {
        "PATH": f"{tmp / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp),
        "CI": "true",
        "STAND_IN_PNG": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": url,
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "example/lab",
        "GITHUB_RUN_ID": "7",
    }


def failed(runner: Runner) -> list[str]:
    """The steps that ended with an error, and what they printed."""
    return [f"{done.name}: {done.text[-2000:]}" for done in runner.done if done.code]


def ran(runner: Runner) -> list[str]:
    return list(dict.fromkeys(done.job for done in runner.done))


def test_from_a_label_to_the_live_curves(lab: Lab) -> None:
    lab.environ["STAND_IN_GATE"] = str(lab.gate)
    begun = lab.runner(lab.event("labeled", "full-sweep-fail-fast"), vars={"INFX_WAIT": "2s"})
    assert begun.start("sweep.yml"), failed(begun)
    assert ran(begun) == ["sweep.yml:plan:./.github/actions/plan", "measure.yml:run"]
    assert "sweep: full-sweep-fail-fast: 3 points in 3 jobs" in lab.comment("plan")
    assert lab.states() == ["pending"]
    [(name, asked)] = lab.github.dispatched
    run = asked["inputs"]["run"]
    head = lab.github.pulls[17]["head"]["sha"]
    assert (name, asked["ref"], asked["inputs"]["number"], asked["inputs"]["head"]) == (
        *("measure.yml", "main", NUMBER),
        head,
    )

    # The runner is taken away with all its processes. Another label that asks for the same comes,
    # and the run goes on; so does another runner, which sees its end.
    lab.taken_away()
    other = lab.runner(lab.event("labeled", "full-sweep-fail-fast", "bug"), vars=begun.vars)
    assert other.start("sweep.yml"), failed(other)
    assert lab.github.dispatched.pop()[1]["inputs"]["run"] == run
    lab.taken_away()
    lab.gate.touch()
    started = {"repository": {"default_branch": "main"}, "inputs": asked["inputs"]}
    again = lab.runner(started, event_name="workflow_dispatch")
    again.start("measure.yml", asked["inputs"])
    assert [line.split(":")[0] for line in failed(again)] == ["Verdict"]  # nothing was measured
    assert again.uploads == [f"run-{run}", "report", "review"]
    assert {path.name for path in again.artifacts["report"].iterdir()} == {
        *("report.html", "report.png", "report.md"),
        "bundle.tar.gz",
    }
    assert [(b["context"], b["state"]) for _, b in lab.github.statuses[-2:]] == [
        ("infx sweep", "success"),
        ("infx review", "failure"),
    ]
    told = lab.comment("sweep")
    assert "1 passing sweep on a commit of the pull request | PASS" in told
    assert f"| {run} |" in told
    picture = told.partition("https://github.com/example/lab/raw/")[2].partition("/")[0]
    shown = git(lab.origin, "cat-file", "-t", f"{picture}:report.png")
    assert shown == "blob"

    # A reviewer's comment: planned again by the default branch, and judged again.
    reviewer = {"login": "reviewer", "type": "User"}
    lab.github.said(f"/reuse-sweep-run {run}", reviewer, "COLLABORATOR")
    comment = json.loads((EVENTS / "commented.json").read_bytes())
    comment["comment"] = lab.github.comments[-1]
    comment["issue"]["pull_request"] = {"html_url": "https://github.com/example/lab/pull/17"}
    comment["repository"]["default_branch"] = "main"
    said = lab.runner(comment, event_name="issue_comment")
    assert said.start("comments.yml"), failed(said)
    assert [name for name, _ in lab.github.dispatched[1:]] == ["verdict.yml"]
    assert lab.github.dispatched[1][1]["inputs"]["runs"] == run

    # It is merged: what it measured is published.
    git(lab.work, "checkout", "-q", "main")
    before = git(lab.work, "rev-parse", "main")
    git(lab.work, "merge", "-q", "--no-ff", "-m", "merge", "new-point")
    git(lab.work, "push", "-q", "origin", "main")
    merged = lab.event("closed", "full-sweep-fail-fast", state="closed", merged=True)
    merged["pull_request"]["base"]["sha"] = before
    merged["pull_request"]["merge_commit_sha"] = git(lab.work, "rev-parse", "main")
    last = lab.runner(merged)
    assert last.start("sweep.yml"), failed(last)
    assert "sweep.yml:publish" in ran(last)
    assert f"Published on the live curves: run {run}" in lab.comment("publish")
    live = json.loads(git(lab.origin, "show", "infx-results:live.json"))
    assert "mini" in json.dumps(live)


def test_a_run_stops_that_no_label_asks_for_any_more(lab: Lab) -> None:
    there = Work(lab.work)
    run = there.swept(there.plan(), lambda one: None if one.point.conc == 2 else one)
    words = ("store", "push", "git:origin/infx-results", run, "--light")
    subprocess.run(["infx", *words], cwd=lab.work, env=lab.environ, check=True)
    lab.github.said(f"{hidden_mark('plan')}\n\n### Plan: sweep", BOT)
    stopped = lab.runner(lab.event("unlabeled", "bug"))
    assert stopped.start("sweep.yml"), failed(stopped)
    assert ran(stopped)[-1] == "sweep.yml:stop"
    assert "no label asks for a sweep" in lab.comment("plan")
    [told] = [done.text for done in stopped.done if done.name == "Stop"]
    assert f"run {run}: " in told


def test_labels_that_cannot_be_are_told_in_the_pull_request(lab: Lab) -> None:
    runner = lab.runner(lab.event("labeled", "full-sweep-enabled", "full-sweep-fail-fast"))
    assert not runner.start("sweep.yml")
    assert "### FAIL: what is asked for cannot be planned" in lab.comment("plan")
    assert runner.uploads == ["plan"]
    assert "sweep.yml:measure" in runner.skipped


def test_a_fork_and_a_strangers_comment_start_nothing(lab: Lab) -> None:
    event = lab.event("labeled", "full-sweep-enabled")
    event["pull_request"]["head"]["repo"]["full_name"] = "stranger/lab"
    runner = lab.runner(event)
    assert runner.start("sweep.yml")
    comment = json.loads((EVENTS / "commented.json").read_bytes())
    comment["comment"] |= {"body": "/reuse-sweep-run 1", "author_association": "NONE"}
    comment["issue"]["pull_request"] = {"html_url": "https://github.com/example/lab/pull/17"}
    other = lab.runner(comment, event_name="issue_comment")
    assert other.start("comments.yml")
    assert not runner.done + other.done


def test_every_pull_request_is_checked(lab: Lab) -> None:
    def change(lab: Lab) -> Runner:
        runner = lab.runner(lab.event("opened"))
        runner.job("checks.yml:change", workflow("checks.yml")["jobs"]["change"], context(runner))
        return runner

    def context(runner: Runner) -> dict[str, Any]:
        return runner.context() | {"env": {}, "needs": {}, "inputs": {}}

    assert not failed(change(lab))
    lab.pushed(**{"perf-changelog_yaml": ENTRY.replace("mini", "nothing-of-this-name")})
    bad = change(lab)
    assert [line.split(":")[0] for line in failed(bad)] == ["Changelog"]
    assert "nothing-of-this-name" in bad.done[1].text
