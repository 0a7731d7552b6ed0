"""From records and plans to the report's model: a pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infx.domain.hardware import Price
from infx.domain.plan import Plan
from infx.domain.record import PointRecord
from infx.report.arms import arm_details, environment
from infx.report.baseline import baseline_of, compared_with, with_changes
from infx.report.charts import charts_of, on_frontiers
from infx.report.filters import filters_of
from infx.report.gates import Judged, gates, verdict
from infx.report.ledger import counts_of, exclusions, left_out_of
from infx.report.lines import bands_of, coverage_of, with_chances
from infx.report.model import Baseline, PointRow, ReportModel, RunData, RunFacts
from infx.report.points import records_of, reused_of, rows_of, series_of
from infx.report.scores import scores_of

__all__ = ["LEFT_OUT_SHOWN", "build", "build_runs"]

LEFT_OUT_SHOWN = 200
"""Candidates that were not run are listed up to here (each is about 150 bytes of page)."""

Prices = Mapping[str, Price]


def build(records: Sequence[PointRecord], plan: Plan, facts: RunFacts) -> ReportModel:
    """Return the report of one run. Points of the plan without a record count as not run."""
    return build_runs([RunData(facts=facts, plan=plan, records=tuple(records))])


def build_runs(
    runs: Sequence[RunData], baseline: Sequence[RunData] = (), prices: Prices | None = None
) -> ReportModel:
    """Return one report of all ``runs`` (at least one), beside the ``baseline``.

    A point that several hold is one row: its records are repeats. ``prices`` are those of an
    accelerator by the name of its hardware.
    """
    prices = prices or {}
    rows, before = _rows(runs, baseline, prices)
    rows, since = _since(runs, baseline, rows, before)
    plans = list({(run.plan.plan_id, run.plan.candidates): run.plan for run in runs}.values())
    records = [record for _, record, _ in records_of(runs)]
    judged = Judged(
        rows=rows,
        scores=scores_of(runs),
        plans=plans,
        series=tuple({row.series.number: row.series for row in rows}.values()),
        coverage=coverage_of(rows),
        prices=prices,
        baseline=since,
    )
    answers = gates(judged)
    level, sentence = verdict(judged, answers)
    return ReportModel(
        runs=tuple(run.facts for run in runs),
        level=level,
        verdict=sentence,
        gates=tuple(answers),
        series=judged.series,
        charts=charts_of(rows, bands_of(rows)),
        rows=tuple(rows),
        scores=judged.scores,
        counts=counts_of(plans),
        candidates=sum(plan.candidates for plan in plans),
        excluded_by=exclusions(plans),
        left_out=left_out_of(plans)[:LEFT_OUT_SHOWN],
        plan_findings=tuple(found for plan in plans for found in plan.findings),
        arms=arm_details(records),
        environment=environment(records),
        baseline=since,
        filters=filters_of(rows),
        coverage=judged.coverage,
        prices=prices,
        origins={name: folder for run in runs for name, folder in run.origins.items()},
    )


def _rows(
    runs: Sequence[RunData], baseline: Sequence[RunData], prices: Prices
) -> tuple[list[PointRow], list[PointRow]]:
    """Return the rows of the runs and those of the baseline; a line that both have is one."""
    points = [point for run in (*runs, *baseline) for point in run.plan.expected]
    points += [record.point for run in (*runs, *baseline) for record in run.records]
    series = series_of(points)
    usd_gpu_hour = {name: price.usd_gpu_hour for name, price in prices.items()}

    def rows_in(some: Sequence[RunData]) -> list[PointRow]:
        seen = [record for _, record, _ in records_of(some)]
        found = rows_of(seen, series, usd_gpu_hour, reused_of(some))
        return on_frontiers(found, usd_gpu_hour)

    return with_chances(rows_in(runs)), rows_in(baseline)


def _since(
    runs: Sequence[RunData],
    baseline: Sequence[RunData],
    rows: Sequence[PointRow],
    before: Sequence[PointRow],
) -> tuple[list[PointRow], Baseline | None]:
    if not baseline:
        return list(rows), None
    found = compared_with(runs, baseline)
    changed = with_changes(rows, found)
    return changed, baseline_of(baseline, found, changed, before)
