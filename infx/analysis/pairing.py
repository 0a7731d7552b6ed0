"""Which point is compared with which, and in what the two servers differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from infx.analysis.servers import Difference, differences, made_of, server_of, text_of
from infx.domain.axes import AXES, kebab
from infx.domain.errors import UsageError
from infx.domain.identity import content_id
from infx.domain.partners import question_of, rest_of
from infx.domain.plan import marked
from infx.domain.point import SERVER_AXES, Point
from infx.domain.record import PointRecord
from infx.domain.status import Status

__all__ = ["LeftOut", "Pair", "Pairing", "Seen", "pair_axis", "pair_runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A planned point of a run and what became of it; ``folder`` is the run's.

    A run may measure a point several times: ``repeat`` counts them from 1, and repeats of one
    ``group`` were measured in turn with those of another arm ("" is no group).
    """

    run_id: str
    folder: Path
    point: Point
    status: Status
    record: PointRecord | None = None
    repeat: int = 1
    group: str = ""

    @property
    def fault(self) -> str:
        """Why it cannot be compared; empty when it can."""
        if self.status.state == "ok" and self.record:
            return ""
        return f"{self.status} {self.status.sentence}".rstrip()

    @property
    def label(self) -> str:
        """The point's label, with ``-r2`` where it is the second time that it is measured."""
        return marked(self.point.label, self.repeat)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two points that are asked the same, each with its repeats, the oldest first.

    Where they are ``paired`` both sides have as many, and each repeat was measured beside the one
    of the same place: in turn on one allocation, or as the only one in the same run.
    """

    before: tuple[Seen, ...]
    after: tuple[Seen, ...]
    differences: tuple[Difference, ...]
    paired: bool = False

    @property
    def a(self) -> Seen:
        """The first repeat before."""
        return self.before[0]

    @property
    def b(self) -> Seen:
        """The first repeat after."""
        return self.after[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A point that is not compared, and why; ``alone``: the other run asks nothing like it."""

    run_id: str
    label: str
    why: str
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """All pairs, in the order of the plan, and the points without a partner."""

    pairs: tuple[Pair, ...]
    left_out: tuple[LeftOut, ...] = ()


def pair_axis(seen: Sequence[Seen], axis: str) -> Pairing:
    """Pair the points that agree in everything but the server axis ``axis`` (snake), of one run or
    of several that repeat each other.

    The axis's default is A where it is among the values, else the value that comes first; a third
    value gives a second pair. Raises UsageError: ``axis-constant``, naming the axes that vary, or
    ``nothing-to-compare`` when no two points differ in the axis alone.
    """
    _check_varies(seen, axis)
    values = list(dict.fromkeys(getattr(one.point.arm.axes, axis) for one in seen))
    base = AXES[axis].default if AXES[axis].default in values else values[0]
    pairs, left_out = [], []
    for group in _grouped(seen, axis):
        first = group.pop(base, ())
        if not first or not group:
            alone = [first] if first else list(group.values())
            left_out += [_alone(side[0], axis, None if first else base) for side in alone]
            continue
        for value, side in group.items():
            told = Difference(name=kebab(axis), a=text_of(base), b=text_of(value))
            pair, without = _beside(first, side, told)
            pairs.append(pair)
            left_out += without
    if not pairs:
        raise _nothing(f"no two points of {_run(seen)} differ in {kebab(axis)} alone", seen, axis)
    return Pairing(pairs=tuple(pairs), left_out=tuple(left_out))


def pair_runs(a: Sequence[Seen], b: Sequence[Seen]) -> Pairing:
    """Pair the points of two runs (or of two sets of runs that repeat each other) that are asked
    the same: model, workload and concurrency.

    Where a side has several, those whose servers differ least are paired, each once. An entry that
    both have is compared with itself alone: what one lacks is no change of another. Versions,
    image, hardware and whatever else differs is told. Raises UsageError ``nothing-to-compare``.
    """
    both = {one.point.entry for one in a} & {one.point.entry for one in b}
    before, after = (_by_asked(side, both) for side in (a, b))
    pairs = [
        pair
        for key in before
        for pair in _nearest(_points(before[key]), _points(after.get(key, ())))
    ]
    if not pairs:
        text = f"no point of {_run(a)} is asked what a point of {_run(b)} is"
        raise UsageError("nothing-to-compare", text, hint=_nearest_asked(a, b))
    taken = {id(one) for pair in pairs for one in (*pair.before, *pair.after)}
    left_out = [
        LeftOut(
            run_id=repeats[0].run_id,
            label=repeats[0].point.label,
            why=f"{_run(other)} has none to match",
            alone=True,
        )
        for side, other in ((a, b), (b, a))
        for repeats in _points(side)
        if id(repeats[0]) not in taken
    ]
    return Pairing(pairs=tuple(pairs), left_out=tuple(left_out))


def _beside(
    first: Sequence[Seen], second: Sequence[Seen], told: Difference
) -> tuple[Pair, list[LeftOut]]:
    """Return two arms as a pair, repeat beside repeat where they were measured so; a repeat that
    was not measured on the other side is then left out."""
    places = [_places(side) for side in (first, second)]
    shared = [place for place in places[0] if place in places[1]]
    if not shared:
        return Pair(before=tuple(first), after=tuple(second), differences=(told,)), []
    before, after = (tuple(side[place] for place in shared) for side in places)
    left_out = [
        LeftOut(
            run_id=one.run_id, label=one.label, why=f"not measured beside the other {told.name}"
        )
        for side in places
        for place, one in side.items()
        if place not in shared
    ]
    return Pair(before=before, after=after, differences=(told,), paired=True), left_out


