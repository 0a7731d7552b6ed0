"""What a reviewer asks first, answered from the records: the verdict sentence and its gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from infx.analysis.pareto import NORTH_STAR
from infx.domain.plan import Plan
from infx.report.figures import count, figure, percent
from infx.report.model import Gate, Level, PointRow, ScoreRow

__all__ = ["gates", "verdict"]

COVERAGE_ADVICE = 5
"""Points on a frontier below which a curve's shape is a guess (public review practice)."""


def gates(rows: Sequence[PointRow], scores: Sequence[ScoreRow], plan: Plan) -> list[Gate]:
    """Return every gate in the order of its weight."""
    valid = [row for row in rows if row.valid]
    measured = [_requests(valid), *_acceptance(rows), _coverage(rows), _noise(valid)]
    return [
        _points(rows, plan),
        _accuracy(scores, plan),
        *(measured if valid else []),
        _ledger(plan),
    ]


def verdict(
    rows: Sequence[PointRow], scores: Sequence[ScoreRow], answers: Sequence[Gate]
) -> tuple[Level, str]:
    """Return the worst level of the gates and one sentence that says what came out."""
    valid = [row for row in rows if row.valid]
    if not valid:
        return "bad", f"No valid throughput point: {_reasons(rows) or 'nothing was measured'}."
    on = sum(NORTH_STAR.key in row.frontiers for row in valid)
    first = f"{len(valid)} of {count(len(rows), 'throughput point')} valid"
    first += f" ({_states(rows)})" if len(valid) < len(rows) else ""
    second = next(gate.sentence for gate in answers if gate.name == "Accuracy")
    return _worst(answers), f"{first}, {on} on a frontier. {second}"


def _worst(answers: Iterable[Gate]) -> Level:
    levels = {gate.level for gate in answers}
    for level in ("bad", "attention"):
        if level in levels:
            return level
    return "good"


def _points(rows: Sequence[PointRow], plan: Plan) -> Gate:
    planned = [point for point in plan.points if point.mode == "throughput"]
    seen = {row.record.point.point_id for row in rows}
    absent = [point.label for point in planned if point.point_id not in seen]
    states = Counter(row.record.status.state for row in rows) + Counter({"not run": len(absent)})
    told = ", ".join(f"{n} {state}" for state, n in states.most_common()) or "none planned"
    bad = [_case(row) for row in rows if not row.valid] + [f"{label}: not run" for label in absent]
    level: Level = "good" if not bad else "attention"
    if not any(row.valid for row in rows):
        level = "bad"
    return Gate(name="Points", level=level, sentence=f"{told}.", items=tuple(bad))


def _case(row: PointRow) -> str:
    status = row.record.status
    return f"{row.record.point.label}: {status} {status.sentence}".rstrip()


def _reasons(rows: Sequence[PointRow]) -> str:
    codes = Counter(str(row.record.status) for row in rows if not row.valid)
    return ", ".join(f"{n} {code}" for code, n in codes.most_common())


def _states(rows: Sequence[PointRow]) -> str:
    states = Counter(row.record.status.state for row in rows if not row.valid)
    return ", ".join(f"{n} {state}" for state, n in states.most_common())


def _accuracy(scores: Sequence[ScoreRow], plan: Plan) -> Gate:
    seen = {row.record.point.point_id for row in scores}
    absent = [p.label for p in plan.points if p.mode == "evaluation" and p.point_id not in seen]
    answers = Counter[str](v.answer for row in scores for v in row.verdicts)
    failed = [row for row in scores if not row.verdicts]
    cases = [
        f"{row.record.point.label}: {row.score.task} {verdict.filter} {verdict.sentence}"
        for row in scores
        for verdict in row.verdicts
        if row.score and verdict.answer in ("fail", "undecided")
    ]
    cases += [
        f"{r.record.point.label}: {r.record.status} {r.record.status.sentence}" for r in failed
    ]
    cases += [f"{label}: not run" for label in absent]
    level: Level = "attention" if cases else "good"
    if answers["fail"]:
        level = "bad"
    if not scores and not absent:
        return Gate(name="Accuracy", level="note", sentence="No evaluation was planned.")
    return Gate(
        name="Accuracy", level=level, sentence=_scores(answers, len(failed)), items=tuple(cases)
    )


