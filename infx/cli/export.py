"""infx export: a plan in another tool's words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from infx.cli.options import EntryGlobs, Json, On, Results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infx.config.project import Project
    from infx.domain.plan import Plan
    from infx.launch.srt.export import Manifest, PlacedPoint

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", help="Write a plan as recipes of srt-slurm, one an arm.")(_export)


def _export(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN_OR_MATRIX…", help="a run's name, matrix files, or a saved plan.json"
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="where recipes are written")
    ],
    format: Annotated[
        Literal["srt"], typer.Option("--format", help="whose words: srt-slurm, recipes of schema 2")
    ] = "srt",
    entry: EntryGlobs = None,
    on: On = None,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.options import project, results_dir
    from infx.cli.output import emit
    from infx.cli.planning import cluster_named
    from infx.launch.srt.export import export

    here = project()
    plan = _plan(sources, entry, here, on, results_dir(results))
    clusters = {
        name: cluster_named(name, here, "the plan") for name in {j.cluster for j in plan.jobs}
    }
    manifest = export(plan, clusters, output)
    failed = any(finding.level == "error" for finding in manifest.findings)
    code = 1 if failed else 0 if manifest.recipes else 5
    if as_json:
        data = {"folder": str(output), "plan_id": manifest.plan_id, "recipes": manifest.recipes}
        emit("export", data, ok=not code, diagnostics=manifest.findings)
    else:
        _print(manifest, output)
    return code


def _plan(
    sources: Sequence[str], entry: list[str] | None, here: Project, on: str | None, results: Path
) -> Plan:
    """Return the plan of a run, when one source names one, else that of the sources."""
    from infx.cli.planning import plan_of
    from infx.domain.errors import UsageError
    from infx.store import FILE, Store, find_run, read_run

    if len(sources) == 1 and (results / FILE).is_file() and not (entry or on):
        with Store(results / FILE) as store:
            try:
                return read_run(Path(find_run(store, sources[0]).folder))[1]
            except UsageError as error:
                if error.code != "unknown-run":
                    raise
    return plan_of(sources, entry, here, on)


def _print(manifest: Manifest, folder: Path) -> None:
    from infx.cli.output import say, table

    rows = [(e.file, e.cluster, *_points(e.points)) for e in manifest.recipes]
    if rows:
        table(("RECIPE", "CLUSTER", "POINTS", "CONCURRENCIES"), rows)
    for finding in manifest.findings:
        say(f"{finding.level}: {finding}")
    if rows:
        say(f"{len(rows)} recipes in {folder}; submit one with srtctl apply -f FILE --json")
    elif not any(finding.level == "error" for finding in manifest.findings):
        say("no recipe: infx plan says what is left out of the plan, and why")


def _points(points: Sequence[PlacedPoint]) -> tuple[int, str]:
    """Return how many there are, and their concurrencies."""
    return len(points), " ".join(str(point.conc) for point in points)
