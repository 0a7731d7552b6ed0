"""What a bundle holds that a text may say, derived once: names, and numbers in their order."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import chain
from math import isfinite

from infx.analysis.curves import Line, line_of
from infx.analysis.metrics import METRICS
from infx.analysis.repeats import mean_of
from infx.domain.axes import kebab
from infx.domain.point import Accuracy
from infx.domain.record import Distribution, PointRecord
from infx.report.charts import on_frontiers
from infx.report.model import PointRow
from infx.report.points import rows_of, series_of
from infx.review.bundle import Bundle, Draft, Entry, Run
from infx.review.curves import Curve, curves
from infx.review.facts import affected, affected_runs, evaluations, launched, throughput, wanted
from infx.review.rules import Rules

__all__ = ["Truth", "Values"]

_COMMIT = re.compile(r"\+g([0-9a-f]{7,40})")
_SETTING = re.compile(r"([A-Za-z][\w.-]*)[\"']?\s*[:=]\s*[\"']?(\d+(?:\.\d+)?)(?![\w.])")
_LATENCIES = {"E2EL": "e2el_ms", "TTFT": "ttft_ms", "ITL": "itl_ms", "TPOT": "itl_ms"}
_PACES = ("interactivity_tok_s", "e2e_interactivity_tok_s")
_RATES = ("tput_tok_s_gpu", "output_tput_tok_s_gpu", "input_tput_tok_s_gpu")
_STATISTICS = ("mean", "p50", "p75", "p90", "p95", "p99")


class Values:
    """Numbers, of which a text may name each with as many digits as it likes."""

    def __init__(self, values: Iterable[float | None]) -> None:
        self._sorted = sorted({v for v in values if v is not None and isfinite(v)})

    def __bool__(self) -> bool:
        return bool(self._sorted)

    def hold(self, text: str, scale: float = 1.0) -> bool:
        """Return True when one of them, times ``scale``, rounds to ``text``."""
        try:
            said = Decimal(text.replace(",", ""))
        except InvalidOperation:
            return False
        exponent = said.as_tuple().exponent
        half = 0.5 * 10.0 ** (exponent if isinstance(exponent, int) else 0)
        slack = half * (1 + 1e-9) + 1e-12 * abs(float(said))
        low = bisect_left(self._sorted, (float(said) - slack) / scale)
        return low < len(self._sorted) and self._sorted[low] * scale <= float(said) + slack

    def told(self, unit: str = "") -> str:
        """Return them in words: the one, or from the least to the most."""
        if not self._sorted:
            return "not measured"
        ends = dict.fromkeys(f"{value:.5g}" for value in (self._sorted[0], self._sorted[-1]))
        return f"{' … '.join(ends)}{f' {unit}' if unit else ''}"


@dataclass(frozen=True)
class Truth:
    """A bundle, the rules, and what follows from them. Figures are of valid measurements alone."""

    bundle: Bundle
    rules: Rules

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The affected entries at the head."""
        return affected(self.bundle)

    @cached_property
    def both(self) -> tuple[Entry, ...]:
        """The affected entries, before and after."""
        keys = {entry.key for entry in self.entries}
        every = (*self.bundle.entries.base, *self.bundle.entries.head)
        return tuple(entry for entry in every if entry.key in keys)

    def heads(self, field: str) -> str:
        """Return a field of the affected entries at the head, in words."""
        values = {str(getattr(entry, field)) for entry in self.entries}
        return " or ".join(sorted(values - {""})) or "not known"

    def commits(self, *, head: bool) -> set[str]:
        """Return the commits that the engines' versions name, after the change or before it."""
        known = self.entries if head else [one for one in self.both if one not in self.entries]
        return {hit[1] for entry in known if (hit := _COMMIT.search(entry.version))}

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The runs that measured the affected entries."""
        return affected_runs(self.bundle)

    @cached_property
    def measured(self) -> tuple[PointRecord, ...]:
        """The throughput records of affected entries."""
        return throughput(self.bundle)

    @cached_property
    def scored(self) -> tuple[PointRecord, ...]:
        """The evaluations of affected entries."""
        return evaluations(self.bundle)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """The curves of the throughput records."""
        return curves(self.bundle)

    @cached_property
    def rows(self) -> tuple[PointRow, ...]:
        """The throughput points as a report shows them."""
        series = series_of(record.point for record in self.measured)
        rows = on_frontiers(rows_of(self.measured, series, {}, {}), {})
        return tuple(row for row in rows if row.repeats)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the points that are planned, before the change and after it."""
        planned = (*self.bundle.points.base, *self.bundle.points.head)
        return frozenset((*(p.name for p in planned), *(r.point.name for r in self.scored)))

    @cached_property
    def _labels(self) -> frozenset[str]:
        return frozenset(record.point.label for record in self.measured)

    @cached_property
    def shapes(self) -> frozenset[str]:
        """These names with each number as 0: what a name of a point looks like."""
        return frozenset(re.sub(r"\d+", "0", name) for name in self.names)

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[PointRow]]:
        named: dict[str, list[PointRow]] = {}
        for row in self.rows:
            for name in {row.record.point.name, row.record.point.label}:
                named.setdefault(name, []).append(row)
        return named

    @cached_property
    def _values(self) -> dict[tuple[str, frozenset[str]], Values]:
        return {}

    def points_named(self, text: str) -> frozenset[str]:
        """Return the names and labels of points among the words of a text."""
        words = (word.rstrip(".") for word in re.findall(r"[\w.-]+", text))
        return frozenset(word for word in words if word in self.names or word in self._labels)

    def values(self, kind: str, names: frozenset[str]) -> Values:
        """Return the figures of a kind of the points of these names, of all where none is named.

        Kinds: ``rate`` (tok/s/GPU, of which ``total`` is in and out together), ``pace``
        (tok/s/user), ``energy`` (J/token), ``latency`` (ms), or one statistic of one latency, as
        ``TTFT p90``.
        """
        if (kind, names) not in self._values:
            rows = (
                chain.from_iterable(self._by_name.get(n, ()) for n in names) if names else self.rows
            )
            found = chain.from_iterable(_figures(row, kind) for row in rows)
            self._values[kind, names] = Values(found)
        return self._values[kind, names]

    @cached_property
    def workloads(self) -> frozenset[str]:
        """What is asked of the points, in words: ``64 in, 32 out``."""
        loads = (record.point.workload for record in self.measured)
        return frozenset(load.words for load in loads if not isinstance(load, Accuracy))

    @cached_property
    def scores(self) -> Mapping[str, Values]:
        """The scores by task and by filter, in small letters; gsm8k is there though nobody was
        asked."""
        found: dict[str, list[float]] = {"gsm8k": []}
        for score in (record.score for record in self.scored if record.score):
            for name, one in score.filters.items():
                found.setdefault(score.task.lower(), []).append(one.score)
                found.setdefault(name.lower(), []).append(one.score)
        return {name: Values(shares) for name, shares in found.items()}

    @cached_property
    def bounds(self) -> Values:
        """The ends of the 95 % intervals of what a report shows."""
        shown = [figure for row in self.rows for figure in row.figures.values()]
        return Values([*(one.low for one in shown), *(one.high for one in shown)])

    @cached_property
    def errors(self) -> Values:
        """The standard errors of the scores."""
        scores = (record.score for record in self.scored if record.score)
        return Values(one.stderr for score in scores for one in score.filters.values())

    @cached_property
    def bars(self) -> Values:
        """The reviewer's bars of the tasks that were asked."""
        asked = {(r.point.arm.model.prefix, r.score.task) for r in self.scored if r.score}
        found = (self.rules.bars.of(prefix, task).values() for prefix, task in asked)
        return Values(chain.from_iterable(found))

    @cached_property
    def lengths(self) -> Values:
        """The acceptance lengths that were asked and that were realised."""
        seen = (r.counters.acceptance_length for r in self.measured if r.counters)
        return Values([*(r.point.arm.acceptance.length for r in self.measured), *seen])

    @cached_property
    def axes(self) -> Mapping[str, Values]:
        """What is asked of the affected entries' points, by the name of an axis."""
        found: dict[str, list[float]] = {}
        for record in (*self.measured, *self.scored):
            axes = {**_axes(record), "conc": record.point.conc, "gpus": record.point.gpus}
            for name, value in axes.items():
                found.setdefault(name, []).append(value)
        return {name: Values(values) for name, values in found.items()}

    @cached_property
    def settings(self) -> frozenset[tuple[str, str]]:
        """The pairs of a name and a number in what servers were started with and in the change."""
        texts = [text for record in (*self.measured, *self.scored) for _, text in launched(record)]
        changed = [line for line in self.bundle.diff.splitlines() if line[:1] in ("+", "-")]
        pairs = chain.from_iterable(_SETTING.findall(text) for text in (*texts, *changed))
        return frozenset((name.lower().replace("_", "-"), value) for name, value in pairs)

    @cached_property
    def lines(self) -> tuple[tuple[int, Sequence[PointRow]], ...]:
        """Of each line of a report how many points were measured, and those that are valid."""
        of = {record.point.point_id: line_of(record.point) for record in self.measured}
        rows: dict[Line, list[PointRow]] = {}
        for row in self.rows:
            rows.setdefault(of[row.record.point.point_id], []).append(row)
        return tuple((total, rows.get(line, ())) for line, total in Counter(of.values()).items())

    @cached_property
    def counts(self) -> Mapping[str, Values]:
        """How many there are of what a text may count: of all points, and of each line."""
        total, valid = len({r.point.point_id for r in self.measured}), len(self.rows)
        keys = {entry.key for entry in self.entries}
        before, after = (
            {point.name for point in points if point.entry in keys}
            for points in (self.bundle.points.base, self.bundle.points.head)
        )
        of_lines = [(points, len(rows)) for points, rows in self.lines]
        planned = [len(after), len(wanted(self.bundle)), total]
        scores = [record.score for record in self.scored if record.score]
        return {
            "points": Values([*planned, *(points for points, _ in of_lines)]),
            "evaluations": Values([len(self.scored), *Counter(s.task for s in scores).values()]),
            "valid": Values([valid, *(good for _, good in of_lines)]),
            "invalid": Values([total - valid, *(points - good for points, good in of_lines)]),
            "new": Values([len(after - before)]),
            "gone": Values([len(before - after)]),
            "questions": Values(score.questions for score in scores),
            "layers": Values(chain.from_iterable(map(_layers, self.bundle.drafts))),
            "shots": Values(score.shots for score in scores),
            "runs": Values([len(self.runs), *(row.runs for row in self.rows)]),
        }

    @cached_property
    def frontiers(self) -> frozenset[tuple[int, int]]:
        """Pairs of points on a frontier and of all: of each curve by latency, and of each line of a
        report by each of its charts."""
        found = {(len(one.on_frontier), len(one.spots)) for one in self.curves}
        for total, rows in self.lines:
            on = Counter(pair for row in rows for pair in row.frontiers)
            found |= {(number, of) for number in on.values() for of in (total, len(rows))}
        return frozenset(found)


