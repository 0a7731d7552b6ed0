"""The evaluations of a report: each with its verdicts, and what to make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from infx.analysis.accuracy import judge_record
from infx.domain.axes import kebab
from infx.domain.point import Point, short
from infx.domain.record import PointRecord
from infx.report.figures import plain
from infx.report.model import RunData, ScoreRow
from infx.report.points import records_of

__all__ = ["scores_of", "told_apart"]

FEW_QUESTIONS = 100
"""Below this many, the 95 % interval of a share is wider than a fifth."""


def scores_of(runs: Sequence[RunData]) -> tuple[ScoreRow, ...]:
    """Return a row for each evaluation of each run: another run's is another sample of answers."""
    every = [one for one in records_of(runs) if one[1].point.mode == "evaluation"]
    seen: Counter[str] = Counter()
    servers = told_apart([record.point for _, record, _ in every])
    rows = []
    for run, record, origin in every:
        name = short(record.point.point_id)
        seen[name] += 1
        rows.append(
            ScoreRow(
                anchor=name if seen[name] == 1 else f"{name}-{seen[name]}",
                server=_server(record.point, servers),
                record=record,
                score=record.score,
                verdicts=tuple(judge_record(record)),
                note=_note(record),
                run=run.facts.run_id if len(runs) > 1 else "",
                reused=origin,
            )
        )
    return tuple(rows)


def told_apart(points: Sequence[Point]) -> dict[str, str]:
    """Return by its id what tells each point's server from the others of its entry: ``mono on``;
    empty where it has none."""
    entries: dict[str, list[Point]] = {}
    for point in points:
        entries.setdefault(point.entry, []).append(point)
    return {
        point.point_id: ", ".join(f"{kebab(name)} {plain(axes[name])}" for name in differing)
        for some in entries.values()
        for differing in [_differing(some)]
        for point in some
        for axes in [asdict(point.arm.axes)]
    }


def _differing(points: Sequence[Point]) -> list[str]:
    axes = [asdict(point.arm.axes) for point in points]
    return [name for name in axes[0] if any(one[name] != axes[0][name] for one in axes)]


def _server(point: Point, servers: Mapping[str, str]) -> str:
    apart = servers[point.point_id]
    return f"{point.entry} ({apart})" if apart else point.entry


def _note(record: PointRecord) -> str:
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
