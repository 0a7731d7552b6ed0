"""Whether a point that was measured again came out as before: its figures, one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from infx.analysis.answers import ScoreChange
from infx.analysis.changes import Change, Observed, Sides, compare, compare_figures
from infx.analysis.metrics import METRICS, NORTH_STAR, THROUGHPUT
from infx.analysis.repeats import interval_of, mean_of
from infx.analysis.servers import Difference, differences
from infx.analysis.statistics import Z95
from infx.domain.record import Provenance

__all__ = [
    "JUDGED",
    "MARGIN",
    "WIDE",
    "Again",
    "Figure",
    "Verdict",
    "figures_again",
    "judged",
    "made_otherwise",
    "overall",
    "recorded_figures",
    "scores_again",
]

Verdict = Literal["reproduced", "not-reproduced", "cannot-tell"]
Basis = Literal["runs", "requests", "answers"]
Interval = tuple[float, float]

MARGIN = 0.05
"""How far a figure may lie from the record's and still count as the same."""

WIDE = 4
"""Margins that an interval over runs may reach to either side. Of two runs alone Student's t makes
one of 12.7 standard errors: a figure that is off by half lies in it, and nothing is reproduced."""

JUDGED = (THROUGHPUT, NORTH_STAR, *(METRICS[name] for name in ("ttft_p90", "itl_p90", "e2el_p90")))
"""What is judged: what a frontier is drawn from, and the tails that it comes from."""

_NO_REQUESTS = "the requests of a side cannot be read any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The mean of a side's ``runs`` with its 95 % interval; None where there is but one."""

    value: float
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A figure as recorded (``old``) and as measured again (``new``).

    ``low`` … ``high`` is the 95 % interval of ``ratio`` (new over old): over ``runs`` where a side
    has several, else over the ``requests`` (an evaluation's ``answers``) of the two. None where
    there is none; ``why`` says what is missing.
    """

    key: str
    title: str
    old: Figure
    new: Figure
    ratio: float
    basis: Basis
    low: float | None
    high: float | None
    verdict: Verdict
    why: str = ""


def figures_again(sides: Sides, margin: float = MARGIN) -> tuple[Again, ...]:
    """Return the judged figures of a throughput point that both sides tell. Where each has one run
    and its requests are not there any more nobody can tell."""
    told = {metric.key: figures for metric in JUDGED if (figures := sides.figures(metric))}
    return tuple(
        _again(change, *told[change.metric], margin)
        for change in _changes(sides)
        if change.metric in told
    )


def recorded_figures(side: Sequence[Observed]) -> list[tuple[str, Figure]]:
    """Return the judged figures of one side with their titles."""
    sides = Sides(before=tuple(side), after=())
    told = [(metric.label, sides.figures(metric)) for metric in JUDGED]
    return [(title, _figure(values[0])) for title, values in told if values and values[0]]


def scores_again(changes: Sequence[ScoreChange], margin: float = MARGIN) -> tuple[Again, ...]:
    """Return the scores of an evaluation, by filter: the same questions, paired."""
    return tuple(_score(change, margin) for change in changes)


def judged(ratio: float, interval: Interval | None, margin: float, *, repeated: bool) -> Verdict:
    """Return the verdict on a figure of which ``ratio`` is new over old, ``interval`` its 95 %.

    With several runs on a side (``repeated``) the interval is what runs scatter by: a figure is
    reproduced within ``margin`` (0.05: 5 %) or where the interval holds 1, but one that is wider
    than `WIDE` margins holds anything, and nobody can tell. With one run a side the interval covers
    the requests of the two alone: where it is wider than ±margin and reaches into that, nobody can
    tell; a narrower one leaves the decision to the margin.
    """
    within = abs(ratio - 1) <= margin
    if within and repeated:
        return "reproduced"
    if interval is None:
        return "not-reproduced" if repeated else "cannot-tell"
    low, high = interval
    same = (1.0, 1.0) if repeated else (1 - margin, 1 + margin)
    reaches = low <= same[1] and high >= same[0]
    if reaches and (high - low) / 2 > (WIDE * margin if repeated else margin):
        return "cannot-tell"
    return "reproduced" if within or (repeated and reaches) else "not-reproduced"


def overall(figures: Sequence[Again]) -> Verdict:
    """Return the verdict on the point: that of its worst figure; ``cannot-tell`` without one."""
    verdicts = {figure.verdict for figure in figures}
    if "not-reproduced" in verdicts:
        return "not-reproduced"
    return "cannot-tell" if "cannot-tell" in verdicts or not verdicts else "reproduced"


def made_otherwise(old: Provenance, new: Provenance) -> tuple[Difference, ...]:
    """Return in what two measurements were made differently: versions, code and machine."""
    return differences(_made(old), _made(new))


def _changes(sides: Sides) -> Sequence[Change]:
    if sides.repeated or all(one.requests for one in (*sides.before, *sides.after)):
        return compare([sides])[0].changes
    told = {metric: sides.figures(metric) for metric in JUDGED}
    return [
        replace(compare_figures(metric, both[0][0], both[1][0]), why=_NO_REQUESTS)
        for metric, both in told.items()
        if both
    ]


def _again(change: Change, old: Sequence[float], new: Sequence[float], margin: float) -> Again:
    interval = _interval(change)
    repeated = len(old) > 1 or len(new) > 1
    return Again(
        key=change.metric,
        title=change.title,
        old=_figure(old),
        new=_figure(new),
        ratio=change.ratio,
        basis="runs" if repeated else "requests",
        low=change.low,
        high=change.high,
        verdict=judged(change.ratio, interval, margin, repeated=repeated),
        why=change.why,
    )


def _interval(change: Change) -> Interval | None:
    if change.low is None or change.high is None:
        return None
    return change.low, change.high


def _figure(values: Sequence[float]) -> Figure:
    low, high = interval_of(values) or (None, None)
    return Figure(value=mean_of(values), low=low, high=high, runs=len(values))


def _score(change: ScoreChange, margin: float) -> Again:
    """Judge a score; its interval is that of the paired difference of two shares."""
    told = change.verdict
    n, moved = told.questions, told.won - told.lost
    reach = Z95 * math.sqrt(max(0.0, told.won + told.lost - moved**2 / n)) / n
    ratio, interval = math.nan, None
    if told.before:
        ratio = told.after / told.before
        interval = (told.after - reach) / told.before, (told.after + reach) / told.before
    elif not told.after:
        ratio, interval = 1.0, (1.0, 1.0)
    low, high = interval or (None, None)
    return Again(
        key=change.filter,
        title=f"Score, {change.filter}",
        old=_figure([told.before]),
        new=_figure([told.after]),
        ratio=ratio,
        basis="answers",
        low=low,
        high=high,
        verdict=judged(ratio, interval, margin, repeated=False),
        why="" if interval else "a score of 0 has no ratio",
    )


_PASSING = frozenset({"load_average_1min", "slurm_nodes", "slurm_restarts"})
"""What of a machine's description is of the moment."""


def _made(of: Provenance) -> dict[str, str]:
    revision = f"{of.git_revision}{' with changes' if of.git_dirty else ''}"
    host = {name: value for name, value in of.host.items() if name not in _PASSING}
    return {
        "infx": of.infx_version or "-",
        "git revision": revision or "-",
        **of.packages,
        **{f"host {name}": _text(value) for name, value in host.items()},
    }


def _text(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
