"""Two arms that differ in one thing: points paired, figures and scores compared, none dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from infx.analysis.answers import ScoreChange, compare_scores
from infx.analysis.changes import Change, Comparison, Observed, compare, observe
from infx.analysis.curves import line_of
from infx.analysis.intervals import RESAMPLES, SEED
from infx.analysis.pairing import Difference, LeftOut, Pair, Pairing, Seen, pair_axis, pair_runs
from infx.domain.axes import kebab

__all__ = ["Change", "Compared", "ComparedPoint", "ComparedScore", "compare_axis", "compare_runs"]


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

    ``axis`` is empty where two runs were compared; ``resamples`` and ``seed`` are those of the
    intervals over requests, of the ``confidence`` that all intervals have.
    """

    axis: str
    runs: tuple[str, ...]
    points: tuple[ComparedPoint, ...]
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


def compare_axis(runs: Sequence[Sequence[Seen]], axis: str) -> Compared:
    """Return what the server axis ``axis`` changed; further runs are repeats of the first.

    Errors: see `pairing.pair_axis`.
    """
    return _compared(kebab(axis), runs, [pair_axis(seen, axis) for seen in runs])


def compare_runs(a: Sequence[Seen], b: Sequence[Seen]) -> Compared:
    """Return what changed from run A to run B. Errors: see `pairing.pair_runs`."""
    return _compared("", (a, b), [pair_runs(a, b)])


def _compared(axis: str, runs: Sequence[Sequence[Seen]], pairings: Sequence[Pairing]) -> Compared:
    left_out = [one for pairing in pairings for one in pairing.left_out]
    pairs = [pair for pairing in pairings for pair in pairing.pairs]
    left_out += [one for pair in pairs for one in _faults(pair)]
    whole = [pair for pair in pairs if not (pair.a.fault or pair.b.fault)]
    points = list(_points([p for p in whole if p.a.point.mode == "throughput"], left_out))
    scores = list(_scores([p for p in whole if p.a.point.mode == "evaluation"], left_out))
    return Compared(
        axis=axis,
        runs=tuple(seen[0].run_id for seen in runs),
        points=tuple(points),
        scores=tuple(scores),
        left_out=tuple(left_out),
    )


def _faults(pair: Pair) -> list[LeftOut]:
    """Name the side that cannot be compared, and the other one that it takes with it."""
    sides = (pair.a, pair.b)
    if not any(side.fault for side in sides):
        return []
    return [
        LeftOut(
            run_id=side.run_id,
            label=side.point.label,
            why=side.fault or f"its partner {_named(other, side)} is {other.status}",
        )
        for side, other in (sides, sides[::-1])
    ]


def _named(seen: Seen, other: Seen) -> str:
    """Name a point beside ``other``: by its label, or by its run where that is the same."""
    same = seen.point.label == other.point.label
    return f"in {seen.run_id}" if same else seen.point.label


def _points(pairs: Sequence[Pair], left_out: list[LeftOut]) -> Iterable[ComparedPoint]:
    groups: dict[str, list[tuple[Pair, tuple[Observed, Observed]]]] = {}
    for pair in pairs:
        observed = observe(pair)
        if isinstance(observed, str):
            left_out.append(_unread(pair, observed))
        else:
            groups.setdefault(pair.key, []).append((pair, observed))
    for group in groups.values():
        first = group[0][0]
        yield ComparedPoint(
            a=first.a.point.label,
            b=first.b.point.label,
            entry=first.a.point.entry,
            conc=first.a.point.conc,
            workload=line_of(first.a.point).workload,
            runs=tuple(pair.a.run_id for pair, _ in group),
            differences=first.differences,
            comparison=compare([observed for _, observed in group]),
        )


def _scores(pairs: Sequence[Pair], left_out: list[LeftOut]) -> Iterable[ComparedScore]:
    for pair in pairs:
        changes = compare_scores(pair)
        if isinstance(changes, str):
            left_out.append(_unread(pair, changes))
            continue
        assert pair.a.record
        assert pair.a.record.score
        yield ComparedScore(
            a=pair.a.point.label,
            b=pair.b.point.label,
            entry=pair.a.point.entry,
            task=pair.a.record.score.task,
            run=pair.a.run_id,
            differences=pair.differences,
            changes=changes,
        )


def _unread(pair: Pair, why: str) -> LeftOut:
    label = f"{pair.a.point.label} and {pair.b.point.label}"
    return LeftOut(run_id=pair.a.run_id, label=label, why=why)
