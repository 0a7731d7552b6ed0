"""From records and plan to the report's model: a pure function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from infx.analysis.accuracy import judge_record
from infx.analysis.curves import Line, line_frontiers, line_of, lines_of
from infx.analysis.pareto import VIEWS, View
from infx.domain.plan import Plan
from infx.domain.point import Point, short
from infx.domain.record import PointRecord
from infx.report.arms import arm_details, environment
from infx.report.gates import gates, verdict
from infx.report.ledger import exclusions
from infx.report.model import Chart, Mark, PointRow, ReportModel, RunFacts, ScoreRow, Series

__all__ = ["LEFT_OUT_SHOWN", "build"]

LEFT_OUT_SHOWN = 200
"""Candidates that were not run are listed up to here (each is about 150 bytes of page)."""

FEW_QUESTIONS = 100
"""Below this many, the 95 % interval of a share is wider than a fifth."""


def build(records: Sequence[PointRecord], plan: Plan, facts: RunFacts) -> ReportModel:
    """Return the report of one run. Points of the plan without a record count as not run."""
    rows = _rows(records, plan)
    scores = [_score_row(record) for record in records if record.point.mode == "evaluation"]
    answers = gates(rows, scores, plan)
    level, sentence = verdict(rows, plan, answers)
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
        excluded_by=exclusions(plan),
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
    frontiers = line_frontiers(measured, VIEWS)
    return [
        PointRow(
            anchor=f"{short(record.point.point_id)}-{index}",
            series=series[line_of(record.point)],
            record=record,
            frontiers=frontiers.get(index, frozenset()),
            runs=runs[record.point.point_id],
        )
        for index, record in enumerate(measured)
    ]


def _series(points: Iterable[Point]) -> dict[Line, Series]:
    lines = lines_of(points)
    return {
        line: Series(
            number=number,
            label=f"{line.entry} ({apart})" if (apart := line.apart(lines)) else line.entry,
            entry=line.entry,
            workload=line.workload,
        )
        for number, line in enumerate(lines)
    }


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
    return ScoreRow(
        anchor=short(record.point.point_id),
        record=record,
        score=record.score,
        verdicts=tuple(judge_record(record)),
        note=_score_note(record),
    )


def _score_note(record: PointRecord) -> str:
    score, weights = record.score, record.point.arm.model.weights
    if not score or record.status.state != "ok":
        return record.status.sentence
    notes = [finding.sentence for finding in record.findings if finding.level == "warning"]
    if weights.startswith("random:"):
        notes.append(f"the weights are random ({weights}), so right answers are luck")
    elif not any(found.score for found in score.filters.values()):
        notes.append("no answer was right on any filter")
    if score.questions < FEW_QUESTIONS:
        notes.append(f"{score.questions} questions only: a check that it runs, not a score")
    return "; ".join(notes)
