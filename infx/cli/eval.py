"""infx eval: only the evaluations of a matrix, with more questions or another task."""

from __future__ import annotations

from typing import Annotated

import typer

from infx.cli.options import EntryGlobs, Json, On, Results, Sources

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("eval", help="Score the servers of a matrix; measure no throughput.")(_eval)


def _eval(
    sources: Sources,
    entry: EntryGlobs = None,
    task: Annotated[
        str | None, typer.Option("--task", help="an lm-eval task instead of the matrix's own")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="PATH|hub", help="where the task's questions come from"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="questions to ask (default: all)")
    ] = None,
    shots: Annotated[
        int | None, typer.Option("--shots", min=0, help="worked examples in each prompt")
    ] = None,
    on: On = None,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli import driving
    from infx.cli.options import project, results_dir
    from infx.cli.planning import matrix_of
    from infx.launch.evaluations import evaluation_plan, with_evaluations

    here = project()
    matrix = with_evaluations(
        matrix_of(sources, entry, here, on), task=task, source=source, limit=limit, shots=shots
    )
    return driving.start(evaluation_plan(matrix), sources, here, results_dir(results), as_json)
