"""The report as plain data: what ``infx report --json`` prints, for programs that read it on."""

from __future__ import annotations

from typing import Any

from infx.analysis.metrics import METRICS
from infx.report.model import Baseline, PointRow, ReportModel, ScoreRow

__all__ = ["data_of"]


def data_of(model: ReportModel) -> dict[str, Any]:
    """Return the report in dicts, lists, numbers and texts (with dataclasses as values).

    ``metrics`` says what the keys of figures mean; figures are in its units. ``charts`` and a
    point's ``frontiers`` are pairs (metric across, metric up), ``deciding`` is one of them. A
    point's ``line`` is the number of one of ``lines``.
    """
    return {
        "runs": model.runs,
        "level": model.level,
        "verdict": model.verdict,
        "gates": model.gates,
        "metrics": {
            key: {"title": metric.title, "unit": metric.unit, "better": metric.better}
            for key, metric in METRICS.items()
        },
        "deciding": model.charts[0].key,
        "charts": [chart.key for chart in model.charts],
        "lines": [
            {
                "number": series.number,
                "label": series.label,
                "entry": series.entry,
                "workload": series.workload,
                "coverage": model.coverage.get(series.number),
                "band": model.charts[0].bands.get(series.number),
            }
            for series in model.series
        ],
        "points": [_point(row) for row in model.rows],
        "scores": [_score(row) for row in model.scores],
        "ledger": {"candidates": model.candidates, **model.counts},
        "excluded_by": model.excluded_by,
        "prices": model.prices,
        "baseline": _baseline(model.baseline) if model.baseline else None,
    }


def _point(row: PointRow) -> dict[str, Any]:
    record = row.record
    return {
        "id": record.point.point_id,
        "label": record.point.label,
        "line": row.series.number,
        "conc": record.point.conc,
        "state": record.status.state,
        "code": record.status.code,
        "sentence": record.status.sentence,
        "faults": row.faults,
        "valid": row.valid,
        "runs": row.runs,
        "figures": row.figures,
        "frontiers": sorted(row.frontiers),
        "chance": row.chance,
        "reused": row.reused,
        "repro": row.repro,
        "findings": record.findings,
        "baseline": row.baseline,
    }


def _score(row: ScoreRow) -> dict[str, Any]:
    point, status = row.record.point, row.record.status
    return {
        "id": point.point_id,
        "label": point.label,
        "run": row.record.attempt.run_id,
        "state": status.state,
        "code": status.code,
        "score": row.score,
        "verdicts": row.verdicts,
        "note": row.note,
        "reused": row.reused,
    }


def _baseline(since: Baseline) -> dict[str, Any]:
    return {
        "runs": since.runs,
        "compared": since.compared,
        "same": since.same,
        "settings": since.settings,
        "added": since.added,
        "dropped": since.dropped,
        "broken": since.broken,
        "left_out": since.left_out,
        "verdicts": since.verdicts,
        "lines": since.lines,
        "sentences": since.sentences,
    }
