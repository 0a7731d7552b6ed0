"""Options and arguments that several commands share, and the folders they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from infx.config.project import Project
    from infx.store import RunRow, Store

__all__ = [
    "Canary",
    "EntryGlobs",
    "FailFast",
    "Interleave",
    "Json",
    "On",
    "RepeatEvaluations",
    "Repeats",
    "Results",
    "Reuse",
    "Run",
    "Sources",
    "existing_store",
    "project",
    "project_of",
    "results_dir",
    "working_folder",
]

Sources = Annotated[
    list[str],
    typer.Argument(metavar="MATRIX…", help="matrix files, names in configs/, or a saved plan.json"),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="a run's name, its beginning, or last")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object to stdout")]
EntryGlobs = Annotated[
    list[str] | None,
    typer.Option("--entry", metavar="GLOB", help="only entries of that name; may be repeated"),
]
On = Annotated[
    str | None,
    typer.Option("--on", metavar="CLUSTER", help="where jobs run (default: each entry's cluster)"),
]
Canary = Annotated[
    bool | None,
    typer.Option(
        "--canary/--no-canary",
        help="an entry's cheapest job goes first, the rest when it measured something"
        " (default: on a cluster)",
        show_default=False,
    ),
]
FailFast = Annotated[
    bool, typer.Option("--fail-fast", help="an entry's first failure stops its other jobs")
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        min=1,
        metavar="N",
        help="measure each throughput point N times: all of them once, then all again"
        " (default: 1, or 2 with --interleave)",
        show_default=False,
    ),
]
Interleave = Annotated[
    str | None,
    typer.Option(
        "--interleave",
        metavar="AXIS",
        help="measure servers that differ in this axis alone in turn, A B B A, on one allocation",
    ),
]
RepeatEvaluations = Annotated[
    bool,
    typer.Option(
        "--repeat-evaluations", help="repeat evaluations as well (default: they run once)"
    ),
]
Reuse = Annotated[
    bool,
    typer.Option(
        "--reuse", help="measure nothing that a run in the results folder has measured already"
    ),
]
Results = Annotated[
    Path | None,
    typer.Option(
        "--results",
        metavar="DIR",
        envvar="INFX_RESULTS",
        help="where runs are kept (default: results in the project's folder)",
        show_default=False,
    ),
]


def project() -> Project:
    """Return the project of the working folder."""
    from infx.config.project import Project

    return Project.find(working_folder())


def project_of(run: RunRow) -> Project:
    """Return the run's project, or the working folder's where that is gone, or was another
    machine's: only clusters are read of it."""
    from infx.config.project import Project

    root = Path(run.project)
    return Project.find(root) if root.is_dir() else project()


def results_dir(given: Path | None) -> Path:
    """Return the folder of runs and store, as an absolute path."""
    if given and given.is_absolute():
        return given
    return working_folder() / given if given else project().root / "results"


def working_folder() -> Path:
    """Return it. Raises UsageError ``bad-option`` when it was deleted under the shell."""
    from infx.domain.errors import UsageError

    try:
        return Path.cwd()
    except FileNotFoundError:
        hint = "change to a folder that exists"
        raise UsageError("bad-option", "the working folder is gone", hint=hint) from None


def existing_store(results: Path) -> Store:
    """Return the store in ``results``. Raises UsageError ``unknown-run`` where there is none."""
    from infx.domain.errors import UsageError
    from infx.store import FILE, Store

    if not (results / FILE).is_file():
        raise UsageError(
            "unknown-run",
            f"there are no runs in {results}",
            hint="start one with infx sweep, or name their folder with --results",
        )
    return Store(results / FILE)
