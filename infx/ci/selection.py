"""What added changelog entries select of a plan; nothing else selects anything."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from infx import frameworks
from infx.changelog.entry import Entry
from infx.changelog.rules import append_only_findings
from infx.ci.diff import PlanDiff, scenario_type
from infx.config.suggestions import did_you_mean
from infx.domain.findings import Finding
from infx.domain.identity import content_id
from infx.domain.plan import Plan
from infx.domain.point import Arm, Point

__all__ = ["Selection", "computation_id", "select"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Identities of what is measured: throughput points, the evaluations that were planned, and the
    throughput points whose very servers are evaluated (``everywhere``)."""

    throughput: frozenset[str] = frozenset()
    evaluations: frozenset[str] = frozenset()
    everywhere: frozenset[str] = frozenset()
    entries: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def computation_id(arm: Arm) -> str:
    """Return what decides an arm's answers: equal for arms that one evaluation stands for."""
    options = frameworks.get(arm.framework).options
    return content_id(arm.computation({name for name, o in options.items() if o.capacity}))


def select(base: Plan, head: Plan, change: PlanDiff, additions: Sequence[Entry]) -> Selection:
    """Return what ``additions`` select of ``head``; under append-only, of what ``base`` has not.

    Findings: ``key-unmatched`` (error) for a key that selects nothing, those of append-only
    (errors), ``change-unannounced`` (warning) for an entry that changed and that no key names,
    ``field-unused`` (warning) for a field of an addition that plans have no use for.
    """
    parts = [_part(head, change, addition) for addition in additions]
    findings = [finding for part in parts for finding in part.findings]
    for addition in additions:
        if addition.append_only:
            findings += append_only_findings(addition, base.points, head.points)
    findings += _unannounced(change, additions)
    return Selection(
        throughput=frozenset().union(*(part.throughput for part in parts)),
        evaluations=frozenset().union(*(part.evaluations for part in parts)),
        everywhere=frozenset().union(*(part.everywhere for part in parts)),
        entries=tuple(dict.fromkeys(name for part in parts for name in part.entries)),
        findings=tuple(findings),
    )


def _part(head: Plan, change: PlanDiff, addition: Entry) -> Selection:
    held = _held(head)
    ids = {key for name, some in held.items() if addition.selects(name) for key in some}
    named = [point for point in head.points if point.point_id in ids]
    timed = [point for point in named if _is_of(point, addition.scenario_types)]
    scored = _evaluations(named, timed)
    if addition.append_only:
        timed = [point for point in timed if point.point_id in change.new_ids]
        scored = [point for point in scored if point.point_id in change.new_ids]
    return Selection(
        throughput=_ids([] if addition.evals_only else timed),
        evaluations=_ids(scored),
        everywhere=_ids(timed if addition.all_evals else []),
        entries=tuple(name for name in held if addition.selects(name)) if timed or scored else (),
        findings=(*_unmatched(head, held, addition), *_unused(addition)),
    )


def _held(plan: Plan) -> dict[str, set[str]]:
    """Return the points of each entry by identity: a point that several entries ask for is planned
    for the first of them, and a duplicate of the others."""
    held: dict[str, set[str]] = {}
    for row in plan.ledger:
        if row.point_id:
            held.setdefault(row.entry, set()).add(row.point_id)
    return held


def _evaluations(named: Sequence[Point], timed: Sequence[Point]) -> list[Point]:
    """Return those of the planned evaluations that stand for a server of what is timed."""
    computed = {computation_id(point.arm) for point in timed}
    scored = (point for point in named if point.mode == "evaluation")
    return [point for point in scored if computation_id(point.arm) in computed]


def _is_of(point: Point, types: Collection[str]) -> bool:
    return point.mode == "throughput" and (not types or scenario_type(point) in types)


def _ids(points: Iterable[Point]) -> frozenset[str]:
    return frozenset(point.point_id for point in points)


def _unmatched(head: Plan, held: Mapping[str, set[str]], addition: Entry) -> list[Finding]:
    """Return an error for each key without an entry, or without a point of the named scenarios."""
    types = " and ".join(addition.scenario_types)
    fit = {p.point_id for p in head.points if not types or _is_of(p, addition.scenario_types)}
    timed = [name for name, ids in held.items() if ids & fit]
    entries = list(held)
    found = []
    for key in addition.keys:
        if key.named(timed):
            continue
        wanted = f"point of {types}" if key.named(entries) else "entry"
        sentence = f"`{key.text}` names no {wanted} in configs/"
        hint = did_you_mean(key.text, entries) if wanted == "entry" else "correct scenario-type"
        found.append(Finding("key-unmatched", "error", sentence, key.where, hint))
    return found


def _unused(addition: Entry) -> list[Finding]:
    if addition.eval_min_prefill_ep is None:
        return []
    sentence = "eval-min-prefill-ep leaves nothing out: plans have no prefill servers of their own"
    return [Finding("field-unused", "warning", sentence, addition.where)]


def _unannounced(change: PlanDiff, additions: Sequence[Entry]) -> list[Finding]:
    """Return a warning for each entry that changed and is not named, or not for the scenarios that
    changed."""
    types: dict[str, dict[str, None]] = {}
    for point in change.points:
        types.setdefault(point.entry, {})[scenario_type(point)] = None
    told = ((name, _left(name, some, additions)) for name, some in types.items())
    return [_warning(name, left) for name, left in told if left is not None]


def _left(name: str, types: Iterable[str], additions: Sequence[Entry]) -> list[str] | None:
    """Return the scenario types of an entry that changed and that no addition asks for (None: there
    are none left; an evaluation goes with any); empty where none names the entry at all."""
    named = [addition.scenario_types for addition in additions if addition.selects(name)]
    asked = {kind for some in named for kind in some}
    if not named:
        return []
    left = [kind for kind in types if kind and kind not in asked]
    return left if left and all(named) else None


def _warning(name: str, left: Sequence[str]) -> Finding:
    told = "changed and no added changelog entry names it: it is not measured"
    hint = "add an entry to perf-changelog.yaml: infx changelog add"
    if left:
        told = f"changed in {' and '.join(left)}, which no added changelog entry asks for"
        hint = "add it to the entry's scenario-type, or add another entry"
    return Finding("change-unannounced", "warning", f"{name} {told}", hint=hint)
