"""Which point is compared with which, and in what the two servers differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, product
from pathlib import Path

from infx.domain.axes import AXES, kebab
from infx.domain.errors import UsageError
from infx.domain.identity import content_id
from infx.domain.point import SERVER_AXES, Point
from infx.domain.record import PointRecord
from infx.domain.status import Status

__all__ = ["Difference", "LeftOut", "Pair", "Pairing", "Seen", "pair_axis", "pair_runs"]

_WITH_K = ("acceptance", "method")
"""What follows from K: two points that differ in it differ in these by necessity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A planned point of a run and what became of it; ``folder`` is the run's."""

    run_id: str
    folder: Path
    point: Point
    status: Status
    record: PointRecord | None = None

    @property
    def fault(self) -> str:
        """Why it cannot be compared; empty when it can."""
        if self.status.state == "ok" and self.record:
            return ""
        return f"{self.status} {self.status.sentence}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which two servers differ."""

    name: str
    a: str
    b: str

    def __str__(self) -> str:
        return f"{self.name} {self.a} → {self.b}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two points that are asked the same. ``key`` is equal for the same pair of another run."""

    key: str
    a: Seen
    b: Seen
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A point that is not compared, and why."""

    run_id: str
    label: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """All pairs, in the order of the plan, and the points without a partner."""

    pairs: tuple[Pair, ...]
    left_out: tuple[LeftOut, ...] = ()


def pair_axis(seen: Sequence[Seen], axis: str) -> Pairing:
    """Pair the points of one run that agree in everything but the server axis ``axis`` (snake).

    The axis's default is A where it is among the values, else the value that comes first; a third
    value gives a second pair. Raises UsageError: ``axis-constant``, naming the axes that vary, or
    ``nothing-to-compare`` when no two points differ in the axis alone.
    """
    _check_varies(seen, axis)
    values = list(dict.fromkeys(getattr(one.point.arm.axes, axis) for one in seen))
    base = AXES[axis].default if AXES[axis].default in values else values[0]
    pairs, left_out = [], []
    for key, group in _grouped(seen, axis).items():
        first = group.pop(base, None)
        if first is None or not group:
            alone = [first] if first else list(group.values())
            left_out += [_alone(one, axis, base if first is None else None) for one in alone]
            continue
        pairs += [_pair(f"{key}{value}", first, one, axis) for value, one in group.items()]
    if not pairs:
        raise _nothing(f"no two points of {_run(seen)} differ in {kebab(axis)} alone", seen, axis)
    return Pairing(pairs=tuple(pairs), left_out=tuple(left_out))


def pair_runs(a: Sequence[Seen], b: Sequence[Seen]) -> Pairing:
    """Pair the points of two runs that are asked the same: model, workload and concurrency.

    Where a run has several, those whose servers differ least are paired, each once. Versions,
    image, hardware and whatever else differs is told. Raises UsageError ``nothing-to-compare``.
    """
    before, after = _by_asked(a), _by_asked(b)
    pairs = [pair for key in before for pair in _nearest(before[key], after.get(key, ()))]
    if not pairs:
        text = f"no point of {_run(a)} is asked what a point of {_run(b)} is"
        raise UsageError("nothing-to-compare", text, hint=_nearest_asked(a, b))
    taken = {id(side) for pair in pairs for side in (pair.a, pair.b)}
    left_out = [
        LeftOut(run_id=one.run_id, label=one.point.label, why=f"{_run(other)} has none to match")
        for side, other in ((a, b), (b, a))
        for one in side
        if id(one) not in taken
    ]
    return Pairing(pairs=tuple(pairs), left_out=tuple(left_out))


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


def _grouped(seen: Sequence[Seen], axis: str) -> dict[str, dict[object, Seen]]:
    """Return the points by all but the axis, then by its value."""
    dropped = {kebab(axis), *(_WITH_K if axis == "k" else ())}
    groups: dict[str, dict[object, Seen]] = {}
    for one in seen:
        rest = {name: text for name, text in _server(one.point).items() if name not in dropped}
        key = content_id([_asked(one), one.point.entry, rest])
        groups.setdefault(key, {})[getattr(one.point.arm.axes, axis)] = one
    return groups


def _pair(key: str, a: Seen, b: Seen, axis: str) -> Pair:
    values = [_text(getattr(side.point.arm.axes, axis)) for side in (a, b)]
    told = (Difference(name=kebab(axis), a=values[0], b=values[1]),)
    return Pair(key=key, a=a, b=b, differences=told)


def _alone(seen: Seen, axis: str, base: object | None) -> LeftOut:
    value = "another value" if base is None else _text(base)
    why = f"no point with {value} of {kebab(axis)} agrees with it in the rest"
    return LeftOut(run_id=seen.run_id, label=seen.point.label, why=why)


def _nearest(a: Sequence[Seen], b: Sequence[Seen]) -> list[Pair]:
    """Pair those that differ least first; of equal ones, those that stand first."""
    apart = [(_differences(one, other), one, other) for one, other in product(a, b)]
    pairs: list[Pair] = []
    for found, one, other in sorted(apart, key=lambda row: len(row[0])):
        if all(one is not pair.a and other is not pair.b for pair in pairs):
            pairs.append(Pair(key=one.point.point_id, a=one, b=other, differences=found))
    return sorted(pairs, key=lambda pair: next(n for n, one in enumerate(a) if one is pair.a))


def _differences(a: Seen, b: Seen) -> tuple[Difference, ...]:
    before, after = ({**_server(one.point), **_made(one.record)} for one in (a, b))
    return tuple(
        Difference(name=name, a=before.get(name, "-"), b=after.get(name, "-"))
        for name in dict.fromkeys([*before, *after])
        if before.get(name, "-") != after.get(name, "-")
    )


def _asked(seen: Seen) -> str:
    return content_id(_asked_parts(seen.point))


def _asked_parts(point: Point) -> dict[str, object]:
    """Return what a point is asked, by the names of the matrix."""
    asked = {kebab(f.name): getattr(point.workload, f.name) for f in fields(point.workload)}
    told_by_content = ("trace",) if asked.get("content") and "trace" in asked else ()
    for name in ("bars", "error-share", "source", "longest", *told_by_content):
        asked.pop(name, None)
    parts = {"mode": point.mode, "model": point.arm.model.name, "conc": point.conc}
    return {**parts, "queueing": point.queueing, **asked}


def _nearest_asked(a: Sequence[Seen], b: Sequence[Seen]) -> str:
    """Return in what the two points differ that are asked the nearest to the same."""
    apart = []
    for one, other in product(a, b):
        before, after = _asked_parts(one.point), _asked_parts(other.point)
        found = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        told = [f"{name} {_text(before.get(name))} → {_text(after.get(name))}" for name in found]
        apart.append(told)
    nearest = ", ".join(sorted(apart, key=len)[0]) if apart else "everything: one has no points"
    return f"all that is asked must be the same; the nearest two differ in {nearest}"


def _by_asked(seen: Iterable[Seen]) -> dict[str, list[Seen]]:
    groups: dict[str, list[Seen]] = {}
    for one in seen:
        groups.setdefault(_asked(one), []).append(one)
    return groups


def _server(point: Point) -> dict[str, str]:
    """Return what a server is, one text a name."""
    arm, model, law = point.arm, point.arm.model, point.arm.acceptance
    parts: Mapping[str, object] = {
        "framework": arm.framework,
        "image": arm.image_digest or arm.image,
        "weights": model.revision or model.weights,
        "precision": model.precision,
        "tokenizer": model.tokenizer,
        "hardware": arm.hardware,
        **{kebab(name): getattr(arm.axes, name) for name in SERVER_AXES},
        "method": arm.method,
        "acceptance": [law.mode, law.length, law.law, law.k, *law.curve],
        **{f"option {name}": value for name, value in arm.options.items()},
        **{f"env {name}": value for name, value in arm.env.items()},
        "aiperf": point.harness.aiperf,
        "lm-eval": point.harness.lm_eval,
    }
    return {name: _text(value) for name, value in parts.items()}


def _made(record: PointRecord | None) -> dict[str, str]:
    """Return what the record knows of its making that the plan does not."""
    if record is None:
        return {}
    made = record.provenance
    revision = f"{made.git_revision}{'+' if made.git_dirty else ''}"
    return {"revision": revision or "-", "host": str(made.host.get("name", "-"))}


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value)) or "none"
    return "-" if value is None else str(value)


def _run(seen: Sequence[Seen]) -> str:
    return seen[0].run_id if seen else "a run without points"


def _nothing(message: str, seen: Sequence[Seen], axis: str) -> UsageError:
    """Return the error with what else differs where the axis does, in the nearest two points."""
    apart = [
        [told.name for told in _differences(one, other) if told.name != kebab(axis)]
        for group in _by_asked(seen).values()
        for one, other in combinations(group, 2)
        if getattr(one.point.arm.axes, axis) != getattr(other.point.arm.axes, axis)
    ]
    nearest = sorted(apart, key=len)[:1]
    hint = "at one concurrency and workload it does not vary"
    for names in nearest:
        hint = f"where it varies, {', '.join(names)} does too"
    return UsageError("nothing-to-compare", message, hint=hint)
