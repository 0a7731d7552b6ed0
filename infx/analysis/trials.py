"""Runs that aiperf repeated by itself (``--num-profile-runs``), told as one measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from infx.analysis.export import RUN_NAME
from infx.analysis.metrics import COMPARED, Metric, Priced
from infx.analysis.repeats import interval_of, mean_of
from infx.analysis.validity import Verdict
from infx.domain.record import Measurement

__all__ = ["TrialFigure", "Trials", "trials_of"]

_RUNS = "profile_runs"
"""The folder under which aiperf lays its repeats, above or below a sweep's cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFigure:
    """The mean of a figure over runs, and its 95 % interval; None with one run."""

    metric: str
    title: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """A measurement that aiperf repeated in ``folder``: the ``figures`` of its valid ``runs``;
    ``invalid`` counts the others."""

    folder: str
    runs: int
    invalid: int
    figures: tuple[TrialFigure, ...]


def trials_of(judged: Sequence[tuple[Path, Verdict]]) -> list[Trials]:
    """Return what was repeated among ``judged`` folders, in their order."""
    groups: dict[Path, list[Verdict]] = {}
    for folder, verdict in judged:
        if (whole := _whole(folder)) != folder:
            groups.setdefault(whole, []).append(verdict)
    return [_trials(folder, verdicts) for folder, verdicts in groups.items()]


def _whole(folder: Path) -> Path:
    """Return the path without ``profile_runs/run_0001``: what the folder is one run of."""
    for at, (above, name) in enumerate(pairwise(folder.parts)):
        if above == _RUNS and RUN_NAME.fullmatch(name):
            return Path(*folder.parts[:at], *folder.parts[at + 2 :])
    return folder


def _trials(folder: Path, verdicts: Sequence[Verdict]) -> Trials:
    valid = [one.measurement for one in verdicts if one.status.state == "ok" and one.measurement]
    figures = (_figure(metric, valid) for metric in COMPARED) if valid else ()
    return Trials(
        folder=str(folder),
        runs=len(valid),
        invalid=len(verdicts) - len(valid),
        figures=tuple(figure for figure in figures if figure),
    )


def _figure(metric: Metric, runs: Sequence[Measurement]) -> TrialFigure | None:
    told = [value for run in runs if (value := metric.of(Priced(measurement=run))) is not None]
    if len(told) < len(runs):
        return None
    low, high = interval_of(told) or (None, None)
    return TrialFigure(
        metric=metric.key, title=metric.label, value=mean_of(told), low=low, high=high
    )
