"""What a reviewer asks first, answered from the records: the verdict sentence and its gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from infx.analysis.noise import Coverage
from infx.domain.hardware import Price
from infx.domain.plan import Plan
from infx.domain.point import Point
from infx.domain.record import PointRecord
from infx.report.figures import count
from infx.report.gates_of_cost import cost, energy
from infx.report.gates_of_curves import coverage, noise
from infx.report.gates_of_figures import acceptance, errors, mono, samples
from infx.report.gates_of_runs import baseline, images, workloads
from infx.report.model import Baseline, Gate, Level, PointRow, ScoreRow, Series

__all__ = ["Judged", "gates", "verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the gates are about. ``coverage`` is by the number of a series, ``prices`` by hardware;
    several ``plans`` are those of several runs."""

    rows: Sequence[PointRow]
    scores: tuple[ScoreRow, ...]
    plans: Sequence[Plan]
    series: tuple[Series, ...]
    coverage: Mapping[int, Coverage]
    prices: Mapping[str, Price]
    baseline: Baseline | None = None


def gates(judged: Judged) -> list[Gate]:
    """Return every gate in the order of its weight."""
    rows, scores, plans = judged.rows, judged.scores, judged.plans
    return [
        _points(rows, plans),
        _accuracy(scores, plans),
        *acceptance(rows),
        *mono(rows),
        *([baseline(judged.baseline, rows)] if judged.baseline else []),
        *_warnings(rows, scores),
        *_of_valid(judged),
        *workloads(judged.series),
        *images(rows),
        _ledger(plans),
    ]


def _of_valid(judged: Judged) -> list[Gate]:
    """Return the gates about figures; none where no point has any that count."""
    valid = [row for row in judged.rows if row.valid]
    if not valid:
        return []
    return [
        errors(valid),
        samples(valid),
        noise(valid),
        coverage(judged.series, judged.coverage),
        *cost(valid, judged.prices),
        *energy(valid),
    ]


def verdict(judged: Judged, answers: Sequence[Gate]) -> tuple[Level, str]:
    """Return the worst level of the gates and one sentence that says what came out.

    Points are counted once, however often they ran, out of all that were planned.
    """
    rows = judged.rows
    planned, valid = _planned(rows, judged.plans), {_id(row) for row in rows if row.valid}
    told = {gate.name: gate.sentence for gate in answers}
    rest = " ".join(told[name] for name in ("Accuracy", "Baseline") if name in told)
    if not planned:
        return _worst(answers), f"No throughput point was planned. {rest}"
    lost = Counter(_lost(rows)) + Counter({"not run": len(planned - {*map(_id, rows)})})
    if not valid:
        reasons = Counter(str(row.record.status) for row in rows)
        listed = _listed(reasons + Counter({"not run": lost["not run"]}))
        return "bad", f"No valid throughput point: {listed if rows else 'nothing was measured'}."
    on = {_id(row) for row in rows if row.on_frontier}
    first = f"{len(valid)} of {count(len(planned), 'throughput point')} valid"
    first += f" ({_listed(lost)})" if lost else ""
    return _worst(answers), f"{first}, {len(on)} on a frontier. {rest}"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {text}" for text, number in counts.most_common())


def _id(row: PointRow) -> str:
    return row.record.point.point_id


def _planned(rows: Sequence[PointRow], plans: Sequence[Plan]) -> set[str]:
    planned = {point.point_id for point in _of(plans, "throughput")}
    return planned | {_id(row) for row in rows}


def _lost(rows: Sequence[PointRow]) -> list[str]:
    """Return the last state of each point that has no valid measurement."""
    return ["without figures" if r.faults else r.record.status.state for r in rows if not r.valid]


def _worst(answers: Iterable[Gate]) -> Level:
    levels = {gate.level for gate in answers}
    for level in ("bad", "attention"):
        if level in levels:
            return level
    return "good"


def _points(rows: Sequence[PointRow], plans: Sequence[Plan]) -> Gate:
    planned = {p.point_id: p.label for p in _of(plans, "throughput")}
    seen = {_id(row) for row in rows}
    absent = [label for point_id, label in planned.items() if point_id not in seen]
    states = Counter(row.record.status.state for row in rows) + Counter({"not run": len(absent)})
    told = _listed(states)
    if not told:
        return Gate(name="Points", level="note", sentence="No throughput point was planned.")
    bad = [text for row in rows for text in _cases(row)]
    bad += [f"{label}: not run" for label in absent]
    level: Level = "attention" if bad else "good"
    if not any(row.valid for row in rows):
        level = "bad"
    again = sum(row.runs for row in rows) - sum(row.valid for row in rows)
    told += f"; {count(again, 'further measurement')} of the same points" if again else ""
    reused = sum(bool(row.reused) for row in rows)
    told += f"; {count(reused, 'point')} reused from other runs" if reused else ""
    lost = sum(len(row.lost) for row in rows if row.valid)
    told += f"; {count(lost, 'repeat')} without effect: not valid" if lost else ""
    return Gate(name="Points", level=level, sentence=f"{told}.", items=tuple(bad))


def _of(plans: Sequence[Plan], mode: str) -> list[Point]:
    return [point for plan in plans for point in plan.expected if point.mode == mode]


def _cases(row: PointRow) -> list[str]:
    """Return why the point does not count; of one that does, which repeats of it do not."""
    if row.faults:
        return [f"{row.record.point.label}: {row.record.status}, but {'; '.join(row.faults)}"]
    if not row.valid:
        return [_case(row.record)]
    return [f"{_case(record)} (a repeat of {row.runs} valid)" for record in row.lost]


def _case(record: PointRecord) -> str:
    return f"{record.point.label}: {record.status} {record.status.sentence}".rstrip()


def _accuracy(scores: Sequence[ScoreRow], plans: Sequence[Plan]) -> Gate:
    seen = {row.record.point.point_id for row in scores}
    planned = {p.point_id: p.label for p in _of(plans, "evaluation")}
    absent = [label for point_id, label in planned.items() if point_id not in seen]
    if not scores and not absent:
        return Gate(name="Accuracy", level="note", sentence="No evaluation was planned.")
    answers = Counter[str](v.answer for row in scores for v in row.verdicts)
    unjudged = [row for row in scores if not row.verdicts]
    cases = [*_undecided(scores), *(_case(row.record) for row in unjudged)]
    cases += [f"{label}: not run" for label in absent]
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


def _ledger(plans: Sequence[Plan]) -> Gate:
    told = [_conserved(plan) for plan in plans]
    broken = tuple(text for text, whole in told if not whole)
    level: Level = "bad" if broken else "good"
    return Gate(name="Ledger", level=level, sentence=" ".join(text for text, _ in told))


def _conserved(plan: Plan) -> tuple[str, bool]:
    """Return the plan's sum in words, and whether it adds up."""
    told = " + ".join(f"{number} {kind}" for kind, number in plan.counts.items() if number)
    sentence = f"{told or 'nothing'} = {count(plan.candidates, 'candidate')}"
    whole = sum(plan.counts.values()) == plan.candidates
    return (f"{sentence}.", True) if whole else (f"{sentence} does not add up.", False)
