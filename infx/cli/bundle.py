"""infx bundle: everything that a review of a pull request needs, in one folder or archive."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.cli.bundling import Made

__all__ = ["register"]

LINE_S = 5.0
"""Between two lines of progress, where stderr is no terminal."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "bundle",
        help="Gather what a review of a pull request needs, for infx review: its event and"
        " comments, its branch, and the runs that measured it.",
    )(_bundle)


def _bundle(
    event: Annotated[
        Path, typer.Option("--event", metavar="FILE", help="GitHub's event of the pull request")
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="PATH", help="a new folder, .tar.gz, .tar or .zip"),
    ],
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]…",
            help="runs that measured it (default: those of the pull request, and those it reuses)",
        ),
    ] = None,
    comments: Annotated[
        Path | None,
        typer.Option("--comments", metavar="FILE", help="its comments, as GitHub lists them"),
    ] = None,
    base: Annotated[
        str, typer.Option("--base", metavar="REV", help="what it is merged into")
    ] = "",
    head: Annotated[str, typer.Option("--head", metavar="REV", help="its last commit")] = "",
    drafts: Annotated[
        Path | None,
        typer.Option(
            "--drafts", metavar="FILE", help="stored and effective types of drafts, as JSON"
        ),
    ] = None,
    upstream: Annotated[
        Path | None,
        typer.Option("--upstream", metavar="FILE", help="upstream recipes of entries, as JSON"),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--evidence", min=0, max=400, metavar="MIB",
            help="how much evidence goes with it, the smallest files first",
        ),
    ] = 64,
    results: Results = None,
    as_json: Json = False,
) -> int:  # fmt: skip
    from infx.bundling.packing import pack
    from infx.cli.bundling import Sources, bundled
    from infx.cli.output import emit, say

    sources = Sources(
        event=event,
        comments=comments,
        base=base,
        head=head,
        runs=tuple(runs or ()),
        results=results,
        drafts=drafts,
        upstream=upstream,
        limit_bytes=limit * 2**20,
    )
    with _telling() as tell:
        made = bundled(sources, tell)
    path = pack(made.files, output)
    for finding in made.findings:
        say(f"{finding.level}: {finding}")
    if not made.bundle.runs:
        say("no run in the store was made for it: bring one (infx store pull), or name one")
    if as_json:
        emit("bundle", _data(made, path), diagnostics=made.findings)
    else:
        print(_sentence(made, path))
    return 0


def _data(made: Made, path: Path) -> dict[str, object]:
    bundle = made.bundle
    return {
        "path": str(path),
        "repository": bundle.manifest.repository,
        "pull_request": bundle.manifest.pull_request,
        "base": bundle.manifest.base,
        "head": bundle.manifest.head,
        "runs": [run.run_id for run in bundle.runs],
        "records": len(bundle.records),
        "files": len(made.files),
        "bytes": sum(map(len, made.files.values())),
        "left_out": made.left_out,
    }


def _sentence(made: Made, path: Path) -> str:
    bundle = made.bundle
    runs = ", ".join(run.run_id for run in bundle.runs) or "no run"
    size = sum(map(len, made.files.values())) / 2**20
    which = f"{bundle.manifest.repository}#{bundle.manifest.pull_request}"
    told = f"{which} at {bundle.manifest.head[:12]}: {len(bundle.records)} records of {runs}"
    whole = f"{path}: {told}; {len(made.files)} files, {size:.1f} MiB"
    return f"{whole}\n{bundle.manifest.note}" if made.left_out else whole


@contextmanager
def _telling() -> Iterator[Callable[[int, int], None]]:
    """Give what shows on stderr how many files of evidence were read."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("evidence"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines() -> Callable[[int, int], None]:
    from infx.cli.output import say

    next_s = time.monotonic() + LINE_S

    def tell(done: int, total: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + LINE_S
            say(f"evidence: {done} of {total} files")

    return tell
