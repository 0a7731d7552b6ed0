"""The plan of a matrix: every candidate accounted for, every point identified, jobs and cost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from infx import frameworks
from infx.config.matrix import Entry, EvaluationSpec, ExcludeRule, Matrix, Scenario
from infx.domain.axes import is_computation
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where
from infx.domain.identity import content_id
from infx.domain.plan import Plan
from infx.domain.point import Arm, Harness
from infx.frameworks.base import Refusal
from infx.plan.expand import Element, Values, derive, derived_axes, elements, excluding, rule_text
from infx.plan.follow import Follows
from infx.plan.jobs import estimate_cost, make_jobs
from infx.plan.ledger import Ledger
from infx.plan.lint import (
    lint_arms,
    lint_combination,
    lint_draft_tokens,
    lint_entry,
    lint_mono,
    place,
)
from infx.plan.lint_captures import lint_padding
from infx.plan.lint_workload import lint_times
from infx.plan.resolve import ArmMaker, PointMaker, accuracy, throughput
from infx.plan.telling import computed, differing, named, varied

__all__ = ["make_plan"]


def make_plan(matrix: Matrix, harness: Harness = Harness()) -> Plan:  # noqa: B008
    """Return the plan of ``matrix``.

    Raises ConfigError with every cross-field error. A plan without points is returned as it is:
    its ledger says why nothing is left.
    """
    ledger, findings = Ledger(), list[Finding]()
    for entry in matrix.entries:
        findings += lint_entry(entry, frameworks.get(entry.framework))
        findings += _Entry(entry, harness, ledger).plan()
    faults = [f for f in [*findings, *ledger.faults] if f.level == "error"]
    if faults:
        raise ConfigError(list(dict.fromkeys(faults)))
    jobs = make_jobs(ledger.points, {e.name: e.cluster.limits.job for e in matrix.entries})
    findings += lint_times(jobs, matrix)
    return Plan(
        inputs=matrix.inputs,
        candidates=ledger.counts.total(),
        counts=dict(ledger.counts),
        ledger=tuple(ledger.rows),
        points=tuple(ledger.points),
        jobs=jobs,
        findings=tuple(dict.fromkeys(findings)),
        cost=estimate_cost(jobs),
        excluded_by=dict(ledger.excluded_by),
    )


class _Entry:
    """Plans one entry into the ledger."""

    def __init__(self, entry: Entry, harness: Harness, ledger: Ledger) -> None:
        self._entry, self._ledger = entry, ledger
        self._framework = frameworks.get(entry.framework)
        self._arms = ArmMaker(entry, self._framework)
        self._points = PointMaker(self._arms, harness)
        self._findings: list[Finding] = []
        self._refused: dict[int, Refusal | None] = {}
        self._mono_refused: list[tuple[Refusal, Where]] = []
        self._apart = differing(entry.scenarios)

    def plan(self) -> list[Finding]:
        """Return what is wrong, or worth saying, after every candidate was put into the ledger."""
        measured: list[tuple[Arm, Scenario, Element]] = []
        for number, scenario in enumerate(self._entry.scenarios):
            try:
                measured += [(a, scenario, e) for a, e in self._run_scenario(number, scenario)]
            except ConfigError as error:
                self._findings += error.findings
        arms = [arm for arm, _, _ in measured]
        self._findings += lint_arms(self._entry, arms)
        self._findings += lint_mono(self._entry, self._mono_refused, arms)
        self._findings += lint_padding(
            (a, e.values["conc"], _captured(s, e)) for a, s, e in measured
        )
        for scenario, element in self._computations(measured):
            for spec in self._entry.evaluations:
                self._evaluate(spec, scenario, element)
        return self._findings

    def _run_scenario(self, number: int, scenario: Scenario) -> Iterator[tuple[Arm, Element]]:
        excluded, workload = excluding(scenario.exclude), throughput(scenario.workload)
        apart, follows = varied(scenario, self._apart), Follows(self._arms.options, scenario)
        row, written = partial(_row, self._entry.name, number, named(scenario)), place(scenario)
        for element in elements(scenario):
            values = element.values
            if rule := None if element.include else excluded(values):
                more = partial(row, values, where=rule.where, sentence=rule.reason)
                self._ledger.leave_out("excluded", rule.text, more)
                continue
            where = element.include.where if element.include else None
            at = place(scenario, element.include) if element.include else written
            if fault := lint_draft_tokens(values, self._entry, at):
                self._findings.append(fault)
                continue
            arm, load = self._arms.arm(values, "throughput"), workload(values)
            self._findings += lint_combination(arm, values, load, self._entry, at)
            if refusal := self._refusal(arm):
                self._leave_out(refusal, partial(row, values), at)
                if arm.axes.mono == "on":
                    self._mono_refused.append((refusal, at("mono")))
                continue
            point = self._points.point(arm, values, load, "throughput", follows.of(element), apart)
            self._ledger.add(point, row(values, where=where))
            yield arm, element
        self._findings += [f for r in scenario.exclude if (f := self._unused(r))]

    def _unused(self, rule: ExcludeRule) -> Finding | None:
        if rule_text(rule) in self._ledger.excluded_by:
            return None
        sentence = f"the rule {rule.when.text!r} leaves out nothing that is not left out before it"
        return Finding("rule-unused", "warning", sentence, rule.where)

    def _computations(
        self, measured: list[tuple[Arm, Scenario, Element]]
    ) -> list[tuple[Scenario, Element]]:
        """Return one element of each server computation that differs, in order."""
        capacity = {name for name, o in self._framework.options.items() if o.capacity}
        arms = {id(arm): (arm, scenario, element) for arm, scenario, element in reversed(measured)}
        firsts: dict[str, tuple[Scenario, Element]] = {}
        for arm, scenario, element in reversed(arms.values()):
            firsts.setdefault(content_id(arm.computation(capacity)), (scenario, element))
        return list(firsts.values())

    def _evaluate(self, spec: EvaluationSpec, scenario: Scenario, element: Element) -> None:
        values = _at_conc(scenario, element, spec.conc)
        arm, load, at = self._arms.arm(values, "evaluation"), accuracy(spec), place(scenario)
        apart = computed(scenario, self._apart)
        shown = {"task": spec.task, "conc": spec.conc, **{n: values[n] for n in apart}}
        row = {"entry": self._entry.name, "scenario": -1, "values": shown, "where": spec.where}
        found = lint_combination(arm, values, load, self._entry, lambda *_: spec.where)
        self._findings += found
        if refusal := self._refusal(arm):
            self._leave_out(refusal, lambda **more: row | more, at)
            return
        follows = Follows(self._arms.options, scenario).of(element)
        self._ledger.add(self._points.point(arm, values, load, "evaluation", follows, apart), row)

    def _refusal(self, arm: Arm) -> Refusal | None:
        if id(arm) not in self._refused:
            self._refused[id(arm)] = next(iter(self._framework.refusals(arm)), None)
        return self._refused[id(arm)]

    def _leave_out(self, refusal: Refusal, row: Any, at: Any) -> None:
        where = self._asking(refusal.axis, at)
        rule = f"{refusal.code}: {refusal.sentence} ({where})"
        more = partial(row, sentence=refusal.sentence, where=where)
        self._ledger.leave_out("excluded", rule, more)

    def _asking(self, name: str, at: Any) -> Where:
        """Return the line of the option, the section or the axis that asks what was refused."""
        if name == "speculation" and self._entry.speculation:
            return self._entry.speculation.where
        return self._entry.option_place(name) if name in self._arms.options else at(name)


def _captured(scenario: Scenario, element: Element) -> Where:
    """Return the line that decides the capture sizes of an element."""
    return place(scenario, element.include)("capture_sizes")


def _row(
    entry: str, scenario: int, varied: tuple[str, ...], values: Values, **more: Any
) -> dict[str, Any]:
    shown = {name: values[name] for name in varied}
    return {"entry": entry, "scenario": scenario, "values": shown, **more}


def _at_conc(scenario: Scenario, element: Element, conc: int) -> Values:
    """Return ``element`` at another concurrency: the same computation, capacity derived anew."""
    derived = derived_axes(scenario, element.include)
    values: Values = {**element.values, "conc": conc, "queueing": False}
    derive({n: derived[n] for n in derived if not is_computation(n)})(values)
    return values
