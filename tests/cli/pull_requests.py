"""A pull request in a repository of git: two commits, its event, its comments, its run."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infx.config.project import Project
from infx.domain.plan import Origin, Plan
from infx.domain.record import PointRecord, Provenance
from infx.forge.planned import plan_of_all
from infx.launch.runs import create_run, open_store
from infx.review.rules import load_rules
from tests.ci.cases import EVENTS
from tests.store.tiny_plans import record

REPOSITORY, NUMBER = "example/lab", 17
MATRIX = """\
mini:
  model-prefix: minimaxm3
  precision: mxfp4
  framework: infx
  image: pypi:infx
  recipe: minimaxm3-mini-cpu-infx
  cluster: local
  speculation: {method: eagle3, golden: minimaxm3-mini_eagle3, thinking: off, law: min-variance}
  scenarios:
    - workload: {isl: 32, osl: 32, requests: 10*conc, warmup-requests: conc}
      axes:
        conc: [1]
        k: 3
        max-num-seqs: 2*conc
        capture-sizes: range(k+1, (k+1)*max_num_seqs+1, k+1)
  evaluations:
    - {task: gsm_mini, limit: 4, shots: 1, conc: 4, max-tokens: 96}
"""
CHANGED = MATRIX.replace("conc: [1]", "conc: [1, 2]")
ENTRY = f"""\
- config-keys:
    - mini
  description:
    - "Concurrency 2."
  pr-link: https://github.com/{REPOSITORY}/pull/{NUMBER}
"""
STATUS = "version: 1\nmodels: {minimaxm3: {scenarios: {fixed-lengths: active}}}\n"
BARS = "version: 1\ndefault: {gsm_mini: {strict-match: 0.01, flexible-extract: 0.01}}\n"
BASE = {
    "configs/mini.yaml": MATRIX,
    "configs/review/model-status.yaml": STATUS,
    "configs/review/bars.yaml": BARS,
    ".github/CODEOWNERS": "* @example/core\n/configs/mini.yaml @reviewer\n",
    ".gitignore": "/results/\n/event.json\n/comments.json\n/*.tar.gz\n",
    "perf-changelog.yaml": "",
}


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "a change")
    return git(folder, "rev-parse", "HEAD")


@dataclass(frozen=True, slots=True)
class Lab:
    """A repository whose branch `new-point` is a pull request into `main`."""

    folder: Path

    @property
    def head(self) -> str:
        return git(self.folder, "rev-parse", "new-point")

    @property
    def event(self) -> Path:
        return self.folder / "event.json"

    def tell(self, **changes: Any) -> Path:
        """Write the event of the branch as it is now."""
        told = json.loads((EVENTS / "labeled.json").read_bytes())
        request = told["pull_request"] | {"body": "Concurrency 2 is new.", **changes}
        request["head"]["sha"] = self.head
        request["base"]["sha"] = git(self.folder, "rev-parse", "main")
        request["labels"] = [one for one in request["labels"] if one["name"] != "bug"]
        self.event.write_text(json.dumps(told | {"pull_request": request}))
        return self.event

    def signed(self, run: str) -> Path:
        """Write comments in which an owner reuses ``run`` and signs."""
        template = load_rules().signoff
        items = "\n".join(f"- [x] {item.text}" for item in template.items)
        bodies = (
            f"/reuse-sweep-run {run}",
            f"{template.opening} (template version {template.version}):\n\n{items}\n",
        )
        path = self.folder / "comments.json"
        path.write_text(json.dumps([_comment(n, body) for n, body in enumerate(bodies)]))
        return path

    def plan(self, pull_request: int = NUMBER, repository: str = REPOSITORY) -> Plan:
        """The plan of the working tree, made for a pull request at its head."""
        origin = Origin(repository=repository, pull_request=pull_request, head_sha=self.head)
        return replace(plan_of_all(Project.find(self.folder)), origin=origin)

    def swept(
        self, plan: Plan, change: Callable[[PointRecord], PointRecord | None] = lambda one: one
    ) -> str:
        """Put a run into the store, every point ok with a log, each record as ``change`` has it."""
        results = self.folder / "results"
        with open_store(results) as store:
            row = create_run(
                store, results, plan, source="mini", project=self.folder, executor="local"
            )
            for job in plan.jobs:
                log = f"jobs/{job.name}/server.log"
                (Path(row.folder) / log).parent.mkdir(parents=True, exist_ok=True)
                (Path(row.folder) / log).write_text("ready\n" * 100)
                for point in job.points:
                    made = Provenance(git_revision=self.head, server={"dtype": "float32"})
                    one = record(point, row.run_id, job.job_id)
                    found = change(replace(one, artifacts={"server-log": log}, provenance=made))
                    if found:
                        store.save(found)
        return row.run_id


def lab_in(folder: Path, below: str = "") -> Lab:
    """Make the repository, with the branch checked out and its event written; ``below`` is the
    project's folder in it."""

    def placed(files: dict[str, str]) -> dict[str, str]:
        return {name if name[0] == "." else below + name: text for name, text in files.items()}

    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, placed(BASE))
    git(folder, "checkout", "-q", "-b", "new-point")
    commit(folder, placed({"configs/mini.yaml": CHANGED, "perf-changelog.yaml": ENTRY}))
    lab = Lab(folder)
    lab.tell()
    return lab


def _comment(number: int, body: str) -> dict[str, Any]:
    return {
        "id": number,
        "body": body,
        "created_at": f"2026-10-08T1{number}:00:00Z",
        "html_url": f"https://github.com/{REPOSITORY}/pull/{NUMBER}#issuecomment-{number}",
        "author_association": "COLLABORATOR",
        "user": {"login": "reviewer"},
    }
