"""What a reviewer asks first, answered from the records: the verdict sentence and its gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from infx.analysis.pareto import NORTH_STAR
from infx.domain.plan import Plan
from infx.report.figures import count
from infx.report.gates_of_figures import acceptance, coverage, mono, noise, requests, samples
from infx.report.model import Gate, Level, PointRow, ScoreRow

__all__ = ["gates", "verdict"]


def gates(rows: Sequence[PointRow], scores: Sequence[ScoreRow], plan: Plan) -> list[Gate]:
    """Return every gate in the order of its weight."""
    valid = [row for row in rows if row.valid]
    figures = [requests(valid), samples(valid), coverage(rows), noise(valid)] if valid else []
    return [
        _points(rows, plan),
        _accuracy(scores, plan),
        *acceptance(rows),
        *mono(rows),
        *_warnings(rows, scores),
        *figures,
        _ledger(plan),
    ]


def verdict(rows: Sequence[PointRow], plan: Plan, answers: Sequence[Gate]) -> tuple[Level, str]:
    """Return the worst level of the gates and one sentence that says what came out.

    Points are counted once, however often they ran, out of all that were planned.
    """
    planned, valid = _planned(rows, plan), {_id(row) for row in rows if row.valid}
    second = next(gate.sentence for gate in answers if gate.name == "Accuracy")
    if not planned:
        return _worst(answers), f"No throughput point was planned. {second}"
    lost = Counter(_lost(rows, valid)) + Counter({"not run": len(planned - {*map(_id, rows)})})
    if not valid:
        reasons = Counter(str(row.record.status) for row in rows)
        told = _listed(reasons + Counter({"not run": lost["not run"]}))
        return "bad", f"No valid throughput point: {told if rows else 'nothing was measured'}."
    on = {_id(row) for row in rows if NORTH_STAR.key in row.frontiers}
    first = f"{len(valid)} of {count(len(planned), 'throughput point')} valid"
    first += f" ({_listed(lost)})" if lost else ""
    return _worst(answers), f"{first}, {len(on)} on a frontier. {second}"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {text}" for text, number in counts.most_common())


def _id(row: PointRow) -> str:
    return row.record.point.point_id


def _planned(rows: Sequence[PointRow], plan: Plan) -> set[str]:
    planned = {point.point_id for point in plan.points if point.mode == "throughput"}
    return planned | {_id(row) for row in rows}


def _lost(rows: Sequence[PointRow], valid: set[str]) -> list[str]:
    """Return the last state of each point that has no valid measurement."""
    return list(
        {_id(row): row.record.status.state for row in rows if _id(row) not in valid}.values()
    )


def _worst(answers: Iterable[Gate]) -> Level:
    levels = {gate.level for gate in answers}
    for level in ("bad", "attention"):
        if level in levels:
            return level
    return "good"


def _points(rows: Sequence[PointRow], plan: Plan) -> Gate:
    planned = [point for point in plan.points if point.mode == "throughput"]
    seen = {_id(row) for row in rows}
    absent = [point.label for point in planned if point.point_id not in seen]
    states = Counter(row.record.status.state for row in rows) + Counter({"not run": len(absent)})
    told = _listed(states)
    if not told:
        return Gate(name="Points", level="note", sentence="No throughput point was planned.")
    bad = [_case(row) for row in rows if not row.valid] + [f"{label}: not run" for label in absent]
    level: Level = "attention" if bad else "good"
    if not any(row.valid for row in rows):
        level = "bad"
    return Gate(name="Points", level=level, sentence=f"{told}.", items=tuple(bad))


def _case(row: PointRow | ScoreRow) -> str:
    status = row.record.status
    return f"{row.record.point.label}: {status} {status.sentence}".rstrip()


def _accuracy(scores: Sequence[ScoreRow], plan: Plan) -> Gate:
    seen = {row.record.point.point_id for row in scores}
    absent = [p.label for p in plan.points if p.mode == "evaluation" and p.point_id not in seen]
    if not scores and not absent:
        return Gate(name="Accuracy", level="note", sentence="No evaluation was planned.")
    answers = Counter[str](v.answer for row in scores for v in row.verdicts)
    unjudged = [row for row in scores if not row.verdicts]
    cases = [*_undecided(scores), *map(_case, unjudged), *(f"{label}: not run" for label in absent)]
    sentence = _scores(answers, len(unjudged), len(absent))
    return Gate(
        name="Accuracy", level=_level(answers, cases), sentence=sentence, items=tuple(cases)
    )


def _level(answers: Counter[str], cases: Sequence[str]) -> Level:
    """Return ``note`` when no filter has a bar: nothing went wrong and nothing was shown."""
    if answers["fail"]:
        return "bad"
    if cases:
        return "attention"
    return "good" if answers["pass"] else "note"


def _undecided(scores: Sequence[ScoreRow]) -> list[str]:
    return [
        f"{row.record.point.label}: {row.score.task} {verdict.filter} {verdict.sentence}"
        for row in scores
        for verdict in row.verdicts
        if row.score and verdict.answer in ("fail", "undecided")
    ]


def _scores(answers: Counter[str], unjudged: int, absent: int) -> str:
    words = {
        "pass": "at or above the bar",
        "fail": "below the bar",
        "undecided": "not decided (too few questions)",
        "no-bar": "without a bar",
    }
    told = [f"{answers[key]} {text}" for key, text in words.items() if answers[key]]
    filters = f"Of {count(answers.total(), 'accuracy filter')}, " if answers else "Accuracy: "
    if answers and answers["no-bar"] == answers.total():
        filters, told = (
            "",
            [f"No accuracy filter of {answers.total()} has a bar: nothing was judged"],
        )
    told += [f"{count(unjudged, 'evaluation')} without a valid score"] if unjudged else []
    told += [f"{count(absent, 'evaluation')} not run"] if absent else []
    return f"{filters}{', '.join(told)}."


def _warnings(rows: Sequence[PointRow], scores: Sequence[ScoreRow]) -> list[Gate]:
    """Return what a reader should know of results that count all the same."""
    records = [row.record for row in rows] + [row.record for row in scores]
    told = [
        f"{record.point.label}: {finding.code} {finding.sentence}"
        for record in records
        if record.status.state == "ok"
        for finding in record.findings
        if finding.level == "warning"
    ]
    if not told:
        return []
    sentence = f"{count(len(told), 'warning')} on results that count."
    return [Gate(name="Warnings", level="note", sentence=sentence, items=tuple(told))]


def _ledger(plan: Plan) -> Gate:
    told = " + ".join(f"{number} {kind}" for kind, number in plan.counts.items() if number)
    whole = sum(plan.counts.values()) == plan.candidates
    sentence = f"{told or 'nothing'} = {count(plan.candidates, 'candidate')}"
    if whole:
        return Gate(name="Ledger", level="good", sentence=f"{sentence}.")
    return Gate(name="Ledger", level="bad", sentence=f"{sentence} does not add up.")
