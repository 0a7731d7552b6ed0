"""Two plans compared: points that appear, vanish or change their identity, and which field did."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from infx.changelog.entry import SCENARIO_TYPES
from infx.domain.axes import kebab
from infx.domain.identity import content_id
from infx.domain.plan import Plan
from infx.domain.point import Agentic, FixedLengths, Point
from infx.domain.serial import to_plain
from infx.plan.resolve import workload_identity

__all__ = [
    "Changed",
    "Field",
    "PlanDiff",
    "compare",
    "compare_points",
    "differing",
    "fields_of",
    "identity",
    "scenario",
    "scenario_type",
]

_ABSENT = "-"

_NAMES = {
    "model": ("name", "precision", "weights", "tokenizer"),
    "acceptance": ("mode", "length", "law", "k"),
    "method": ("method", "draft"),
}
"""What the places of a list in an arm's identity mean; more places are a curve's."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of two identities; a value is ``-`` where the identity does not say it."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name} {self.before} → {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A point that is asked the same of an entry as before, with another identity."""

    before: Point
    after: Point

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in which the two differ, computed anew each time."""
        return differing(self.before, self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDiff:
    """Each point of the base is in ``vanished``, ``changed`` or ``same``; each point of the head in
    ``appeared``, ``changed`` or ``same``."""

    appeared: tuple[Point, ...] = ()
    vanished: tuple[Point, ...] = ()
    changed: tuple[Changed, ...] = ()
    same: tuple[Point, ...] = field(default_factory=tuple)

    @property
    def new_ids(self) -> frozenset[str]:
        """Identities that the head has and the base has not."""
        after = (change.after for change in self.changed)
        return frozenset(point.point_id for point in (*self.appeared, *after))

    @property
    def new_scenarios(self) -> frozenset[tuple[str, str]]:
        """The pairs of an entry and its `scenario` that have a new identity."""
        after = (change.after for change in self.changed)
        return frozenset((point.entry, scenario(point)) for point in (*self.appeared, *after))

    @property
    def gone(self) -> tuple[Point, ...]:
        """Points of the base whose identity the head has not."""
        return (*self.vanished, *(change.before for change in self.changed))

    @property
    def points(self) -> tuple[Point, ...]:
        """All points that are not the same, those of the head first."""
        return (*self.appeared, *(change.after for change in self.changed), *self.gone)


def scenario_type(point: Point) -> str:
    """Return the public name of a throughput point's scenario; ``""`` of an evaluation."""
    return SCENARIO_TYPES.get(type(point.workload), "")


def scenario(point: Point) -> str:
    """Return the lengths or the data set of a throughput point, however long it is measured; ``""``
    of an evaluation."""
    load = point.workload
    if isinstance(load, Agentic):
        return load.trace
    return load.words if isinstance(load, FixedLengths) else ""


def identity(point: Point) -> dict[str, Any]:
    """Return the content that ``point.point_id`` is the sha256 of (a test holds it to that)."""
    return {
        "mode": point.mode,
        "conc": point.conc,
        "arm": point.arm.identity(),
        "workload": workload_identity(point.workload),
        "harness": point.harness,
    }


def fields_of(point: Point) -> dict[str, str]:
    """Return the identity as flat names (``image``, ``axes.max-num-seqs``, ``workload.isl``) with
    their values as text."""
    content = to_plain(identity(point))
    arm = content.pop("arm")
    return dict(_flat("", {**content, **arm}))


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        path = prefix + kebab(name)
        if isinstance(value, dict):
            yield from _flat(f"{path}.", value)
        elif isinstance(value, list) and name in _NAMES:
            yield from _listed(path, value, _NAMES[name])
        else:
            yield path, _text(value)


def _listed(path: str, values: list[Any], names: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    for number, value in enumerate(values):
        name = names[number] if number < len(names) else f"curve-{number - len(names) + 1}"
        yield (name if name == path else f"{path}.{name}"), _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return _ABSENT if value in (None, "") else str(value)


def differing(before: Point, after: Point) -> tuple[Field, ...]:
    """Return the fields in which two identities differ; empty where they are equal."""
    old, new = fields_of(before), fields_of(after)
    names = dict.fromkeys([*old, *new])
    pairs = ((name, old.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names)
    return tuple(Field(*pair) for pair in pairs if pair[1] != pair[2])


def compare(base: Plan, head: Plan) -> PlanDiff:
    """Return what becomes of each point of ``base`` in ``head``: see `compare_points`."""
    return compare_points(base.points, head.points)


def compare_points(base: Iterable[Point], head: Iterable[Point]) -> PlanDiff:
    """Return what becomes of each point of ``base`` in ``head``.

    A point has changed when the other side has one that its entry asks in the same way: first of
    those with the same name, then with the same workload and axes, then with the same workload and
    computation, then with the same kind of workload and computation. Where two would fit, neither
    is taken: one vanished and others appeared.
    """
    old = {point.point_id: point for point in base}
    new = {point.point_id: point for point in head}
    left = [point for key, point in old.items() if key not in new]
    more = [point for key, point in new.items() if key not in old]
    changed: list[Changed] = []
    for asked in (_by_name, _by_axes, _by_load, _by_kind):
        pairs = _pairs(left, more, asked)
        changed += [Changed(before=a, after=b) for a, b in pairs]
        taken = {point.point_id for pair in pairs for point in pair}
        left = [point for point in left if point.point_id not in taken]
        more = [point for point in more if point.point_id not in taken]
    return PlanDiff(
        appeared=tuple(more),
        vanished=tuple(left),
        changed=tuple(changed),
        same=tuple(point for key, point in new.items() if key in old),
    )


def _pairs(
    left: list[Point], right: list[Point], asked: Callable[[Point], Hashable]
) -> list[tuple[Point, Point]]:
    ours, theirs = _grouped(left, asked), _grouped(right, asked)
    both = [(ours[key], theirs[key]) for key in ours if key in theirs]
    return [(a[0], b[0]) for a, b in both if len(a) == len(b) == 1]


def _grouped(
    points: list[Point], asked: Callable[[Point], Hashable]
) -> dict[Hashable, list[Point]]:
    groups: dict[Hashable, list[Point]] = {}
    for point in points:
        groups.setdefault(asked(point), []).append(point)
    return groups


def _by_name(point: Point) -> Hashable:
    return (point.entry, point.mode, point.name, point.workload.kind)


def _by_axes(point: Point) -> Hashable:
    return (*_asked(point), _load(point), point.arm.axes)


def _by_load(point: Point) -> Hashable:
    return (*_asked(point), _load(point), _computed(point))


def _by_kind(point: Point) -> Hashable:
    return (*_asked(point), point.workload.kind, _computed(point))


def _asked(point: Point) -> tuple[Hashable, ...]:
    return point.entry, point.mode, point.conc, point.queueing


def _load(point: Point) -> str:
    return content_id(workload_identity(point.workload))


def _computed(point: Point) -> str:
    return content_id(point.arm.computation()["axes"])
