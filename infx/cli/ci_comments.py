"""infx ci event, infx ci comments: what GitHub says of a pull request, in files for later steps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.ci.events import PullRequestEvent

__all__ = ["Event", "read", "register", "told"]

Event = Annotated[
    Path, typer.Option("--event", metavar="FILE", help="GitHub's event of the pull request")
]
_Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="the file to write")]


def register(commands: typer.Typer) -> None:
    """Add the commands to those of `infx ci`."""
    commands.command(
        "event",
        help="Write the event of a pull request as it is now: its text, labels and commits.",
    )(_event)
    commands.command("comments", help="Write all comments of a pull request.")(_comments)


def _event(
    output: _Output,
    event: Annotated[
        Path | None,
        typer.Option("--event", metavar="FILE", help="an event of it, or of a comment in it"),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--pull-request", metavar="N", min=1, help="its number, without an event"),
    ] = None,
    repository: Annotated[
        str,
        typer.Option(
            "--repository", metavar="OWNER/NAME", envvar="GITHUB_REPOSITORY", help="where it is"
        ),
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option("--outputs", metavar="FILE", help="append number, head, base, state, fork"),
    ] = None,
    as_json: Json = False,
) -> int:
    from infx.ci.events import read_event
    from infx.cli.planning_ci import append_outputs
    from infx.forge.github import github

    repository, number = _which(event, number, repository)
    found = github(repository).get(f"/pulls/{number}")
    made = _made(found, f"pull request {number}")
    _write(output, made)
    now = read_event(output.read_bytes(), str(output))
    if to:
        append_outputs(_facts(now), to)
    return told(f"{_sentence(now)}: {output}", "ci-event", _facts(now), as_json)


def _which(event: Path | None, number: int | None, repository: str) -> tuple[str, int]:
    from infx.domain.errors import UsageError

    if event:
        said = read(event)
        return said.repository.full_name, said.number
    if not number or repository.count("/") != 1:
        hint = "name --event FILE, or --pull-request N and --repository OWNER/NAME"
        raise UsageError("bad-option", "no pull request is named", hint=hint)
    return repository, number


def _made(pull_request: Any, name: str) -> dict[str, Any]:
    """Return a pull request of the REST interface as an event. Raises ConfigError ``bad-event``."""
    from infx.domain.errors import ConfigError
    from infx.domain.findings import Finding, Where

    try:
        closed = pull_request["state"] == "closed"
        return {
            "action": "closed" if closed else "synchronize",
            "number": pull_request["number"],
            "pull_request": pull_request,
            "repository": pull_request["base"]["repo"],
        }
    except (KeyError, TypeError) as error:
        sentence = f"not a pull request as GitHub tells it: {error} is missing"
        raise ConfigError([Finding("bad-event", "error", sentence, Where(name))]) from error


def _facts(event: PullRequestEvent) -> dict[str, str]:
    request = event.pull_request
    return {
        "number": str(event.number),
        "head": request.head.sha,
        "base": request.base.sha,
        "state": request.state,
        "fork": "true" if event.is_of_fork else "false",
    }


def _sentence(event: PullRequestEvent) -> str:
    request = event.pull_request
    return f"{event.repository.full_name}#{event.number} is {request.state} at {request.head.sha}"


def _comments(event: Event, output: _Output, as_json: Json = False) -> int:
    from infx.ci.events import read_comments
    from infx.forge.github import github

    said = read(event)
    found = github(said.repository.full_name).pages(f"/issues/{said.number}/comments")
    _write(output, found)
    read_comments(output.read_bytes(), str(output))
    sentence = f"{len(found)} comments of {said.repository.full_name}#{said.number}: {output}"
    return told(sentence, "ci-comments", {"comments": len(found)}, as_json)


def told(sentence: str, command: str, data: Mapping[str, Any], as_json: bool) -> int:
    """Print what was done, for people or as one JSON object; return 0."""
    from infx.cli.output import emit

    if as_json:
        emit(command, data)
    elif sentence:
        print(sentence)
    return 0


def read(path: Path) -> PullRequestEvent:
    """Return the event in a file. Raises ConfigError, UsageError."""
    from infx.ci.events import read_event
    from infx.cli.planning_ci import bytes_of

    return read_event(bytes_of(path), str(path))


def _write(path: Path, content: Any) -> None:
    """Write JSON, whole or not at all. Raises UsageError where it cannot be written."""
    import json

    from infx.domain.errors import UsageError

    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise UsageError("bad-option", f"{path} cannot be written: {error.strerror}") from error
