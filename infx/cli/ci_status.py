"""infx ci status, infx ci dispatch: mark a commit of a pull request, start a workflow again."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import typer

from infx.cli.ci_comments import Event
from infx.cli.options import Json

__all__ = ["register"]

_LONGEST = 140
"""Characters that GitHub takes of what a status says."""

_INPUT = re.compile(r"([A-Za-z_][\w-]*)=(.*)", re.DOTALL)


def register(commands: typer.Typer) -> None:
    """Add the commands to those of `infx ci`."""
    commands.command(
        "status",
        help="Mark a commit of a pull request: that outlives the workflow that says it.",
    )(_status)
    commands.command("dispatch", help="Start a workflow of the repository, with inputs.")(_dispatch)


def _status(
    state: Annotated[
        Literal["pending", "success", "failure", "error"],
        typer.Argument(metavar="STATE", help="pending, success, failure or error"),
    ],
    event: Event,
    sentence: Annotated[str, typer.Option("--sentence", metavar="TEXT", help="why")],
    commit: Annotated[
        str,
        typer.Option("--commit", metavar="SHA", help="(default: the event's)", show_default=False),
    ] = "",
    context: Annotated[
        str, typer.Option("--context", metavar="NAME", help="which of several marks this is")
    ] = "infx sweep",
    as_json: Json = False,
) -> int:
    from infx.cli.ci_comment import workflow
    from infx.cli.ci_comments import read, told
    from infx.forge.github import github

    said = read(event)
    sha = commit or said.pull_request.head.sha
    body = {"state": state, "context": context, "description": sentence[:_LONGEST]}
    if address := workflow():
        body["target_url"] = address
    github(said.repository.full_name).create(f"/statuses/{sha}", body)
    return told(f"{context}: {state} at {sha[:12]}", "ci-status", body | {"sha": sha}, as_json)


def _dispatch(
    workflow: Annotated[
        str, typer.Argument(metavar="WORKFLOW", help="its file's name in .github/workflows")
    ],
    ref: Annotated[str, typer.Option("--ref", metavar="BRANCH", help="whose workflow it is")],
    repository: Annotated[
        str,
        typer.Option(
            "--repository", metavar="OWNER/NAME", envvar="GITHUB_REPOSITORY", help="where it is"
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=VALUE", help="one of its inputs; may be repeated"),
    ] = None,
    as_json: Json = False,
) -> int:
    from infx.cli.ci_comments import told
    from infx.forge.github import github

    given = dict(map(_named, inputs or ()))
    body = {"ref": ref, "inputs": given}
    github(repository).create(f"/actions/workflows/{workflow}/dispatches", body)
    return told(f"{workflow} starts at {ref}", "ci-dispatch", body, as_json)


def _named(text: str) -> tuple[str, str]:
    from infx.domain.errors import UsageError

    if found := _INPUT.fullmatch(text):
        return found[1], found[2]
    raise UsageError("bad-option", f"--input {text}: expected NAME=VALUE")