def _layers(draft: Draft) -> list[int]:
    """Return how many layers a draft has, and how many of each pair of types."""
    return [len(draft.layers), *Counter((o.stored, o.effective) for o in draft.layers).values()]


def _axes(record: PointRecord) -> dict[str, float]:
    axes, load = record.point.arm.axes, record.point.workload
    numbers = {kebab(n): getattr(axes, n) for n in type(axes).__slots__ if n != "conc"}
    asked = {kebab(n): getattr(load, n) for n in type(load).__slots__}
    return {n: v for n, v in {**numbers, **asked}.items() if isinstance(v, int | float)}


def _figures(row: PointRow, kind: str) -> Iterator[float | None]:
    """Yield the figures of a kind: each measurement's, and what a report shows of them all."""
    units = {"rate": "tok/s/GPU", "pace": "tok/s/user", "energy": "J/token"}
    for key, shown in row.figures.items():
        if METRICS[key].unit == units.get(kind):
            yield from (shown.value, shown.low, shown.high)
    for record in row.repeats:
        found = record.measurement
        if found and kind == "rate":
            yield from (getattr(found, name) for name in _RATES)
        elif found and kind == "total":
            yield found.tput_tok_s_gpu
        elif found and kind == "pace":
            yield from chain.from_iterable(_spread(getattr(found, name)) for name in _PACES)
        elif found and kind == "latency":
            yield from chain.from_iterable(_spread(getattr(found, n)) for n in _LATENCIES.values())
        elif record.energy and kind == "energy":
            yield from (record.energy.j_per_total_token, record.energy.j_per_output_token)
    yield from _statistic(row, kind)


def _spread(found: Distribution) -> Iterator[float]:
    yield from (getattr(found, name) for name in _STATISTICS)


def _statistic(row: PointRow, kind: str) -> Iterator[float]:
    """Yield one statistic of a latency (ms): each measurement's, and their mean."""
    name, _, statistic = kind.partition(" ")
    if not statistic:
        return
    read = [getattr(r.measurement, _LATENCIES[name]) for r in row.repeats if r.measurement]
    values = [getattr(one, statistic) for one in read]
    yield from values
    if values:
        yield mean_of(values)
