"""What a report shows, as data: rendered to HTML, PNG and Markdown without another decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from infx.analysis.accuracy import FilterVerdict
from infx.analysis.changes import Change
from infx.analysis.compare import ComparedScore
from infx.analysis.metrics import NORTH_STAR, THROUGHPUT, Metric
from infx.analysis.noise import Coverage
from infx.analysis.pairing import LeftOut
from infx.domain.findings import Finding
from infx.domain.hardware import Price
from infx.domain.plan import Candidate, Plan
from infx.domain.point import Arm
from infx.domain.record import PointRecord, Score

__all__ = [
    "DECIDING",
    "ArmDetails",
    "AxisRow",
    "Band",
    "Baseline",
    "Chart",
    "Exclusion",
    "Filter",
    "Gate",
    "Level",
    "LineChange",
    "Mark",
    "Pair",
    "PointRow",
    "ReportModel",
    "RunData",
    "RunFacts",
    "ScoreRow",
    "Series",
    "Shown",
]

Level = Literal["good", "note", "attention", "bad"]

Pair = tuple[str, str]
"""The keys of a chart's metrics: across, up."""

DECIDING: Pair = (NORTH_STAR.key, THROUGHPUT.key)
"""The chart whose frontier decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What only the caller knows. Times are seconds since the epoch, UTC; 0 when unknown."""

    run_id: str
    command: str = ""
    started_s: float = 0.0
    ended_s: float = 0.0
    infx_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """A run to report: what only the caller knows of it, its plan, its records, and the folder that
    their artifacts are relative to. ``origins`` are the folders of the runs that it reuses points
    of, by their names."""

    facts: RunFacts
    plan: Plan
    records: tuple[PointRecord, ...]
    folder: Path = Path()
    origins: Mapping[str, Path] = field(default_factory=dict)


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
class Shown:
    """A figure of a point in its metric's unit: over ``runs`` valid measurements of it, with the
    95 % interval of their mean; ``low`` and ``high`` are None where one run has none. An invalid
    point shows the figures of the measurement that stands, and ``runs`` is 0."""

    value: float
    low: float | None = None
    high: float | None = None
    runs: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """A throughput point of a line, all its measurements together.

    ``record`` is the one that stands (valid before another, then the newest), ``repeats`` all valid
    ones, the oldest first, of which there are ``runs``; ``lost`` are the others. ``figures`` maps
    the key of a metric to what the point shows, where it is a number; ``faults`` say what a point
    that is ``ok`` lacks to compete. ``frontiers`` holds the charts whose frontier it is on;
    ``chance`` is that of being on the deciding one (None: it cannot be told). ``reused`` names the
    run that it was taken from, ``repro`` is the command that measures it again. ``baseline`` maps
    the key of a metric to its change since the baseline; it is empty without a partner there.
    """

    anchor: str
    series: Series
    record: PointRecord
    repeats: tuple[PointRecord, ...] = ()
    lost: tuple[PointRecord, ...] = ()
    figures: Mapping[str, Shown] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    frontiers: frozenset[Pair] = frozenset()
    chance: float | None = None
    reused: str = ""
    repro: str = ""
    baseline: Mapping[str, Change] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """How many valid measurements it has."""
        return len(self.repeats)

    @property
    def counted(self) -> tuple[PointRecord, ...]:
        """What counts of it, or the one record that stands where nothing does."""
        return self.repeats or (self.record,)

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
        return bool(self.repeats)

    @property
    def on_frontier(self) -> bool:
        """True when it is on the frontier that decides."""
        return DECIDING in self.frontiers


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point on a chart, in the units of its axes."""

    x: float
    y: float
    row: PointRow
    on_frontier: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Between which two step lines a frontier lies under noise: corners (x, y) in the units of the
    axes, from left to right."""

    low: tuple[tuple[float, float], ...]
    high: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One pair of metrics: the points that tell both, and for each series (by its number) the
    frontier from left to right, with its band where points were measured again."""

    x: Metric
    y: Metric
    marks: tuple[Mark, ...]
    frontiers: Mapping[int, tuple[Mark, ...]]
    bands: Mapping[int, Band] = field(default_factory=dict)

    @property
    def key(self) -> Pair:
        """The keys of its metrics."""
        return self.x.key, self.y.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A way to show fewer points: ``values`` maps what is chosen to the anchors of its rows."""

    name: str
    values: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """How a line changed since the baseline: its points before and now, those on its deciding
    frontier, and the share by which the area that the ``compared`` points dominate grew, with its
    95 % interval over repeats (None where it cannot be told)."""

    series: Series
    points: tuple[int, int]
    on_frontier: tuple[int, int]
    compared: int = 0
    area: float | None = None
    area_low: float | None = None
    area_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a report is compared with, and what changed since.

    ``charts`` are its own, ``rows`` its points (their ``series`` are
    the report's where the line is the same). ``compared`` counts the pairs of points, ``same``
    those whose two are the same by content, ``itself`` the points that the report reuses from it;
    ``settings`` are the differences of their servers
    (``image a → b``) with how many pairs have each; ``added`` and ``dropped`` the labels of points
    without a partner, ``broken`` of those that were valid there and are not any more; ``verdicts``
    maps a metric's key to how many points got ``better``, ``worse`` …; ``left_out`` are points that
    could not be compared, ``scores`` the evaluations that were. ``headline`` says in a sentence
    what decides, ``sentences`` the whole.
    """

    runs: tuple[RunFacts, ...]
    charts: tuple[Chart, ...] = ()
    rows: tuple[PointRow, ...] = ()
    compared: int = 0
    same: int = 0
    itself: int = 0
    settings: Mapping[str, int] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    verdicts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    lines: tuple[LineChange, ...] = ()
    scores: tuple[ComparedScore, ...] = ()
    headline: str = ""
    sentences: tuple[str, ...] = ()

    @property
    def moved(self) -> dict[str, tuple[str, ...]]:
        """The labels of points that came and went, by what became of them; none is empty."""
        every = {"added": self.added, "dropped": self.dropped, "valid no more": self.broken}
        return {name: labels for name, labels in every.items() if labels}

    def chart_of(self, key: Pair) -> Chart | None:
        """Return its chart of a pair of metrics."""
        return next((chart for chart in self.charts if chart.key == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """An evaluation point with the verdict on each filter, none unless the point is ``ok``;
    ``score`` is None when it failed. ``server`` is the entry and what tells this server from the
    others of it. ``run`` names its run where the report is of several, ``reused`` the one that it
    was taken from."""

    anchor: str
    server: str
    record: PointRecord
    score: Score | None
    verdicts: tuple[FilterVerdict, ...]
    note: str
    run: str = ""
    reused: str = ""


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
    """One server configuration and what was measured on it; what its points share stands once.

    The command and what the server says are those of its first record that tells them.
    """

    anchor: str
    title: str
    arm: Arm
    server_argv: tuple[str, ...]
    env: Mapping[str, str]
    axes: tuple[AxisRow, ...]
    server: Mapping[str, object]
    records: tuple[PointRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportModel:
    """The whole page, in reading order.

    ``charts[0]`` is the deciding one; the others are all pairs of metrics for which a point has
    both values. ``environment`` are the facts that all records share; ``left_out`` the candidates
    of the plans that were not run, as far as they are listed. ``filters`` are of what differs among
    the rows. ``coverage`` is that of each line by its series' number, ``prices`` maps the name of
    hardware to what an accelerator costs. There is one of ``runs`` at least; ``origins`` are the
    folders of the runs that points are reused from.
    """

    runs: tuple[RunFacts, ...]
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
    plan_findings: tuple[Finding, ...]
    arms: tuple[ArmDetails, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    baseline: Baseline | None = None
    filters: tuple[Filter, ...] = ()
    coverage: Mapping[int, Coverage] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    origins: Mapping[str, Path] = field(default_factory=dict)

    @property
    def facts(self) -> RunFacts:
        """Those of the first run."""
        return self.runs[0]

    @property
    def workloads(self) -> tuple[str, ...]:
        """What the lines are asked: no frontier stands over two."""
        return tuple(dict.fromkeys(one.workload for one in self.series))

    @property
    def left_out_total(self) -> int:
        """How many candidates were not run."""
        return sum(number for kind, number in self.counts.items() if kind != "run")
