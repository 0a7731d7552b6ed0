"""From an event and a change to what CI does: a pure function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from infx.changelog.entry import Entry
from infx.ci.canary import canaries, led_by
from infx.ci.decision import Change, CiPlan, submission_valid
from infx.ci.diff import PlanDiff, compare
from infx.ci.events import Comment, PullRequestEvent
from infx.ci.labels import LabelRules, Settings, settings
from infx.ci.modifiers import evaluated, evaluations_at, shortened
from infx.ci.publish import published
from infx.ci.reuse import Command, asked_for, chosen, command_in, reused
from infx.ci.revised import Aside, set_aside
from infx.ci.selection import Selection, select
from infx.ci.stored import Stored, measured_by, standing
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding
from infx.domain.plan import Origin, Plan
from infx.domain.point import Agentic
from infx.report.figures import count

__all__ = ["plan", "settled"]


def settled(event: PullRequestEvent, rules: LabelRules) -> CiPlan | None:
    """Return what is decided whatever the pull request changes; None where that must be known."""
    if event.merges:
        reason = _merged_elsewhere(event)
    elif event.pull_request.state == "closed":
        reason = f"pull request {event.number} is closed"
    elif event.comment:
        reason = _unheard(event, event.comment, rules)
    elif event.is_of_fork:
        reason = "its head is not a branch of this repository: a maintainer pushes it to one"
    else:
        return None
    return _nothing(event, reason) if reason else None


def plan(
    event: PullRequestEvent,
    change: Change,
    rules: LabelRules,
    *,
    comments: Sequence[Comment] = (),
    stored: Sequence[Stored] | None = None,
) -> CiPlan:
    """Return what is done for the event. ``stored`` are the runs that may be reused or published;
    where they are not known (None), nobody checks whether a run may be reused that is asked for.

    Raises ConfigError for labels that contradict each other and for changelog additions that
    select nothing, with every fault; UsageError ``unknown-run`` for a comment that names a run that
    is not stored.
    """
    if early := settled(event, rules):
        return early
    asked = None if event.merges else settings(event.labels, rules)
    difference = compare(change.base, change.head)
    additions = _modified(change.additions, asked) if asked else change.additions
    selection = select(change.base, change.head, difference, additions)
    told = (*change.findings, *(f for f in selection.findings if f.level == "warning"))
    found = replace(_nothing(event, "", change, asked), warnings=told)
    if not event.merges and (reason := _not_now(event, asked)):
        return replace(found, reason=reason)
    _check(selection)
    command = _command(event, comments, rules)
    selected = _selected(change.head, selection)
    known = replace(found, entries=selection.entries, plan=selected)
    if event.merges or not asked:
        return published(known, change.head, event, stored or (), command)
    known = replace(known, warnings=(*told, *_idle(selected, asked, rules)))
    return _open(known, event, asked, command, stored, difference)


def _command(
    event: PullRequestEvent, comments: Sequence[Comment], rules: LabelRules
) -> Command | None:
    """Return what the latest comment asks, that of the event among them."""
    own = [event.comment] if event.comment else []
    said = {comment.id: comment for comment in (*own, *comments)}
    return asked_for(said.values(), rules.associations)


def _merged_elsewhere(event: PullRequestEvent) -> str:
    branch, into = event.repository.default_branch, event.pull_request.base.ref
    if branch in ("", into):
        return ""
    return f"it was merged into {into}: what is on {branch} is published"


def _unheard(event: PullRequestEvent, comment: Comment, rules: LabelRules) -> str:
    """Return why a comment asks for nothing, or ``""``."""
    if event.is_of_issue:
        return f"{event.number} is an issue, not a pull request"
    if event.action == "deleted":
        return "a comment was deleted"
    if command_in(comment.body) is None:
        return "the comment holds no /reuse-sweep-run alone on a line"
    if comment.author_association not in rules.associations:
        may = ", ".join(rules.associations)
        return f"{_author(comment)} ({comment.author_association}) may not reuse a run: {may} may"
    return ""


def _author(comment: Comment) -> str:
    return comment.user.login if comment.user else "its author"


def _not_now(event: PullRequestEvent, asked: Settings | None) -> str:
    """Return why nothing is run whatever changed, or ``""``."""
    if asked is None:
        return "no label asks for a sweep"
    return "a draft is not swept: mark it ready for review" if event.pull_request.draft else ""


def _nothing(
    event: PullRequestEvent,
    reason: str,
    change: Change | None = None,
    asked: Settings | None = None,
) -> CiPlan:
    return CiPlan(
        decision="nothing",
        reason=reason,
        pull_request=event.number,
        head_sha=(change.head_sha if change else "") or event.pull_request.head.sha,
        settings=asked,
        reusable=asked is None or asked.reusable,
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


def _selected(head: Plan, selection: Selection) -> Plan:
    """Return the plan of what is selected; all else is deferred in its ledger."""
    more = evaluations_at(head, selection.everywhere)
    whole = evaluated(head, more)
    kept = selection.throughput | selection.evaluations | {point.point_id for point in more}
    why = Aside("deferred", "not-selected", "no added changelog entry selects it")
    return set_aside(whole, {p.point_id: why for p in whole.points if p.point_id not in kept})


def _open(
    known: CiPlan,
    event: PullRequestEvent,
    asked: Settings,
    command: Command | None,
    stored: Sequence[Stored] | None,
    difference: PlanDiff,
) -> CiPlan:
    """Return what is done for a pull request that is not merged, of which all selected is known."""
    assert known.plan
    wanted = shortened(known.plan, asked.fast) if asked.fast else known.plan
    valid = submission_valid(wanted.points)
    found = replace(known, plan=wanted, submission_valid=valid)
    if not wanted.points:
        return replace(found, reason=_empty(known))
    if command and not asked.reusable:
        found = replace(found, warnings=(*found.warnings, _unfollowed(command)))
    elif command:
        return _as_asked(found, command, stored, event.repository.full_name)
    if event.comment:
        return replace(found, reason="the labels ask for what no run may stand for")
    return _swept(found, event, asked, stored or (), difference)


def _as_asked(
    found: CiPlan, command: Command, stored: Sequence[Stored] | None, repository: str
) -> CiPlan:
    which = f"run {command.run}" if command.run else "the newest run that fits"
    reason = f"{command.author} ({command.association}) asks to reuse {which}"
    asked = replace(found, decision="reuse", reason=reason, reuse=command)
    if stored is None or not found.plan:
        return asked
    points, valid = found.plan.points, found.submission_valid
    run, faults = chosen(points, command.run, stored, repository, valid=valid)
    if run is None:
        return replace(asked, faults=faults)
    return replace(asked, plan=reused(found.plan, measured_by((run,))), runs=(run.run_id,))


def _unfollowed(command: Command) -> Finding:
    """Return that the labels do not allow what a comment asks."""
    sentence = f"the labels ask for what no run may stand for, so {command.url} is not followed"
    return Finding("reuse-refused", "warning", sentence, hint="remove the label or the comment")


def _swept(
    found: CiPlan,
    event: PullRequestEvent,
    asked: Settings,
    stored: Sequence[Stored],
    difference: PlanDiff,
) -> CiPlan:
    """Return the sweep of what no run has measured; its runs stand for the rest."""
    assert found.plan
    runs = standing(stored, event.repository.full_name, valid=found.submission_valid)
    left = reused(found.plan, measured_by(runs))
    used = tuple(dict.fromkeys(one.run_id for one in left.reused))
    if not left.points:
        reason = f"all {len(left.reused)} points are measured already, in {_and(used)}"
        return replace(found, decision="reuse", reason=reason, plan=left, runs=used)
    first = canaries(left.points, difference.new_scenarios) if asked.canary else ()
    led, birds = led_by(left, first)
    jobs, more = count(len(led.jobs), "job"), f", {len(left.reused)} reused" if used else ""
    return replace(
        found,
        decision="sweep",
        reason=f"{asked.primary}: {count(len(led.points), 'point')} in {jobs}{more}",
        canaries=birds,
        plan=replace(led, origin=_origin(found, event)),
        runs=used,
        warnings=(*found.warnings, *_apart(led)),
    )


def _apart(swept: Plan) -> list[Finding]:
    """Return a warning where jobs are for several clusters, as `infx sweep` refuses the plan."""
    clusters = list(dict.fromkeys(job.cluster for job in swept.jobs))
    if len(clusters) < 2:
        return []
    told = f"what is selected is for {_and(clusters)}: no run measures several clusters"
    hint = "announce the entries of each cluster in a pull request of their own"
    return [Finding("many-clusters", "warning", told, hint=hint)]


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)


def _origin(found: CiPlan, event: PullRequestEvent) -> Origin:
    return Origin(
        repository=event.repository.full_name,
        pull_request=event.number,
        head_sha=found.head_sha,
        submission_valid=found.submission_valid,
        reusable=found.reusable,
    )


def _empty(found: CiPlan) -> str:
    if not found.entries:
        return "no added changelog entry selects a point"
    return "nothing of what the changelog entries select is there to measure"


def _idle(selected: Plan, asked: Settings, rules: LabelRules) -> list[Finding]:
    """Return a warning for each label that changes nothing of what is selected."""
    agentic = any(isinstance(point.workload, Agentic) for point in selected.points)
    scored = any(point.mode == "evaluation" for point in selected.points)
    found = []
    for name in asked.modifiers:
        modifier = rules.modifiers[name]
        if modifier.agentic and not agentic:
            told = f"{name}: no replay of recorded sessions is selected to be shortened"
            found.append(Finding("label-idle", "warning", told))
        if modifier.evaluations == "every" and not scored:
            told = f"{name}: no selected entry plans an evaluation to be made at every point"
            found.append(Finding("label-idle", "warning", told))
    return found
