"""Two arms that differ in one thing: points paired, figures and scores compared, none dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from infx.analysis.answers import ScoreChange, compare_scores
from infx.analysis.changes import (
    Comparison,
    Observed,
    Sides,
    compare,
    observe,
    observe_requests,
)
from infx.analysis.curves import Line, line_of
from infx.analysis.intervals import RESAMPLES, SEED
from infx.analysis.line_changes import LineChange, line_change
from infx.analysis.pairing import LeftOut, Pair, Pairing, Seen, pair_axis, pair_runs
from infx.analysis.servers import Difference
from infx.domain.axes import kebab

__all__ = ["Compared", "ComparedPoint", "ComparedScore", "compare_axis", "compare_runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPoint:
    """A throughput point on both sides. ``runs`` are those that its ``comparison`` stands on."""

    a: str
    b: str
    entry: str
    conc: int
    workload: str
    runs: tuple[str, ...]
    differences: tuple[Difference, ...]
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedScore:
    """An evaluation on both sides, filter by filter."""

    a: str
    b: str
    entry: str
    task: str
    run: str
    differences: tuple[Difference, ...]
    changes: tuple[ScoreChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Everything that was compared, and every point that was not, with the reason.

    ``axis`` is empty where two runs were compared; ``points`` stand line by line, and ``lines``, in
    the same order, are the frontiers of those of each; ``resamples`` and ``seed`` are those of the
    intervals over requests, of the ``confidence`` that all intervals have.
    """

    axis: str
    runs: tuple[str, ...]
    points: tuple[ComparedPoint, ...]
    lines: tuple[LineChange, ...]
    scores: tuple[ComparedScore, ...]
    left_out: tuple[LeftOut, ...]
    resamples: int = RESAMPLES
    seed: int = SEED
    confidence: float = 0.95

    @property
    def differences(self) -> tuple[Difference, ...]:
        """In what the arms differ, over all pairs, each once."""
        told = [pair.differences for pair in self.points]
        told += [pair.differences for pair in self.scores]
        return tuple(dict.fromkeys(one for differences in told for one in differences))


def compare_axis(seen: Sequence[Seen], axis: str) -> Compared:
    """Return what the server axis ``axis`` changed in one run, or in several that repeat it.

    Errors: see `pairing.pair_axis`.
    """
    return _compared(kebab(axis), seen, pair_axis(seen, axis))


def compare_runs(a: Sequence[Seen], b: Sequence[Seen]) -> Compared:
    """Return what changed from run A to run B; each may be several that repeat it.

    Errors: see `pairing.pair_runs`.
    """
    return _compared("", (*a, *b), pair_runs(a, b))


def _compared(axis: str, seen: Sequence[Seen], pairing: Pairing) -> Compared:
    left_out = list(pairing.left_out)
    whole = [pair for each in pairing.pairs if (pair := _sound(each, left_out))]
    points = [pair for pair in whole if pair.a.point.mode == "throughput"]
    lines = [_line(members, left_out) for members in _by_line(points).values()]
    scores = list(_scores([p for p in whole if p.a.point.mode == "evaluation"], left_out))
    return Compared(
        axis=axis,
        runs=tuple(dict.fromkeys(one.run_id for one in seen)),
        points=tuple(point for told, _ in lines for point in told),
        lines=tuple(change for _, change in lines if change),
        scores=tuple(scores),
        left_out=tuple(left_out),
    )


# What may count


def _sound(pair: Pair, left_out: list[LeftOut]) -> Pair | None:
    """Return the pair with the repeats that may be compared, None where a side has none; the others
    are named, and with each its partner where they are paired."""
    if pair.paired:
        couples = list(zip(pair.before, pair.after, strict=True))
        left_out += [told for couple in couples for told in _faults(couple)]
        good = [couple for couple in couples if not any(side.fault for side in couple)]
        before, after = (tuple(couple[n] for couple in good) for n in (0, 1))
    else:
        sides = pair.before, pair.after
        before, after = (tuple(one for one in side if not one.fault) for side in sides)
        left_out += _faults_apart(sides, (before, after))
    return replace(pair, before=before, after=after) if before and after else None


