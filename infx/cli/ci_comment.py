"""infx ci comment: tell in the pull request what was planned, measured and judged."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.ci_comments import Event
from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.ci.comment import Told
    from infx.ci.events import PullRequestEvent
    from infx.ci.printed import PrintedPlan, PrintedReview
    from infx.forge.github import GitHub
    from infx.report.model import ReportModel, RunData

__all__ = ["register", "workflow"]

_ADDRESS = re.compile(r"https?://[^\s<>\"\\]+")


def register(commands: typer.Typer) -> None:
    """Add the command to those of `infx ci`."""
    commands.command(
        "comment",
        help="Write the comment of a pull request: plan, checks, report. There is one for each"
        " mark, written again in place.",
    )(_comment)


def _comment(
    event: Event,
    runs: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="RUN", help="report this run; again: several in one report"),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="what infx ci plan --json printed")
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option("--review", metavar="FILE", help="what infx review --json printed"),
    ] = None,
    image: Annotated[
        str, typer.Option("--image", metavar="URL", help="a picture of the report")
    ] = "",
    notes: Annotated[
        list[str] | None,
        typer.Option("--note", metavar="TEXT", help="a sentence above all; may be repeated"),
    ] = None,
    name: Annotated[
        str, typer.Option("--mark", metavar="NAME", help="which of several comments this is")
    ] = "sweep",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print the text, send nothing")
    ] = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.ci.comment import comment
    from infx.cli.ci_comments import read, told
    from infx.forge.github import github

    said, mark = read(event), _mark(name)
    whole = _told(said, runs or (), plan, review, image, notes or (), results)
    text = comment(mark, whole)
    if dry_run:
        return told(text, "ci-comment", _data("nothing", "", text), as_json)
    there = github(said.repository.full_name)
    found = _ours(there, said.number, mark)
    if found is None and whole.idle:
        return told("nobody asks for anything", "ci-comment", _data("nothing", ""), as_json)
    done, url = _stick(there, said.number, mark, text, found)
    return told(f"{done} {url}", "ci-comment", _data(done, url), as_json)


def _data(done: str, url: str, text: str = "") -> dict[str, str | None]:
    return {"done": done, "url": url or None, "text": text or None}


def _mark(name: str) -> str:
    from infx.ci.comment import hidden_mark
    from infx.domain.errors import UsageError

    try:
        return hidden_mark(name)
    except ValueError as error:
        raise UsageError("bad-option", f"--mark: {error}") from error


def _told(
    event: PullRequestEvent,
    runs: Sequence[str],
    plan: Path | None,
    review: Path | None,
    image: str,
    notes: Sequence[str],
    results: Path | None,
) -> Told:
    from infx.ci.comment import Told
    from infx.domain.errors import UsageError

    if not (runs or plan or review or notes):
        hint = "name --plan, --run, --review or --note"
        raise UsageError("bad-option", "there is nothing to tell", hint=hint)
    data = _data_of(runs, results) if runs else []
    return Told(
        head=event.pull_request.head.sha,
        plan=_planned(plan, event) if plan else None,
        review=_reviewed(review, event) if review else None,
        report=_report(data) if data else None,
        image=_address(image),
        links={"workflow": address} if (address := workflow()) else {},
        notes=(*notes, *_invalid(data)),
    )


def _planned(path: Path, event: PullRequestEvent) -> PrintedPlan:
    from infx.ci.printed import PrintedPlan, read_printed
    from infx.cli.planning_ci import bytes_of

    found = read_printed(bytes_of(path), PrintedPlan, str(path))
    if found.data and found.data.pull_request != event.number:
        raise _another(path, f"#{found.data.pull_request}", f"#{event.number}")
    return found


def _reviewed(path: Path, event: PullRequestEvent) -> PrintedReview:
    from infx.ci.printed import PrintedReview, read_printed
    from infx.cli.planning_ci import bytes_of

    found = read_printed(bytes_of(path), PrintedReview, str(path))
    here = f"{event.repository.full_name}#{event.number} at {event.pull_request.head.sha}"
    data = found.data
    if data and here != (its := f"{data.repository}#{data.pull_request} at {data.head}"):
        raise _another(path, its, here)
    return found


def _another(path: Path, its: str, here: str) -> Exception:
    from infx.domain.errors import UsageError

    hint = "make it for this pull request, at its last commit"
    return UsageError("bad-option", f"{path} is of {its}, the event of {here}", hint=hint)


def _data_of(runs: Sequence[str], results: Path | None) -> list[RunData]:
    from infx.cli.options import existing_store, results_dir
    from infx.cli.reporting import stored_run
    from infx.store import find_run

    with existing_store(results_dir(results)) as store:
        return [stored_run(store, find_run(store, name)) for name in runs]


def _report(data: Sequence[RunData]) -> ReportModel:
    from infx.cli.reporting import report_of

    return report_of(data)


def _invalid(data: Sequence[RunData]) -> list[str]:
    """Return what has to be said of runs that a label shortened."""
    made = [(run.facts.run_id, run.plan.origin) for run in data]
    bad = [name for name, origin in made if origin and not origin.submission_valid]
    return [f"What run {name} measured is not valid for submission." for name in bad]


def _address(text: str) -> str:
    from infx.domain.errors import UsageError

    if text and not _ADDRESS.fullmatch(text):
        raise UsageError("bad-option", f"--image {text}: no address", hint="https://…")
    return text


def workflow() -> str:
    """Return where GitHub shows the workflow that runs this; "" outside of one."""
    parts = [
        os.environ.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")
    ]
    address = "{}/{}/actions/runs/{}".format(*parts)
    return address if all(parts) and _ADDRESS.fullmatch(address) else ""


def _stick(
    there: GitHub, number: int, mark: str, text: str, found: dict[str, Any] | None
) -> tuple[str, str]:
    """Write the comment that was found, or a new one; return what was done and its address."""
    from infx.domain.errors import InfraError

    if found:
        return "updated", _changed(there, found, text)
    try:
        return "created", _created(there, number, text)
    except InfraError:
        there.wait(3.0)
    if found := _ours(there, number, mark):  # it was made, although the answer was lost
        return "created", _changed(there, found, text)
    return "created", _created(there, number, text)


def _changed(there: GitHub, found: dict[str, Any], text: str) -> str:
    answer = there.change(f"/issues/comments/{found['id']}", {"body": text})
    return str(answer["html_url"])


def _created(there: GitHub, number: int, text: str) -> str:
    return str(there.create(f"/issues/{number}/comments", {"body": text})["html_url"])


def _ours(there: GitHub, number: int, mark: str) -> dict[str, Any] | None:
    """Return the first comment that begins with the mark and was written by whom the token speaks
    for: anyone may write the mark, and whoever wrote a comment can go on changing it."""
    marked = [
        comment
        for comment in there.pages(f"/issues/{number}/comments")
        if (comment.get("body") or "").startswith(mark)
    ]
    if not marked:
        return None
    login = there.login()
    return next((one for one in marked if _is_by(one.get("user") or {}, login)), None)


def _is_by(user: dict[str, Any], login: str) -> bool:
    return user.get("login") == login if login else user.get("type") == "Bot"