def _places(side: Sequence[Seen]) -> dict[tuple[str, str, int, str], Seen]:
    """Return repeats by where they were measured: their run with group, number and allocation, or
    their run where it measured them once. Nothing where one has no such place."""
    counts = Counter(one.run_id for one in side)
    if any(counts[one.run_id] > 1 and not one.group for one in side):
        return {}
    return {_place(one): one for one in side}


def _place(one: Seen) -> tuple[str, str, int, str]:
    """A part of a group that was tried again had an allocation of its own."""
    if not one.group:
        return one.run_id, "", 1, ""
    return one.run_id, one.group, one.repeat, one.record.attempt.batch if one.record else ""


def _check_varies(seen: Sequence[Seen], axis: str) -> None:
    varying = [name for name in SERVER_AXES if _varies(seen, name)]
    if axis in varying:
        return
    told = ", ".join(map(kebab, varying))
    hint = f"axes that do: {told}" if told else "no axis does: compare two runs, A and B"
    text = f"{kebab(axis)} does not vary among the servers of {_run(seen)}"
    raise UsageError("axis-constant", text, hint=hint)


def _varies(seen: Sequence[Seen], axis: str) -> bool:
    """Return True when an entry has two values: other entries are other models or engines."""
    pairs = {(one.point.entry, getattr(one.point.arm.axes, axis)) for one in seen}
    return len(pairs) > len({entry for entry, _ in pairs})


def _grouped(seen: Sequence[Seen], axis: str) -> list[dict[object, list[Seen]]]:
    """Return the points that agree in all but the axis, by its value, each with its repeats."""
    groups: dict[str, dict[object, list[Seen]]] = {}
    for one in seen:
        point = one.point
        key = content_id([_asked(one), point.entry, point.harness, rest_of(point.arm, axis)])
        groups.setdefault(key, {}).setdefault(getattr(one.point.arm.axes, axis), []).append(one)
    return list(groups.values())


def _alone(seen: Seen, axis: str, base: object | None) -> LeftOut:
    value = "another value" if base is None else text_of(base)
    why = f"no point with {value} of {kebab(axis)} agrees with it in the rest"
    return LeftOut(run_id=seen.run_id, label=seen.point.label, why=why)


def _points(seen: Sequence[Seen]) -> list[tuple[Seen, ...]]:
    """Return each point with its repeats."""
    points: dict[str, list[Seen]] = {}
    for one in seen:
        points.setdefault(one.point.point_id, []).append(one)
    return [tuple(repeats) for repeats in points.values()]


def _nearest(a: Sequence[tuple[Seen, ...]], b: Sequence[tuple[Seen, ...]]) -> list[Pair]:
    """Pair those that differ least first; of equal ones, those that stand first."""
    sides = [[(_described(repeats[0]), repeats) for repeats in side] for side in (a, b)]
    apart = sorted(product(*sides), key=lambda couple: _apart(couple[0][0], couple[1][0]))
    pairs: list[Pair] = []
    for (before, one), (after, other) in apart:
        if all(one is not pair.before and other is not pair.after for pair in pairs):
            pairs.append(Pair(before=one, after=other, differences=differences(before, after)))
    return sorted(pairs, key=lambda pair: next(n for n, one in enumerate(a) if one is pair.before))


def _apart(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Return in how many things two servers differ."""
    return len({name for name, _ in before.items() ^ after.items()})


def _described(seen: Seen) -> dict[str, str]:
    return server_of(seen.point) | made_of(seen.record)


def _asked(seen: Seen) -> str:
    return content_id(question_of(seen.point))


def _nearest_asked(a: Sequence[Seen], b: Sequence[Seen]) -> str:
    """Return in what the two points differ that are asked the nearest to the same."""
    apart = []
    for one, other in product(a, b):
        before, after = question_of(one.point), question_of(other.point)
        found = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        told = [
            f"{name} {text_of(before.get(name))} → {text_of(after.get(name))}" for name in found
        ]
        apart.append(told)
    nearest = ", ".join(sorted(apart, key=len)[0]) if apart else "everything: one has no points"
    return f"all that is asked must be the same; the nearest two differ in {nearest}"


def _by_asked(
    seen: Iterable[Seen], apart: Collection[str] = ()
) -> dict[tuple[str, str], list[Seen]]:
    """Return points that are asked the same, those of an entry among ``apart`` by themselves."""
    groups: dict[tuple[str, str], list[Seen]] = {}
    for one in seen:
        entry = one.point.entry if one.point.entry in apart else ""
        groups.setdefault((_asked(one), entry), []).append(one)
    return groups


def _run(seen: Sequence[Seen]) -> str:
    return seen[0].run_id if seen else "a run without points"


def _nothing(message: str, seen: Sequence[Seen], axis: str) -> UsageError:
    """Return the error with what else differs where the axis does, in the nearest two points."""
    apart = [
        [
            told.name
            for told in differences(_described(one), _described(other))
            if told.name != kebab(axis)
        ]
        for group in _by_asked(seen).values()
        for one, other in combinations(group, 2)
        if getattr(one.point.arm.axes, axis) != getattr(other.point.arm.axes, axis)
    ]
    nearest = sorted(apart, key=len)[:1]
    hint = "at one concurrency and workload it does not vary"
    for names in nearest:
        hint = f"where it varies, {', '.join(names)} does too"
    return UsageError("nothing-to-compare", message, hint=hint)
