"""A difference of two plans in few lines: points that share a reason stand together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from infx.ci.diff import Changed, PlanDiff
from infx.domain.axes import kebab
from infx.domain.plan import Candidate, Plan
from infx.domain.point import Accuracy, Point

__all__ = ["Line", "What", "explained"]

What = Literal["appears", "vanishes", "changes"]

_VALUES = 4
"""Values of a field that a line names before it says that there are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What becomes of some points of an entry, and why."""

    what: What
    entry: str
    points: tuple[Point, ...]
    why: str


@dataclass(frozen=True, slots=True)
class _Reason:
    """Points with the same ``key`` share it; ``parts`` are names, each with a value that may be of
    one point alone; ``side`` begins the sentence: which side has it."""

    key: Hashable
    parts: tuple[tuple[str, str], ...]
    side: str = ""


def explained(found: PlanDiff, base: Plan, head: Plan, *, each: bool = False) -> tuple[Line, ...]:
    """Return the difference ``found`` between two plans, what appears first; ``each`` gives every
    point a line of its own.

    A point appears or vanishes with its entry, with its workload, with a value of an axis that no
    other side has, by a rule that leaves it out on the other side, or as a combination.
    """
    old, new = _Side(base), _Side(head)
    return (
        *_lines("appears", ((p, new.why(p, old, "new")) for p in found.appeared), each),
        *_lines("vanishes", ((p, old.why(p, new, "gone")) for p in found.vanished), each),
        *_lines("changes", ((pair.after, _fields(pair)) for pair in found.changed), each),
    )


def _lines(what: What, told: Iterable[tuple[Point, _Reason]], each: bool) -> list[Line]:
    groups: dict[Hashable, list[tuple[Point, _Reason]]] = {}
    for point, reason in told:
        key = point.point_id if each else (point.entry, reason.key)
        groups.setdefault(key, []).append((point, reason))
    return [
        Line(
            what=what,
            entry=group[0][0].entry,
            points=tuple(point for point, _ in group),
            why=_joined([reason for _, reason in group]),
        )
        for group in groups.values()
    ]


def _joined(reasons: Sequence[_Reason]) -> str:
    """Return the reason of several points, with the distinct values of each part."""
    texts: dict[str, dict[str, None]] = {}
    for reason in reasons:
        for name, value in reason.parts:
            texts.setdefault(name, {})[value] = None
    told = (f"{name} {_some(list(values))}".strip() for name, values in texts.items())
    side = f"{reasons[0].side}: " if reasons[0].side else ""
    return side + "; ".join(told)


def _some(values: Sequence[str]) -> str:
    more = f" and {len(values) - _VALUES} more" if len(values) > _VALUES else ""
    return ", ".join(values[:_VALUES]) + more


def _fields(pair: Changed) -> _Reason:
    parts = tuple((one.name, f"{one.before} → {one.after}") for one in pair.fields)
    return _Reason(tuple(name for name, _ in parts), parts)


class _Side:
    """One of two plans, as the reasons of the other's points are looked for in it."""

    def __init__(self, plan: Plan) -> None:
        self._entries: set[str] = set()
        self._rows: dict[str, Candidate] = {}
        self._alike: dict[Hashable, Candidate] = {}
        self._values: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for row in plan.ledger:
            self._add(row)
        self._loads = {(point.entry, _load(point)) for point in plan.points}

    def _add(self, row: Candidate) -> None:
        self._entries.add(row.entry)
        if row.disposition == "excluded":
            self._alike.setdefault((row.entry, _shown(row.values)), row)
            return
        self._rows.setdefault(row.point_id, row)
        for name, value in _shown(row.values):
            self._values[row.entry, name].add(value)

    def why(self, point: Point, other: _Side, side: Literal["new", "gone"]) -> _Reason:
        """Return why the other side lacks ``point``, which is new in this one, or gone from it."""
        if point.entry not in other._entries:
            return _Reason("entry", (("the entry", ""),), side)
        if (point.entry, load := _load(point)) not in other._loads:
            return _Reason(load, ((load, ""),), side)
        row = self._rows.get(point.point_id)
        shown = _shown(row.values) if row else ()
        if rule := other._alike.get((point.entry, shown)):
            return _left_out(rule, side)
        lone = [(n, v) for n, v in shown if v not in other._values[point.entry, n]]
        if lone:
            parts = tuple(_leading(lone, point))
            return _Reason(tuple(name for name, _ in parts), parts, side)
        together = " with ".join(f"{name} {value}" for name, value in shown)
        return _Reason("together", (("the combination of", together),), side)


def _leading(lone: Sequence[tuple[str, str]], point: Point) -> list[tuple[str, str]]:
    """Return the values without those that only follow a concurrency which is among them."""
    follows = {kebab(name) for name in point.expressions}
    return [
        pair for pair in lone if pair[0] not in follows or ("conc", str(point.conc)) not in lone
    ]


def _left_out(rule: Candidate, side: Literal["new", "gone"]) -> _Reason:
    place = f" ({rule.where})" if rule.where else ""
    told = f"{rule.sentence or rule.rule}{place}"
    who = "the base left it out" if side == "new" else "left out"
    return _Reason(("left out", told), ((told, ""),), who)


def _load(point: Point) -> str:
    load = point.workload
    if isinstance(load, Accuracy):
        return f"the evaluation {load.task}"
    return f"the workload {load.words}"


def _shown(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((kebab(name), _text(value)) for name, value in sorted(values.items()))


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
