"""From an event and a change to what CI runs: a pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from infx.changelog.entry import Entry
from infx.ci.canary import Canary, canaries, led_by
from infx.ci.diff import PlanDiff, compare
from infx.ci.events import Comment, PullRequestEvent
from infx.ci.labels import LabelRules, Settings, settings
from infx.ci.modifiers import evaluated, evaluations_at, shortened
from infx.ci.reuse import Command, asked_for, reused
from infx.ci.revised import Aside, set_aside
from infx.ci.selection import Selection, select
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding
from infx.domain.plan import Job, Origin, Plan
from infx.domain.point import Agentic

__all__ = ["Change", "CiPlan", "Decision", "plan"]

Decision = Literal["sweep", "reuse", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a pull request changes: the plans of its base and head, what it adds to the changelog,
    and what was found while they were read."""

    base: Plan
    head: Plan
    additions: tuple[Entry, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CiPlan:
    """What CI does for a pull request, and why.

    ``plan`` holds what is measured (None: nothing is), the jobs of ``canaries`` first.
    ``submission_valid`` is False where a label shortened what is measured, or its data are of no
    published scenario; ``reusable`` where it may stand for a run on the main branch.
    """

    decision: Decision
    reason: str
    pull_request: int
    head_sha: str
    settings: Settings | None = None
    entries: tuple[str, ...] = ()
    canaries: tuple[Canary, ...] = ()
    plan: Plan | None = None
    reuse: Command | None = None
    submission_valid: bool = True
    reusable: bool = True
    warnings: tuple[Finding, ...] = field(default=())

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs to run, in order."""
        return self.plan.jobs if self.plan else ()


def plan(
    event: PullRequestEvent,
    change: Change,
    rules: LabelRules,
    *,
    comments: Sequence[Comment] = (),
    stored: Mapping[str, str] | None = None,
) -> CiPlan:
    """Return what is run for the event. ``stored`` maps points that are measured to their runs.

    Raises ConfigError for labels that contradict each other and for changelog additions that
    select nothing, with every fault.
    """
    if event.pull_request.state == "closed":
        return _nothing(event, f"pull request {event.number} is closed", None)
    asked = settings(event.labels, rules)
    if asked is None:
        return _nothing(event, "no label asks for a sweep", None)
    if reason := _not_now(event):
        return _nothing(event, reason, asked)
    difference = compare(change.base, change.head)
    selection = select(change.base, change.head, difference, _modified(change.additions, asked))
    _check(selection)
    command = asked_for(comments, rules.associations)
    if command and asked.reusable:
        return _reuse(event, asked, command, selection, change)
    warnings = (*change.findings, *selection.findings, *_unfollowed(command))
    swept = _swept(change.head, selection, asked, stored or {})
    return _sweep(event, asked, selection, difference, swept, warnings)


def _not_now(event: PullRequestEvent) -> str:
    """Return why nothing is run whatever changed, or ``""``."""
    if event.pull_request.draft:
        return "a draft is not swept: mark it ready for review"
    if event.is_of_fork:
        return "its head is not a branch of this repository: a maintainer pushes it to one"
    return ""


def _nothing(event: PullRequestEvent, reason: str, asked: Settings | None) -> CiPlan:
    return CiPlan(
        decision="nothing",
        reason=reason,
        pull_request=event.number,
        head_sha=event.pull_request.head.sha,
        settings=asked,
    )


def _modified(additions: Sequence[Entry], asked: Settings) -> list[Entry]:
    """Return the additions as the labels change them."""
    return [
        replace(
            addition,
            evals_only=addition.evals_only or asked.evaluations_only,
            all_evals=addition.all_evals or asked.every_evaluation,
        )
        for addition in additions
    ]


def _check(selection: Selection) -> None:
    if faults := [finding for finding in selection.findings if finding.level == "error"]:
        raise ConfigError(faults)


def _reuse(
    event: PullRequestEvent,
    asked: Settings,
    command: Command,
    selection: Selection,
    change: Change,
) -> CiPlan:
    which = f"run {command.run}" if command.run else "the newest run that fits"
    selected = _selected(change.head, selection)
    return CiPlan(
        decision="reuse",
        reason=f"{command.author} ({command.association}) asks to reuse {which}",
        pull_request=event.number,
        head_sha=event.pull_request.head.sha,
        settings=asked,
        entries=selection.entries,
        plan=selected,
        reuse=command,
        warnings=(*change.findings, *selection.findings),
    )


def _unfollowed(command: Command | None) -> list[Finding]:
    """Return that the labels do not allow what a comment asks."""
    if command is None:
        return []
    sentence = f"the labels ask for what no run may stand for, so {command.url} is not followed"
    return [Finding("reuse-refused", "warning", sentence, hint="remove the label or the comment")]


def _selected(head: Plan, selection: Selection) -> Plan:
    """Return the plan of what is selected; all else is deferred in its ledger."""
    more = evaluations_at(head, selection.everywhere)
    whole = evaluated(head, more)
    kept = selection.throughput | selection.evaluations | {point.point_id for point in more}
    why = Aside("deferred", "not-selected", "no added changelog entry selects it")
    return set_aside(whole, {p.point_id: why for p in whole.points if p.point_id not in kept})


def _swept(head: Plan, selection: Selection, asked: Settings, stored: Mapping[str, str]) -> Plan:
    chosen = _selected(head, selection)
    return reused(shortened(chosen, asked.fast) if asked.fast else chosen, stored)


def _sweep(
    event: PullRequestEvent,
    asked: Settings,
    selection: Selection,
    difference: PlanDiff,
    swept: Plan,
    warnings: Sequence[Finding],
) -> CiPlan:
    whole = _nothing(event, _empty(swept, selection), asked)
    told = (*warnings, *_idle(swept, asked))
    if not swept.points:
        return replace(whole, entries=selection.entries, plan=swept, warnings=told)
    first = canaries(swept.points, difference.new_types) if asked.canary else ()
    led, birds = led_by(swept, first)
    valid = _submission_valid(led)
    origin = Origin(
        repository=event.repository.full_name,
        pull_request=event.number,
        head_sha=event.pull_request.head.sha,
        submission_valid=valid,
    )
    return replace(
        whole,
        decision="sweep",
        reason=f"{asked.primary}: {len(led.points)} points in {len(led.jobs)} jobs",
        entries=selection.entries,
        canaries=birds,
        plan=replace(led, origin=origin),
        submission_valid=valid,
        reusable=asked.reusable,
        warnings=told,
    )


def _empty(swept: Plan, selection: Selection) -> str:
    if swept.counts.get("reused"):
        return f"all {swept.counts['reused']} points are measured already"
    if not selection.entries:
        return "no added changelog entry selects a point"
    return "nothing of what the changelog entries select is left to measure"


def _submission_valid(swept: Plan) -> bool:
    loads = (point.workload for point in swept.points)
    return all(load.submission_valid for load in loads if isinstance(load, Agentic))


def _idle(swept: Plan, asked: Settings) -> list[Finding]:
    """Return a warning for a label that changes nothing of what is selected."""
    found = []
    if asked.fast and not any(isinstance(p.workload, Agentic) for p in swept.points):
        found.append("no replay of recorded sessions is selected to be shortened")
    if asked.every_evaluation and not any(p.mode == "evaluation" for p in swept.points):
        found.append("no selected entry plans an evaluation to be made at every point")
    labels = ", ".join(asked.modifiers)
    return [Finding("label-idle", "warning", f"{labels}: {text}") for text in found]
