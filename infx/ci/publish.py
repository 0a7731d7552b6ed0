"""What is published of a merged pull request: runs that have measured all that it selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from infx.ci.decision import CiPlan, submission_valid
from infx.ci.events import PullRequestEvent
from infx.ci.modifiers import evaluated
from infx.ci.reuse import Command, refusals, reused
from infx.ci.revised import Aside, set_aside
from infx.ci.stored import Stored, covering, followed, measured_by, standing, unfit
from infx.domain.findings import Finding
from infx.domain.plan import Plan
from infx.domain.point import Point
from infx.report.figures import count

__all__ = ["published"]

_NAMED = 4
"""Points of an entry that a sentence names before it counts the others."""


def published(
    known: CiPlan,
    head: Plan,
    event: PullRequestEvent,
    stored: Sequence[Stored],
    command: Command | None,
) -> CiPlan:
    """Return ``known`` with what is published: its plan reuses all that is selected, or there is an
    error ``not-measured`` for each entry that lacks a point of it. Labels do not count any more:
    what the changelog says is published, where it may stand beside published data.

    A live curve is put in the place of the one before, so whatever else of the same entries is
    planned at ``head`` and measured is published too. The run that a comment names comes before
    those of the pull request, and these before others; of equals the newest. ``runs`` ends with
    the one that comes first.
    """
    merged = f"pull request {event.number} is merged"
    if known.plan is None or not known.plan.points:
        return replace(known, reason=f"{merged}: no added changelog entry selects a point")
    if not submission_valid(known.plan.points):
        reason = f"{merged}: what it selects is not valid for submission, so it is not published"
        return replace(known, reason=reason, submission_valid=False)
    ours = _Ours(event.repository.full_name, event.number, command.run if command else "")
    found = replace(known, decision="publish", reuse=command)
    return _covered(found, known.plan.points, head, stored, ours, merged)


@dataclass(frozen=True, slots=True)
class _Ours:
    """What a run is preferred for: it is of the pull request, or a comment names it."""

    repository: str
    number: int
    named: str

    def place(self, run: Stored) -> tuple[bool, bool]:
        """Return where the run comes among others; what is preferred comes first."""
        of_it = run.origin is not None and run.origin.pull_request == self.number
        return run.run_id != self.named, not of_it


def _covered(
    found: CiPlan,
    selected: Sequence[Point],
    head: Plan,
    stored: Sequence[Stored],
    ours: _Ours,
    merged: str,
) -> CiPlan:
    fit = standing(stored, ours.repository, valid=True)
    order = sorted((followed(run, fit) for run in fit), key=ours.place)
    taken, left = covering(order, {point.point_id for point in selected})
    if left:
        lacking = [point for point in selected if point.point_id in left]
        reason = f"{merged}: no run has measured {len(left)} of its {len(selected)} points"
        return replace(found, reason=reason, faults=_faults(lacking, stored, fit, ours))
    sources = _sources(selected, head, measured_by(taken), measured_by(order))
    used = set(sources.values())
    names = tuple(run.run_id for run in reversed(order) if run.run_id in used)
    more = f" and {n} more of its entries" if (n := len(sources) - len(selected)) else ""
    what = f"{count(len(selected), 'point')} that it selects{more}"
    reason = f"{merged}: {what}, measured in {' and '.join(names)}"
    return replace(found, reason=reason, plan=_shown(head, selected, sources), runs=names)


def _sources(
    selected: Sequence[Point], head: Plan, first: Mapping[str, str], any_: Mapping[str, str]
) -> dict[str, str]:
    """Return the run of each point that is published: one of ``first`` for what is selected, one of
    ``any_`` for what else of the same entries was measured."""
    entries = {point.entry for point in selected}
    beside = (point for point in head.points if point.entry in entries)
    valid = (point.point_id for point in beside if submission_valid([point]))
    others = {key: any_[key] for key in valid if key in any_}
    return {**others, **{point.point_id: first[point.point_id] for point in selected}}


def _shown(head: Plan, selected: Sequence[Point], sources: Mapping[str, str]) -> Plan:
    """Return the plan that reuses what is published; all else is deferred in its ledger."""
    whole = evaluated(head, selected)
    why = Aside("deferred", "not-published", "the merged change does not publish it")
    rest = {p.point_id: why for p in whole.points if p.point_id not in sources}
    return reused(set_aside(whole, rest), sources)


def _faults(
    lacking: Sequence[Point], stored: Sequence[Stored], fit: Sequence[Stored], ours: _Ours
) -> tuple[Finding, ...]:
    """Return what is not measured, and what keeps the run from standing for it that should."""
    entries: dict[str, list[str]] = {}
    for point in lacking:
        entries.setdefault(point.entry, []).append(point.label)
    told = [_not_measured(entry, labels) for entry, labels in entries.items()]
    mine = [run for run in stored if not all(ours.place(run))]
    for run in sorted(mine, key=lambda run: run.created_s)[-1:]:
        told += _kept(run, lacking, fit, ours.repository)
    return tuple(told)


def _kept(
    run: Stored, lacking: Sequence[Point], fit: Sequence[Stored], repository: str
) -> list[Finding]:
    if why := unfit(run, repository, valid=True):
        return [Finding("not-measured", "error", f"run {run.run_id} is not published: {why}")]
    found = refusals(lacking, followed(run, fit))
    return [replace(finding, code="not-measured", hint="") for finding in found]


def _not_measured(entry: str, labels: Sequence[str]) -> Finding:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    sentence = f"{entry} has no valid measurement of {', '.join(labels[:_NAMED])}{more}"
    hint = "measure it, push that run to the store, then run this job again"
    return Finding("not-measured", "error", sentence, hint=hint)
