"""infx diff: which points appear, vanish or change their identity since a revision, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infx.ci.diff import PlanDiff
    from infx.ci.explain import Line
    from infx.domain.plan import Plan
    from infx.domain.point import Point

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "diff", help="Show which planned points appear, vanish or change since a revision."
    )(_diff)


def _diff(
    base: Annotated[
        str, typer.Option("--base", metavar="REV", help="the revision of git to compare with")
    ],
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="REV", help="(default: the files as they are)", show_default=False
        ),
    ] = None,
    each: Annotated[
        bool, typer.Option("--points", help="a line for each point, not for each reason")
    ] = False,
    as_json: Json = False,
) -> int:
    from infx.ci.diff import compare
    from infx.ci.explain import explained
    from infx.cli.options import project
    from infx.cli.output import emit, say
    from infx.forge.planned import plan_of_all, plan_of_base
    from infx.forge.revisions import project_at

    here = project()
    with project_at(base, here) as before:
        old, warnings = plan_of_base(before)
    new = _plan(head) if head else plan_of_all(here)
    found = compare(old, new)
    lines = explained(found, old, new, each=each or as_json)
    if as_json:
        emit("diff", _data(found, lines), diagnostics=warnings)
        return 0
    _show(found, lines, base)
    for warning in warnings:
        say(f"{warning.level}: {warning}")
    return 0


def _plan(rev: str) -> Plan:
    from infx.cli.options import project
    from infx.forge.planned import plan_of_all
    from infx.forge.revisions import project_at

    with project_at(rev, project()) as there:
        return plan_of_all(there)


def _data(found: PlanDiff, lines: Sequence[Line]) -> dict[str, Any]:
    """Return what becomes of each point; ``lines`` holds one for each."""
    why = {(line.what, point.point_id): line.why for line in lines for point in line.points}
    return {
        "appeared": [_named(p) | {"why": why["appears", p.point_id]} for p in found.appeared],
        "vanished": [_named(p) | {"why": why["vanishes", p.point_id]} for p in found.vanished],
        "changed": [
            {
                "entry": pair.after.entry,
                "before": _named(pair.before),
                "after": _named(pair.after),
                "fields": pair.fields,
            }
            for pair in found.changed
        ],
        "same": len(found.same),
    }


def _named(point: Point) -> dict[str, str]:
    return {"entry": point.entry, "label": point.label, "point_id": point.point_id}


def _show(found: PlanDiff, lines: Sequence[Line], base: str) -> None:
    from infx.cli.output import table

    if lines:
        rows = [(line.what, line.entry, _points(line.points), line.why) for line in lines]
        table(("WHAT", "ENTRY", "POINTS", "WHY"), rows)
    counts = (
        f"{len(found.appeared)} appear, {len(found.vanished)} vanish, {len(found.changed)} change"
    )
    print(f"{counts if lines else 'nothing changes'}, {len(found.same)} are the same since {base}")


def _points(points: Sequence[Point]) -> str:
    more = f" and {len(points) - 1} more" if len(points) > 1 else ""
    return points[0].label + more
