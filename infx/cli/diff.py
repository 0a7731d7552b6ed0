"""infx diff: which points appear, vanish or change their identity since a revision, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.ci.diff import PlanDiff
    from infx.domain.plan import Plan
    from infx.domain.point import Point

__all__ = ["diff_data", "register"]


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
    as_json: Json = False,
) -> int:
    from infx.ci.diff import compare
    from infx.cli.options import project
    from infx.cli.output import emit
    from infx.cli.planning_ci import plan_of_all
    from infx.cli.revisions import project_at

    here = project()
    with project_at(base, here) as before:
        old = plan_of_all(before)
    found = compare(old, _plan(head) if head else plan_of_all(here))
    if as_json:
        emit("diff", diff_data(found))
    else:
        _show(found, base)
    return 0


def _plan(rev: str) -> Plan:
    from infx.cli.options import project
    from infx.cli.planning_ci import plan_of_all
    from infx.cli.revisions import project_at

    with project_at(rev, project()) as there:
        return plan_of_all(there)


def diff_data(found: PlanDiff) -> dict[str, Any]:
    """Return what becomes of each point, for JSON."""
    return {
        "appeared": [_named(point) for point in found.appeared],
        "vanished": [_named(point) for point in found.vanished],
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


def _show(found: PlanDiff, base: str) -> None:
    from infx.cli.output import table

    rows = [("appears", p.entry, p.label, "") for p in found.appeared]
    rows += [("vanishes", p.entry, p.label, "") for p in found.vanished]
    for pair in found.changed:
        rows.append(
            ("changes", pair.after.entry, pair.after.label, "; ".join(map(str, pair.fields)))
        )
    if rows:
        table(("WHAT", "ENTRY", "POINT", "WHY"), rows)
    counts = (
        f"{len(found.appeared)} appear, {len(found.vanished)} vanish, {len(found.changed)} change"
    )
    print(f"{counts}, {len(found.same)} are the same since {base}")
