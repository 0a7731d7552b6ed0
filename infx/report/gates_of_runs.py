"""The gates about what stands beside each other: the baseline, several runs, several workloads."""

from __future__ import annotations

from collections.abc import Sequence

from infx.analysis.changes import Change
from infx.analysis.metrics import NORTH_STAR, THROUGHPUT
from infx.report.figures import count, image, moved_between, signed
from infx.report.model import Baseline, Gate, Level, PointRow, Series

__all__ = ["baseline", "images", "workloads"]

CASES = 20
"""Points that got worse or were lost are listed up to here, the worst first."""


def baseline(found: Baseline, rows: Sequence[PointRow]) -> Gate:
    """Return whether a point got worse in what decides, or was lost, since the baseline."""
    worse = sorted(_worse(rows), key=lambda pair: abs(pair[1].ratio - 1), reverse=True)
    names = ", ".join(facts.run_id for facts in found.runs)
    items = [f"{row.record.point.label}: {_changed(change)}" for row, change in worse]
    items += _worse_scores(found)
    items += [f"{label}: valid in the baseline, not any more" for label in found.broken]
    items += [f"{label}: only in the baseline" for label in found.dropped]
    lost = items or not (found.compared or found.scores)
    level: Level = "attention" if lost else "note" if _unsure(found) else "good"
    return Gate(
        name="Baseline",
        level=level,
        sentence=f"Against {names}, {found.headline}",
        items=(*items[:CASES], *found.sentences[1:]),
    )


def workloads(series: Sequence[Series]) -> list[Gate]:
    """Return, where the lines are asked different things, that they are never of one frontier."""
    told = tuple(dict.fromkeys(one.workload for one in series))
    if len(told) < 2:
        return []
    sentence = f"{count(len(told), 'workload')} on these charts: each is a line with a frontier of "
    sentence += "its own; figures of two workloads do not compare."
    return [Gate(name="Workloads", level="note", sentence=sentence, items=told)]


def images(rows: Sequence[PointRow]) -> list[Gate]:
    """Return, where a line holds points of several images, that its frontier is over all."""
    held: dict[str, dict[str, None]] = {}
    for row in rows:
        held.setdefault(row.series.label, {})[image(row.record.point.arm)] = None
    mixed = {label: tuple(names) for label, names in held.items() if len(names) > 1}
    if not mixed:
        return []
    sentence = f"{count(len(mixed), 'line')} with points of several images: one frontier over all."
    items = tuple(f"{label}: {', '.join(names)}" for label, names in mixed.items())
    return [Gate(name="Images", level="note", sentence=sentence, items=items)]


def _worse(rows: Sequence[PointRow]) -> list[tuple[PointRow, Change]]:
    pairs = ((row, row.baseline.get(m.key)) for row in rows for m in (THROUGHPUT, NORTH_STAR))
    return [(row, change) for row, change in pairs if change and change.verdict == "worse"]


def _worse_scores(found: Baseline) -> list[str]:
    return [
        f"{score.b}: {score.task} {change.filter} {change.verdict.sentence}"
        for score in found.scores
        for change in score.changes
        if change.verdict.change in ("worse", "perhaps-worse")
    ]


def _unsure(found: Baseline) -> bool:
    """True when nothing that decides was seen to be worse for want of data."""
    verdicts = [found.verdicts.get(metric.key, {}) for metric in (THROUGHPUT, NORTH_STAR)]
    return any(told.get("not-enough-data") for told in verdicts)


def _changed(change: Change) -> str:
    interval = moved_between(change.low, change.high)
    told = f"{change.title} {signed(change.ratio - 1)}"
    return f"{told} ({interval})" if interval else told
