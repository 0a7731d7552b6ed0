"""The plan of a matrix: every candidate accounted for, every point identified, jobs and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from infx import frameworks
from infx.config.expressions import Expression
from infx.config.matrix import Entry, EvaluationSpec, Matrix, Scenario
from infx.domain.axes import AXES
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding
from infx.domain.identity import content_id
from infx.domain.plan import Candidate, Disposition, Plan
from infx.domain.point import Arm, FixedLengths, Harness, Point
from infx.frameworks.base import Refusal
from infx.plan.expand import Element, Values, dependence, derive, elements, excluding
from infx.plan.jobs import estimate_cost, make_jobs
from infx.plan.lint import lint_combination, lint_entry, mono_serves, place
from infx.plan.resolve import ArmMaker, PointMaker, accuracy, fixed_lengths

__all__ = ["LISTED", "make_plan"]

LISTED = 1000
"""Candidates of one rule that the ledger lists; all of them are counted."""


def make_plan(matrix: Matrix, harness: Harness = Harness()) -> Plan:  # noqa: B008
    """Return the plan of ``matrix``.

    Raises ConfigError with every cross-field error. A plan without points is returned as it is:
    its ledger says why nothing is left.
    """
    ledger, faults, notes = _Ledger(), [], []
    for entry in matrix.entries:
        faults += [f for f in _entry_findings(entry) if f.level == "error"]
        notes += [f for f in _entry_findings(entry) if f.level != "error"]
        faults += _plan_entry(entry, harness, ledger)
    if faults:
        raise ConfigError(list(dict.fromkeys(faults)))
    entries = {entry.name: entry for entry in matrix.entries}
    jobs = make_jobs(ledger.points, {n: e.cluster.time_limit_s for n, e in entries.items()})
    return Plan(
        inputs=matrix.inputs,
        candidates=ledger.counts.total(),
        counts=dict(ledger.counts),
        ledger=tuple(ledger.rows),
        points=tuple(ledger.points),
        jobs=jobs,
        findings=tuple(notes),
        cost=estimate_cost(jobs, {n: e.cluster.gpus_per_node > 0 for n, e in entries.items()}),
        excluded_by=dict(ledger.excluded_by),
    )


class _Ledger:
    """Counts every candidate once; lists at most LISTED for each rule that leaves one out."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.excluded_by: Counter[str] = Counter()
        self.rows: list[Candidate] = []
        self.points: list[Point] = []
        self._seen: dict[str, str] = {}

    def leave_out(
        self, disposition: Disposition, rule: str, row: Callable[[], dict[str, Any]]
    ) -> None:
        self.counts[disposition] += 1
        self.excluded_by[rule] += 1
        if self.excluded_by[rule] <= LISTED:
            self.rows.append(Candidate(disposition=disposition, rule=rule, **row()))

    def add(self, point: Point, row: dict[str, Any]) -> None:
        """Count ``point`` as run, or as a duplicate of an equal one."""
        if point.point_id in self._seen:
            row |= {"sentence": f"the same as {self._seen[point.point_id]}"}
            row |= {"point_id": point.point_id}
            self.leave_out("duplicate", "repeat-of", lambda: row)
            return
        self._seen[point.point_id] = point.name
        self.counts["run"] += 1
        self.points.append(point)
        self.rows.append(Candidate(disposition="run", point_id=point.point_id, **row))


def _entry_findings(entry: Entry) -> list[Finding]:
    found = list(lint_entry(entry, frameworks.get(entry.framework)))
    return found + [f for s in entry.scenarios if (f := mono_serves(entry, s))]


def _plan_entry(entry: Entry, harness: Harness, ledger: _Ledger) -> list[Finding]:
    maker = PointMaker(ArmMaker(entry), harness)
    faults: list[Finding] = []
    computations: dict[str, tuple[Scenario, Element]] = {}
    options = frameworks.get(entry.framework).options
    capacity = {name for name, option in options.items() if option.capacity}
    arms: set[int] = set()
    for number, scenario in enumerate(entry.scenarios):
        for arm, element in _run_scenario(entry, number, scenario, maker, ledger, faults):
            if id(arm) not in arms:
                arms.add(id(arm))
                computation = content_id(arm.computation(capacity))
                computations.setdefault(computation, (scenario, element))
    for evaluation in entry.evaluations:
        for scenario, element in computations.values():
            faults += _plan_evaluation(evaluation, scenario, element, maker, ledger)
    return faults


