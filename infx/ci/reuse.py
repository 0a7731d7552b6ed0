"""Measurements that stand for planned ones: asked for by a comment, or found by their identity."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from infx.ci.diff import Changed, PlanDiff, compare_points
from infx.ci.events import Comment
from infx.ci.revised import Aside, set_aside
from infx.domain.findings import Finding
from infx.domain.plan import Plan
from infx.domain.point import Point
from infx.domain.record import PointRecord

__all__ = ["Command", "asked_for", "command_in", "dropped", "refusals", "reused"]

_COMMAND = re.compile(r"/reuse-sweep-run(?:[ \t]+([A-Za-z0-9][\w.-]*))?[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """``/reuse-sweep-run [ID]`` of a comment; no ``run`` asks for the newest that fits."""

    run: str
    author: str
    association: str
    url: str


def command_in(body: str) -> str | None:
    """Return the run that the last ``/reuse-sweep-run [ID]`` alone on a line names (``""``: none is
    named); None where no line is one."""
    found = [match for line in body.splitlines() if (match := _COMMAND.fullmatch(line))]
    return (found[-1][1] or "") if found else None


def asked_for(comments: Iterable[Comment], associations: Collection[str]) -> Command | None:
    """Return the command of the latest comment by an author who may give one, or None."""
    allowed = [comment for comment in comments if comment.author_association in associations]
    for comment in sorted(allowed, key=lambda c: (c.created_at, c.id), reverse=True):
        if (run := command_in(comment.body)) is not None:
            return Command(
                run=run,
                author=comment.user.login if comment.user else "",
                association=comment.author_association,
                url=comment.html_url,
            )
    return None


def refusals(
    planned: Sequence[Point], records: Sequence[PointRecord], run: str
) -> tuple[Finding, ...]:
    """Return why a run cannot stand for what is planned: an error ``reuse-refused`` for each point
    that it lacks, that did not end ok there, or that has another identity, with what differs."""
    done = {record.point.point_id for record in records if record.status.state == "ok"}
    states = {record.point.point_id: str(record.status) for record in records}
    change = compare_points([record.point for record in records], planned)
    found = [
        _refusal(run, point.label, f"it ended {states[point.point_id]} there")
        for point in change.same
        if point.point_id not in done
    ]
    found += [_refusal(run, pair.after.label, _differs(pair)) for pair in change.changed]
    found += [_refusal(run, point.label, "it was not measured there") for point in change.appeared]
    return tuple(found)


def _differs(pair: Changed) -> str:
    return f"{pair.before.label} was measured there: {'; '.join(map(str, pair.fields))}"


def _refusal(run: str, label: str, why: str) -> Finding:
    hint = "name another run, or measure: remove the comment"
    return Finding(
        "reuse-refused", "error", f"run {run} cannot stand for {label}: {why}", None, hint
    )


def reused(plan: Plan, stored: Mapping[str, str]) -> Plan:
    """Return the plan without the points that were measured already: ``stored`` maps the identity
    of a point that is ok to its run, which the ledger's row names."""
    return set_aside(
        plan,
        {
            point.point_id: Aside("reused", f"run {run}", f"measured in run {run}")
            for point in plan.points
            if (run := stored.get(point.point_id))
        },
    )


def dropped(live: Sequence[Point], published: Sequence[Point]) -> tuple[Finding, ...]:
    """Return an error ``points-dropped`` for each point of the live curves that a publish of these
    points would take away: those of its entries for which it has none."""
    entries = {point.entry for point in published}
    change: PlanDiff = compare_points([p for p in live if p.entry in entries], published)
    hint = "measure or reuse it, or say in the changelog entry that it goes"
    return tuple(
        Finding("points-dropped", "error", _lost(point), hint=hint) for point in change.vanished
    )


def _lost(point: Point) -> str:
    return f"{point.label} is on the live curve of {point.entry}; the publish has no such point"
