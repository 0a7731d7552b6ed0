"""From records and plan to the report's model: a pure function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from infx.analysis.accuracy import judge_score
from infx.analysis.pareto import VIEWS, View, view_frontier
from infx.domain.plan import Plan
from infx.domain.point import Accuracy, FixedLengths, Point, short
from infx.domain.record import Measurement, PointRecord
from infx.report.arms import arm_details, environment
from infx.report.gates import gates, verdict
from infx.report.model import Chart, Mark, PointRow, ReportModel, RunFacts, ScoreRow, Series

__all__ = ["LEFT_OUT_SHOWN", "build"]

LEFT_OUT_SHOWN = 200
"""Candidates that were not run are listed up to here (each is about 150 bytes of page)."""


def build(records: Sequence[PointRecord], plan: Plan, facts: RunFacts) -> ReportModel:
    """Return the report of one run. Points of the plan without a record count as not run."""
    rows = _rows(records, plan)
    scores = [_score_row(record) for record in records if record.point.mode == "evaluation"]
    answers = gates(rows, scores, plan)
    level, sentence = verdict(rows, scores, answers)
    left_out = [candidate for candidate in plan.ledger if candidate.disposition != "run"]
    return ReportModel(
        facts=facts,
        level=level,
        verdict=sentence,
        gates=tuple(answers),
        series=tuple({row.series.number: row.series for row in rows}.values()),
        charts=tuple(_chart(view, rows) for view in VIEWS),
        rows=tuple(rows),
        scores=tuple(scores),
        counts=plan.counts,
        candidates=plan.candidates,
        excluded_by=plan.excluded_by,
        left_out=tuple(left_out[:LEFT_OUT_SHOWN]),
        left_out_total=sum(n for kind, n in plan.counts.items() if kind != "run"),
        plan_findings=plan.findings,
        arms=arm_details(records),
        environment=environment(records),
    )


def _rows(records: Sequence[PointRecord], plan: Plan) -> list[PointRow]:
    measured = [record for record in records if record.point.mode == "throughput"]
    series = _series([*plan.points, *(record.point for record in measured)])
    runs = Counter(r.point.point_id for r in measured if r.status.state == "ok")
    frontiers = _frontiers(measured, series)
    return [
        PointRow(
            anchor=f"{short(record.point.point_id)}-{index}",
            series=series[_line(record.point)],
            record=record,
            frontiers=frontiers.get(index, frozenset()),
            runs=runs[record.point.point_id],
        )
        for index, record in enumerate(measured)
    ]


def _line(point: Point) -> tuple[str, str]:
    """Return what must be equal on one line: other workloads answer other questions."""
    workload = point.workload
    assert isinstance(workload, FixedLengths)
    return point.entry, f"{workload.isl} in, {workload.osl} out"


def _series(points: Iterable[Point]) -> dict[tuple[str, str], Series]:
    lines = list(dict.fromkeys(_line(p) for p in points if p.mode == "throughput"))
    entries = Counter(entry for entry, _ in lines)
    return {
        (entry, workload): Series(
            number=number,
            label=entry if entries[entry] == 1 else f"{entry} ({workload})",
            workload=workload,
        )
        for number, (entry, workload) in enumerate(lines)
    }


def _frontiers(
    records: Sequence[PointRecord], series: Mapping[tuple[str, str], Series]
) -> dict[int, frozenset[str]]:
    """Return for each index of a valid record the views whose frontier it is on, by series."""
    on: dict[int, set[str]] = {}
    for line in series:
        valid = {
            index: record.measurement
            for index, record in enumerate(records)
            if record.measurement and record.status.state == "ok" and _line(record.point) == line
        }
        for view in VIEWS:
            for index in _on_frontier(valid, view):
                on.setdefault(index, set()).add(view.key)
    return {index: frozenset(keys) for index, keys in on.items()}


def _on_frontier(valid: Mapping[int, Measurement], view: View) -> list[int]:
    indices = list(valid)
    return [indices[position] for position in view_frontier(list(valid.values()), view)]


def _chart(view: View, rows: Sequence[PointRow]) -> Chart:
    marks = [_mark(view, row) for row in rows if row.plotted]
    lines: dict[int, list[Mark]] = {}
    for mark in sorted(marks, key=lambda mark: mark.x):
        if mark.on_frontier:
            lines.setdefault(mark.row.series.number, []).append(mark)
    frontiers = {number: tuple(line) for number, line in lines.items()}
    return Chart(view=view, marks=tuple(marks), frontiers=frontiers)


def _mark(view: View, row: PointRow) -> Mark:
    assert row.record.measurement
    x, y = view.coordinates(row.record.measurement)
    return Mark(x=x, y=y, row=row, on_frontier=view.key in row.frontiers)


def _score_row(record: PointRecord) -> ScoreRow:
    score = record.score
    return ScoreRow(
        anchor=short(record.point.point_id),
        record=record,
        score=score,
        verdicts=tuple(judge_score(score)) if score and score.questions else (),
        note=_score_note(record),
    )


def _score_note(record: PointRecord) -> str:
    score, workload = record.score, record.point.workload
    if not score or not isinstance(workload, Accuracy):
        return record.status.sentence
    notes = []
    if score.empty:
        notes.append(f"{score.empty} of {score.questions} answers were empty")
    if not any(found.score for found in score.filters.values()):
        notes.append(_zero(record))
    if score.questions < 100:
        notes.append(f"{score.questions} questions only: a check that it runs, not a score")
    return "; ".join(notes)


def _zero(record: PointRecord) -> str:
    weights = record.point.arm.model.weights
    if weights.startswith("random:"):
        return f"the weights are random ({weights}), and a random model scores 0"
    return "no answer was right on any filter"