def _run_scenario(
    entry: Entry,
    number: int,
    scenario: Scenario,
    maker: PointMaker,
    ledger: _Ledger,
    faults: list[Finding],
) -> Iterator[tuple[Arm, Element]]:
    framework, excluded = frameworks.get(entry.framework), excluding(scenario.exclude)
    workload, varied = fixed_lengths(scenario.workload), _varied(scenario)
    refused: dict[int, Refusal | None] = {}
    follows, at = _Follows(maker.arms, scenario), place(scenario)

    def row(values: Values, **more: Any) -> dict[str, Any]:
        shown = {name: values[name] for name in varied}
        return {"entry": entry.name, "scenario": number, "values": shown, **more}

    for element in elements(scenario):
        values = element.values
        if rule := None if element.include else excluded(values):
            extra = {"where": rule.where, "sentence": rule.reason}
            ledger.leave_out("excluded", rule.text, partial(row, values, **extra))
            continue
        arm, load = maker.arms.arm(values, "throughput"), workload(values)
        found = at if element.include is None else place(scenario, element.include.where)
        faults += lint_combination(arm, values, load, entry, found)
        if id(arm) not in refused:
            refused[id(arm)] = next(iter(framework.refusals(arm)), None)
        if refusal := refused[id(arm)]:
            extra = {"sentence": refusal.sentence, "where": scenario.where}
            ledger.leave_out("excluded", refusal.code, partial(row, values, **extra))
            continue
        point = maker.point(arm, values, load, "throughput", follows.of(element), varied)
        ledger.add(point, row(values))
        yield arm, element


def _plan_evaluation(
    spec: EvaluationSpec, scenario: Scenario, element: Element, maker: PointMaker, ledger: _Ledger
) -> list[Finding]:
    values = _at_conc(scenario, element, spec.conc)
    arm, load = maker.arms.arm(values, "evaluation"), accuracy(spec)
    point = maker.point(arm, values, load, "evaluation", {}, ())
    row = {"entry": point.entry, "scenario": -1, "values": {"task": spec.task, "conc": spec.conc}}
    ledger.add(point, row)
    return lint_combination(arm, values, load, maker.arms.entry, place(scenario, spec.where))


def _at_conc(scenario: Scenario, element: Element, conc: int) -> Values:
    values = {**element.values, "conc": conc, "queueing": False}
    derive(
        {a.name: (a.values, a.where) for a in scenario.axes if isinstance(a.values, Expression)}
    )(values)
    return values


class _Follows:
    """Which fields of a point follow the concurrency, and by which expression."""

    def __init__(self, arms: ArmMaker, scenario: Scenario) -> None:
        self._axes = {
            a.name: (a.values, a.where) for a in scenario.axes if isinstance(a.values, Expression)
        }
        load = scenario.workload
        fields = {
            n: getattr(load, n) for n in FixedLengths.__dataclass_fields__ if hasattr(load, n)
        }
        self._others = {**arms.options, **fields}
        self._product = self._following(frozenset())

    def of(self, element: Element) -> Mapping[str, str]:
        """Return field -> expression text; an include rule's literals follow nothing."""
        if element.include is None:
            return self._product
        return self._following(frozenset(element.include.values))

    def _following(self, fixed: frozenset[str]) -> dict[str, str]:
        axes = {name: value for name, value in self._axes.items() if name not in fixed}
        on_conc = dependence(axes).on_conc
        found = {name: axes[name][0].text for name in on_conc}
        for name, value in self._others.items():
            if isinstance(value, Expression) and value.names & (on_conc | {"conc"}):
                found[name] = value.text
        return found


def _varied(scenario: Scenario) -> tuple[str, ...]:
    """Return the axes that tell the scenario's points apart, in the order of the vocabulary."""
    several = {
        a.name for a in scenario.axes if not isinstance(a.values, Expression) and len(a.values) > 1
    }
    several |= {name for rule in scenario.include for name in rule.values}
    return tuple(name for name in AXES if name in several | {"conc"})
