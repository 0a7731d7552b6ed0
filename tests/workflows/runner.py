"""Runs our workflows here: every ``run:`` in bash as GitHub's runner does, each job in a checkout
of its own with nothing in it that an earlier job left; what comes from GitHub is played."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.workflows.expressions import filled, holds

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"


def read(path: Path) -> dict[str, Any]:
    """A workflow or action; ``on`` is no truth value, as GitHub reads it."""
    found: dict[str, Any] = yaml.load(path.read_text(), Loader=yaml.BaseLoader)
    return found


def workflow(name: str) -> dict[str, Any]:
    return read(WORKFLOWS / name)


def action(uses: str) -> dict[str, Any]:
    """One of our own, as a step names it."""
    return read(ROOT / uses / "action.yml")


@dataclass
class Done:
    """A step that ran: its script's name, exit code and what it printed."""

    job: str
    name: str
    code: int
    text: str


@dataclass
class Runner:
    """One workflow after another, for the event in ``event``; ``origin`` is the repository that is
    cloned, ``folder`` where jobs work, ``environ`` what every script sees."""

    origin: Path
    folder: Path
    environ: dict[str, str]
    event: dict[str, Any]
    event_name: str = "pull_request"
    vars: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    done: list[Done] = field(default_factory=list)
    artifacts: dict[str, Path] = field(default_factory=dict)
    uploads: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def start(self, name: str, inputs: dict[str, str] | None = None) -> bool:
        """Run a workflow as its event, or with its inputs; return whether all of it succeeded."""
        return self.workflow(name, inputs or {}, self.secrets)[0]

    def workflow(
        self, name: str, inputs: dict[str, str], secrets: dict[str, str]
    ) -> tuple[bool, dict[str, Any]]:
        """Run the jobs in their order; return whether none failed, and their results."""
        whole = workflow(name)
        asked = (whole["on"].get("workflow_call") or {}).get("inputs", {})
        defaults = {key: one.get("default", "") for key, one in asked.items()}
        context = self.context() | {"inputs": {**defaults, **inputs}, "secrets": secrets}
        context["env"] = {k: filled(v, context) for k, v in whole.get("env", {}).items()}
        needs: dict[str, Any] = {}
        for key, job in whole["jobs"].items():
            context |= {"needs": needs, "failed": self.broken(job, needs)}
            if not holds(job.get("if"), context):
                self.skipped.append(f"{name}:{key}")
                needs[key] = {"result": "skipped", "outputs": {}}
                continue
            ok, outputs = self.job(f"{name}:{key}", job, context)
            needs[key] = {"result": "success" if ok else "failure", "outputs": outputs}
        return all(one["result"] != "failure" for one in needs.values()), needs

    def broken(self, job: dict[str, Any], needs: dict[str, Any]) -> bool:
        wanted = job.get("needs", [])
        names = [wanted] if isinstance(wanted, str) else wanted
        return any(needs[name]["result"] != "success" for name in names)

    def context(self) -> dict[str, Any]:
        github = {
            "event": self.event,
            "event_name": self.event_name,
            "repository": "example/lab",
            "token": self.environ["GITHUB_TOKEN"],
        }
        return {"github": github, "vars": self.vars, "secrets": self.secrets, "steps": {}}

    def job(
        self, name: str, job: dict[str, Any], context: dict[str, Any]
    ) -> tuple[bool, dict[str, Any]]:
        """Run a job in a folder of its own; return whether it succeeded, and its outputs."""
        if uses := job.get("uses"):
            given = {key: filled(text, context) for key, text in job.get("with", {}).items()}
            secrets = {key: filled(text, context) for key, text in job.get("secrets", {}).items()}
            return self.workflow(Path(uses).name, given, secrets)[0], {}
        here = self.folder / f"{len(self.done):03}-{re.sub('[^a-z]+', '-', name)}"
        here.mkdir()
        inner = {**context, "steps": {}, "failed": False}
        inner["env"] = context["env"] | {
            key: filled(text, inner) for key, text in job.get("env", {}).items()
        }
        self.steps(name, job["steps"], here, inner)
        outputs = {key: filled(text, inner) for key, text in job.get("outputs", {}).items()}
        return not inner["failed"], outputs

    def steps(
        self, job: str, steps: list[dict[str, Any]], here: Path, context: dict[str, Any]
    ) -> None:
        for step in steps:
            name = step.get("name") or step.get("uses", "")
            outputs: dict[str, str] = {}
            if not holds(step.get("if"), context):
                self.skipped.append(f"{job}:{name}")
                outcome = "skipped"
            else:
                ok = self.step(job, name, step, here, context, outputs)
                outcome = "success" if ok else "failure"
                context["failed"] |= not ok and step.get("continue-on-error") != "true"
            if key := step.get("id"):
                context["steps"][key] = {"outcome": outcome, "outputs": outputs}

    def step(
        self,
        job: str,
        name: str,
        step: dict[str, Any],
        here: Path,
        context: dict[str, Any],
        outputs: dict[str, str],
    ) -> bool:
        given = {key: filled(text, context) for key, text in step.get("with", {}).items()}
        if "run" in step:
            env = {key: filled(text, context) for key, text in step.get("env", {}).items()}
            return self.script(job, name, step["run"], here, context["env"] | env, outputs)
        uses = step["uses"]
        if uses.startswith("./.github/actions/setup"):
            return True  # infx is on the path already
        if uses.startswith("./"):
            return self.composite(job, uses, given, here, context, outputs)
        return self.played(uses.partition("@")[0], given, here)

    def composite(
        self,
        job: str,
        uses: str,
        given: dict[str, str],
        here: Path,
        context: dict[str, Any],
        outputs: dict[str, str],
    ) -> bool:
        whole = action(uses)
        inner = {**context, "inputs": given, "steps": {}, "failed": False}
        self.steps(f"{job}:{uses}", whole["runs"]["steps"], here, inner)
        outputs |= {key: filled(one["value"], inner) for key, one in whole["outputs"].items()}
        return not inner["failed"]

    def script(
        self,
        job: str,
        name: str,
        text: str,
        here: Path,
        env: dict[str, str],
        outputs: dict[str, str],
    ) -> bool:
        assert "${{" not in text, f"{job}:{name} has an expression in its script"
        files = {key: self.folder / f"{here.name}-{key}" for key in ("output", "summary", "event")}
        files["event"].write_text(json.dumps(self.event))
        files["output"].write_text("")
        told = {
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
            "GITHUB_EVENT_PATH": str(files["event"]),
            "GITHUB_EVENT_NAME": self.event_name,
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            cwd=here,
            env={**self.environ, **told, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
            check=False,
        )
        self.done.append(Done(job, name, done.returncode, done.stdout))
        outputs |= parsed(files["output"].read_text())
        return done.returncode == 0

    def played(self, uses: str, given: dict[str, str], here: Path) -> bool:
        """Do what an action of GitHub does."""
        if uses == "actions/checkout":
            git(here, "clone", "--quiet", str(self.origin), ".")
            if ref := given.get("ref"):
                git(here, "fetch", "--quiet", "origin", ref)
                git(here, "checkout", "--quiet", "FETCH_HEAD")
        elif uses == "actions/upload-artifact":
            return self.upload(given, here)
        elif uses == "actions/download-artifact":
            shutil.copytree(self.artifacts[given["name"]], here, dirs_exist_ok=True)
        else:
            assert uses == "actions/setup-python", uses
        return True

    def upload(self, given: dict[str, str], here: Path) -> bool:
        kept = self.folder / f"artifact-{given['name']}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        found = [here / line.strip() for line in given["path"].splitlines() if line.strip()]
        there = [path for path in found if path.exists()]
        for path in there:
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, kept / path.name)
        self.artifacts[given["name"]] = kept
        self.uploads.append(given["name"])
        return bool(there) or given.get("if-no-files-found") == "ignore"


def parsed(text: str) -> dict[str, str]:
    """The values of a file of outputs."""
    found = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, separator, rest = re.fullmatch(r"([\w-]+)(=|<<)(.*)", line).groups()  # type: ignore[union-attr]
        if separator == "<<":
            rest = "\n".join(iter(lambda: next(lines), rest))
        found[name] = rest
    return found


def git(folder: Path, *words: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