def _scores(answers: Counter[str], failed: int) -> str:
    words = {
        "pass": "at or above the bar",
        "fail": "below the bar",
        "undecided": "not decided (too few questions)",
        "no-bar": "without a bar",
    }
    told = [f"{answers[key]} {text}" for key, text in words.items() if answers[key]]
    told += [f"{count(failed, 'evaluation')} without a score"] if failed else []
    filters = f"Of {count(answers.total(), 'accuracy filter')}, " if answers else "Accuracy: "
    return f"{filters}{', '.join(told) or 'nothing measured'}."


def _requests(valid: Sequence[PointRow]) -> Gate:
    seen = [row.record.measurement.requests for row in valid if row.record.measurement]
    sent = sum(requests.ok + requests.errors for requests in seen)
    lost = sum(requests.errors + requests.cancelled for requests in seen)
    sentence = f"{count(sent, 'request')} in valid points, {lost} failed or cut"
    level: Level = "note" if lost else "good"
    return Gate(name="Requests", level=level, sentence=f"{sentence}; warm-up is not counted.")


def _acceptance(rows: Sequence[PointRow]) -> list[Gate]:
    told = [
        (row, row.record.point.arm.acceptance.length, row.record.counters.acceptance_length)
        for row in rows
        if row.record.point.arm.acceptance.mode == "synthetic" and row.record.counters
    ]
    pairs = [(row, asked, seen) for row, asked, seen in told if asked and seen]
    if not pairs:
        return []
    off = [row for row, _, _ in pairs if row.record.status.code == "acceptance-off"]
    within = [abs(seen / asked - 1) for row, asked, seen in pairs if row not in off]
    lengths = ", ".join(sorted({figure(asked) for _, asked, _ in pairs}))
    sentence = (
        f"Synthetic length {lengths} realised on {len(within)} of {count(len(pairs), 'point')}"
    )
    return [
        Gate(
            name="Acceptance",
            level="attention" if off else "good",
            sentence=f"{sentence}, at most {percent(max(within, default=0.0))} off.",
            items=tuple(_case(row) for row in off),
        )
    ]


def _coverage(rows: Sequence[PointRow]) -> Gate:
    lines = {row.series.number: row.series for row in rows}
    told, thin = [], False
    for number, series in lines.items():
        valid = [row for row in rows if row.series.number == number and row.valid]
        on = sum(NORTH_STAR.key in row.frontiers for row in valid)
        thin = thin or on < COVERAGE_ADVICE
        told.append(f"{series.label}: {on} of {len(valid)} valid points on the frontier")
    advice = f"advice is {COVERAGE_ADVICE} or more a curve"
    sentence = f"{count(len(lines), 'curve')}; {advice}."
    return Gate(
        name="Coverage", level="note" if thin else "good", sentence=sentence, items=tuple(told)
    )


def _noise(valid: Sequence[PointRow]) -> Gate:
    single = sum(row.runs == 1 for row in valid)
    if not single:
        return Gate(name="Noise", level="good", sentence="Every valid point was measured again.")
    sentence = f"{count(single, 'point')} measured once: which of two near points is better cannot"
    return Gate(name="Noise", level="note", sentence=f"{sentence} be told.")


def _ledger(plan: Plan) -> Gate:
    told = " + ".join(f"{number} {kind}" for kind, number in plan.counts.items() if number)
    whole = sum(plan.counts.values()) == plan.candidates
    sentence = f"{told or 'nothing'} = {count(plan.candidates, 'candidate')}"
    if whole:
        return Gate(name="Ledger", level="good", sentence=f"{sentence}.")
    return Gate(name="Ledger", level="bad", sentence=f"{sentence} does not add up.")
