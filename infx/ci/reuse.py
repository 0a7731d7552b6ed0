"""Measurements that stand for planned ones: asked for by a comment, or found by their identity."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from infx.ci.diff import PlanDiff, compare_points
from infx.ci.events import Comment
from infx.ci.revised import Aside, set_aside
from infx.ci.stored import Stored, followed, standing, unfit, whole
from infx.config.suggestions import did_you_mean
from infx.domain.errors import UsageError
from infx.domain.findings import Finding
from infx.domain.plan import Plan
from infx.domain.point import Point
from infx.domain.status import PENDING, Status

__all__ = ["Command", "asked_for", "chosen", "command_in", "dropped", "refusals", "reused"]

_COMMAND = re.compile(r"/reuse-sweep-run(?:[ \t]+([A-Za-z0-9][\w.-]*))?[ \t]*", re.ASCII)
_LINES = re.compile(r"\r\n|\r|\n")


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
    found = [match for line in _LINES.split(body) if (match := _COMMAND.fullmatch(line))]
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


def chosen(
    planned: Sequence[Point], run: str, stored: Iterable[Stored], repository: str, *, valid: bool
) -> tuple[Stored | None, tuple[Finding, ...]]:
    """Return the run that stands for all that is planned, or else why none does: the one that is
    named, or the newest that has everything, itself or from runs that its plan reuses.

    Raises UsageError ``unknown-run`` for a name that no run has.
    """
    runs = tuple(stored)
    fit = standing(runs, repository, valid=valid)
    if run:
        named = _named(run, runs)
        if why := unfit(named, repository, valid=valid):
            return None, (_refusal(run, "anything", why),)
        whole_run = followed(named, fit)
        found = refusals(planned, whole_run)
        return (None if found else whole_run), found
    wanted = {point.point_id for point in planned}
    known = [followed(one, fit) for one in fit]
    newest = whole(known, wanted)
    return newest, () if newest else _none_fits(planned, known, wanted)


def _named(run: str, runs: Sequence[Stored]) -> Stored:
    for one in runs:
        if one.run_id == run:
            return one
    hint = did_you_mean(run, [one.run_id for one in runs])
    raise UsageError(
        "unknown-run",
        f"the store has no run {run}, which a comment names",
        hint=hint or "list its runs: infx status; fetch others: infx store pull",
    )


def _none_fits(
    planned: Sequence[Point], fit: Sequence[Stored], wanted: Set[str]
) -> tuple[Finding, ...]:
    """Return that no run has measured everything, and what the one that has most of it lacks."""
    sentence = "no run that may stand here has measured everything that is planned"
    hint = "measure: remove the comment, or name a run to see what it lacks"
    none = Finding("reuse-refused", "error", sentence, hint=hint)
    if not any(run.measured & wanted for run in fit):
        return (none,)
    nearest = max(fit, key=lambda run: (len(run.measured & wanted), run.created_s))
    return (none, *refusals(planned, nearest))


def refusals(planned: Sequence[Point], run: Stored) -> tuple[Finding, ...]:
    """Return why a run cannot stand for what is planned: an error ``reuse-refused`` for each reason
    with a point that it lacks, that did not end ok there, or that has another identity, with the
    fields that differ."""
    change = compare_points(run.points(), planned)
    reasons: dict[Hashable, list[tuple[str, str]]] = {}
    for point, key, why in _reasons(change, run.states):
        reasons.setdefault(key, []).append((point.label, why))
    return tuple(_refused(run.run_id, key, told) for key, told in reasons.items())


def _reasons(
    change: PlanDiff, states: Mapping[str, Status]
) -> Iterator[tuple[Point, Hashable, str]]:
    """Yield the points for which a run cannot stand, what their reasons have in common, and why."""
    for point in change.same:
        status = states.get(point.point_id, PENDING)
        if not status.terminal:
            yield point, "open", "it has not ended there yet"
        elif status.state != "ok":
            yield point, str(status), f"it ended {status} there"
    for pair in change.changed:
        differs = "; ".join(map(str, pair.fields))
        names = tuple(field.name for field in pair.fields)
        yield pair.after, names, f"{pair.before.label} was measured there: {differs}"
    for point in change.appeared:
        yield point, "absent", "it was not measured there"


def _refused(run: str, key: Hashable, told: Sequence[tuple[str, str]]) -> Finding:
    label, why = told[0]
    alike = "; those differ in the same fields" if isinstance(key, tuple) else ""
    more = f" (and for {len(told) - 1} more{alike})" if len(told) > 1 else ""
    return _refusal(run, label, f"{why}{more}")


def _refusal(run: str, label: str, why: str) -> Finding:
    hint = "name another run, or measure: remove the comment"
    sentence = f"run {run} cannot stand for {label}: {why}"
    return Finding("reuse-refused", "error", sentence, hint=hint)


def reused(plan: Plan, stored: Mapping[str, str]) -> Plan:
    """Return the plan without the points that were measured already: ``stored`` maps the identity
    of a point that is ok to its run, which the ledger's row names."""
    return set_aside(
        plan,
        {
            point.point_id: Aside("reused", "reused", f"measured in run {run}", run)
            for point in plan.points
            if (run := stored.get(point.point_id))
        },
    )


def dropped(live: Sequence[Point], published: Sequence[Point]) -> tuple[Finding, ...]:
    """Return an error ``points-dropped`` for each point of the live curves that a publish of these
    points would take away: those of its entries for which it has none. Evaluations are on none."""
    entries = {point.entry for point in published}
    shown = [p for p in live if p.entry in entries and p.mode == "throughput"]
    change = compare_points(shown, published)
    hint = "measure or reuse it, or publish without it: infx store push --live --drop-points"
    return tuple(
        Finding("points-dropped", "error", _lost(point), hint=hint) for point in change.vanished
    )


def _lost(point: Point) -> str:
    return f"{point.label} is on the live curve of {point.entry}; the publish has no such point"
