"""What a report shows, as data: rendered to HTML, PNG and Markdown without another decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from infx.analysis.accuracy import FilterVerdict
from infx.analysis.pareto import View
from infx.domain.findings import Finding
from infx.domain.plan import Candidate
from infx.domain.point import Arm
from infx.domain.record import PointRecord, Score

__all__ = [
    "ArmDetails",
    "AxisRow",
    "Chart",
    "Exclusion",
    "Gate",
    "Level",
    "Mark",
    "PointRow",
    "ReportModel",
    "RunFacts",
    "ScoreRow",
    "Series",
]

Level = Literal["good", "note", "attention", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What only the caller knows. Times are seconds since the epoch, UTC; 0 when unknown."""

    run_id: str
    command: str = ""
    started_s: float = 0.0
    ended_s: float = 0.0
    infx_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One thing a reviewer asks first, its answer, and the cases that make it so."""

    name: str
    level: Level
    sentence: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line on the charts: one matrix entry at one workload, with mono or without. ``number``
    picks colour and shape, ``label`` says what tells it from the entry's other lines."""

    number: int
    label: str
    entry: str
    workload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """A throughput point. ``frontiers`` holds the keys of the views whose frontier it is on;
    ``runs`` how many valid measurements the point has."""

    anchor: str
    series: Series
    record: PointRecord
    frontiers: frozenset[str]
    runs: int

    @property
    def name(self) -> str:
        """The point's name without its entry, which stands once for the group."""
        point = self.record.point
        return point.name.removeprefix(f"{point.entry}-")

    @property
    def warnings(self) -> int:
        """How many warnings the point carries."""
        return sum(finding.level == "warning" for finding in self.record.findings)

    @property
    def plotted(self) -> bool:
        """True when there are figures to draw."""
        return self.record.measurement is not None

    @property
    def valid(self) -> bool:
        """True when the point may enter a frontier."""
        return self.record.status.state == "ok" and self.plotted


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point on a chart, in the units of its axes."""

    x: float
    y: float
    row: PointRow
    on_frontier: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One view: its marks, and for each series the frontier from left to right."""

    view: View
    marks: tuple[Mark, ...]
    frontiers: Mapping[int, tuple[Mark, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """An evaluation point with the verdict on each filter, none unless the point is ``ok``;
    ``score`` is None when it failed."""

    anchor: str
    record: PointRecord
    score: Score | None
    verdicts: tuple[FilterVerdict, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A rule that left candidates out: the ``code`` of a refusal ("" for a rule of the matrix),
    its text, and how many candidates it took."""

    code: str
    text: str
    candidates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisRow:
    """An axis as planned and as the running server reports it; ``differs`` when they contradict."""

    name: str
    planned: str
    running: str
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmDetails:
    """One server configuration and what was measured on it; what its points share stands once."""

    anchor: str
    title: str
    arm: Arm
    server_argv: str
    env: Mapping[str, str]
    axes: tuple[AxisRow, ...]
    server: Mapping[str, object]
    records: tuple[PointRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportModel:
    """The whole page, in reading order.

    ``environment`` are the facts that all records share; ``left_out`` the candidates of the plan
    that were not run, of which ``left_out_total`` were counted.
    """

    facts: RunFacts
    level: Level
    verdict: str
    gates: tuple[Gate, ...]
    series: tuple[Series, ...]
    charts: tuple[Chart, ...]
    rows: tuple[PointRow, ...]
    scores: tuple[ScoreRow, ...]
    counts: Mapping[str, int]
    candidates: int
    excluded_by: tuple[Exclusion, ...]
    left_out: tuple[Candidate, ...]
    left_out_total: int
    plan_findings: tuple[Finding, ...]
    arms: tuple[ArmDetails, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