def _faults(couple: tuple[Seen, Seen]) -> list[LeftOut]:
    """Name the side that cannot be compared, and the other one that it takes with it."""
    if not any(side.fault for side in couple):
        return []
    return [_without(side, side.fault or _orphan(side, other)) for side, other in _both(couple)]


def _faults_apart(
    sides: tuple[Sequence[Seen], Sequence[Seen]], good: tuple[Sequence[Seen], Sequence[Seen]]
) -> Iterable[LeftOut]:
    """Name the repeats that cannot be compared, and the other side where none of one can."""
    yield from (_without(one, one.fault) for side in sides for one in side if one.fault)
    for n, m in ((0, 1), (1, 0)):
        if not good[m]:
            yield from (_without(one, _orphan(one, sides[m][0])) for one in good[n])


def _both(couple: tuple[Seen, Seen]) -> tuple[tuple[Seen, Seen], tuple[Seen, Seen]]:
    return couple, couple[::-1]


def _without(seen: Seen, why: str) -> LeftOut:
    return LeftOut(run_id=seen.run_id, label=seen.label, why=why)


def _orphan(seen: Seen, other: Seen) -> str:
    """Say what became of the partner, which is named by its run where it has the same label."""
    same = seen.point.label == other.point.label
    return f"its partner {f'in {other.run_id}' if same else other.label} is {other.status}"


# Points, line by line


def _by_line(pairs: Sequence[Pair]) -> dict[tuple[Line, Line], list[Pair]]:
    lines: dict[tuple[Line, Line], list[Pair]] = {}
    for pair in pairs:
        lines.setdefault((line_of(pair.a.point), line_of(pair.b.point)), []).append(pair)
    return lines


def _line(
    pairs: Sequence[Pair], left_out: list[LeftOut]
) -> tuple[list[ComparedPoint], LineChange | None]:
    """Compare the points of one line: they share their noise and their frontier."""
    read = [(pair, sides) for pair in pairs if (sides := _sides(pair, left_out))]
    comparisons = compare([sides for _, sides in read])
    points = [_point(pair, told) for (pair, _), told in zip(read, comparisons, strict=True)]
    return points, line_change(read) if read else None


def _sides(pair: Pair, left_out: list[LeftOut]) -> Sides | None:
    """Read both sides: their requests too where there is one run a side."""
    look = observe_requests if len(pair.before) == len(pair.after) == 1 else observe
    found = [[look(one) for one in side] for side in (pair.before, pair.after)]
    faults = [told for side in found for told in side if isinstance(told, str)]
    if faults:
        label = f"{pair.a.label} and {pair.b.label}"
        left_out.append(LeftOut(run_id=pair.a.run_id, label=label, why=faults[0]))
        return None
    before, after = (tuple(o for o in side if isinstance(o, Observed)) for side in found)
    return Sides(before=before, after=after, paired=pair.paired)


def _point(pair: Pair, comparison: Comparison) -> ComparedPoint:
    point = pair.a.point
    return ComparedPoint(
        a=point.label,
        b=pair.b.point.label,
        entry=point.entry,
        conc=point.conc,
        workload=line_of(point).workload,
        runs=tuple(dict.fromkeys(one.run_id for one in (*pair.before, *pair.after))),
        differences=pair.differences,
        comparison=comparison,
    )


# Evaluations


def _scores(pairs: Sequence[Pair], left_out: list[LeftOut]) -> Iterable[ComparedScore]:
    for pair in pairs:
        more = *pair.before[len(pair.after) :], *pair.after[len(pair.before) :]
        left_out += [_without(one, "its partner was evaluated fewer times") for one in more]
        for a, b in zip(pair.before, pair.after, strict=False):
            couple = replace(pair, before=(a,), after=(b,))
            changes = compare_scores(couple)
            if isinstance(changes, str):
                label = f"{a.label} and {b.label}"
                left_out.append(LeftOut(run_id=a.run_id, label=label, why=changes))
            elif a.record and a.record.score:
                yield _score(couple, a.record.score.task, changes)


def _score(pair: Pair, task: str, changes: tuple[ScoreChange, ...]) -> ComparedScore:
    return ComparedScore(
        a=pair.a.label,
        b=pair.b.label,
        entry=pair.a.point.entry,
        task=task,
        run=pair.a.run_id,
        differences=pair.differences,
        changes=changes,
    )
