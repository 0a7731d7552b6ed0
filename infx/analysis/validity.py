"""May a measurement enter a frontier? Every rule, its code, its limit.

A rule looks at the evidence and says what is wrong, with figures. All rules are asked; the first
that finds an error decides the status, so the order below goes from "this is not the run" over "the
run did not go well" to "the server was not the one that was planned".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from infx.analysis import evaluation_rules, rules, server_rules, session_rules
from infx.analysis.asked import PAUSE_S, Asked, read_asked
from infx.analysis.energy import metered
from infx.analysis.evidence import Evidence, Limits
from infx.analysis.export import Export, read_export
from infx.analysis.measurements import measure
from infx.domain.errors import MeasurementError, UsageError
from infx.domain.findings import Finding, Where
from infx.domain.point import Accuracy, Agentic, Point
from infx.domain.record import Measurement, PointRecord
from infx.domain.status import OK, Status

__all__ = ["Limits", "Verdict", "judge", "judge_folder"]

_RULES = (
    rules.nothing_succeeded,
    rules.unreadable,
    rules.stale,
    rules.interrupted,
    rules.incomplete,
    session_rules.overflowed,
    rules.unsafe_scenario,
    rules.asked_unknown,
    rules.without_figures,
    rules.errors,
    rules.cancelled_in_flight,
    rules.window_short,
    rules.requests_missing,
    rules.osl_mismatch,
    rules.text_missing,
    rules.concurrency_off,
    session_rules.lanes_idle,
    session_rules.warm_up_short,
    rules.clock_skew,
    rules.clocks_disagree,
    rules.clock_steps,
    server_rules.acceptance_off,
    server_rules.mono_coverage,
    server_rules.preemption_storm,
    server_rules.prefix_cache_hits,
)

_EVALUATION_RULES = (
    evaluation_rules.no_score,
    evaluation_rules.empty_answers,
    evaluation_rules.cut_answers,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``ok`` or ``invalid:<code>``, every finding, and the figures where there are any."""

    status: Status
    findings: tuple[Finding, ...] = field(default=())
    measurement: Measurement | None = None


def judge_folder(folder: Path, limits: Limits | None = None, gpus: int = 1) -> Verdict:
    """Return the verdict on any aiperf artifact folder, ours or not.

    What was asked is read from the export's own ``input_config``; throughput is divided by
    ``gpus``. Raises UsageError (``not-artifacts``) when the folder holds no export.
    """
    export = read_export(folder)
    asked = read_asked(export.summary.input_config) if export.summary else Asked()
    return _verdict(_evidence(export, asked, gpus, limits or Limits()))


def judge(record: PointRecord, run_dir: Path, limits: Limits | None = None) -> PointRecord:
    """Return ``record`` with its verdict: ``measured`` becomes ``ok`` or ``invalid:<code>``.

    A throughput point gets its measurement from ``artifacts["aiperf"]`` under ``run_dir``, and is
    compared with the plan; so is the server of an evaluation. Findings that the job left (a server
    that is not configured as planned) count too. A record in any other state comes back as it is.
    """
    if record.status.state != "measured":
        return record
    if isinstance(record.point.workload, Accuracy):
        return _with_verdict(record, _evaluated(record, limits or Limits()))
    folder = run_dir / record.artifacts.get("aiperf", "")
    try:
        export = read_export(folder)
    except UsageError as error:
        missing = Finding("no-export", "error", error.message, Where(str(folder)))
        return _with_verdict(record, Verdict(status=OK, findings=(missing,)))
    asked = _asked(record.point)
    evidence = _evidence(export, asked, record.point.gpus, limits or Limits(), record)
    return _metered(_with_verdict(record, _verdict(evidence)), export, run_dir)


def _evidence(
    export: Export, asked: Asked, gpus: int, limits: Limits, record: PointRecord | None = None
) -> Evidence:
    measurement, fault = None, None
    try:
        measurement = measure(export, asked, gpus)
    except MeasurementError as error:
        fault = Finding(error.code, "error", error.message, Where(str(export.folder)))
    return Evidence(
        export=export,
        asked=asked,
        limits=limits,
        measurement=measurement,
        fault=fault,
        record=record,
    )


def _verdict(evidence: Evidence) -> Verdict:
    findings = _distinct(finding for rule in _RULES for finding in rule(evidence))
    return Verdict(status=_status(findings), findings=findings, measurement=evidence.measurement)


def _evaluated(record: PointRecord, limits: Limits) -> Verdict:
    findings = tuple(found for rule in _EVALUATION_RULES for found in rule(record, limits))
    return Verdict(status=_status(findings), findings=findings)


def _with_verdict(record: PointRecord, verdict: Verdict) -> PointRecord:
    differing = server_rules.config_differs(record)
    findings = _distinct((*verdict.findings, *differing, *record.findings))
    return replace(
        record, status=_status(findings), findings=findings, measurement=verdict.measurement
    )


def _metered(record: PointRecord, export: Export, run_dir: Path) -> PointRecord:
    """Return ``record`` with what its accelerators drew, where the job logged that."""
    log = record.artifacts.get("power")
    if log is None or record.measurement is None:
        return record
    window = min(export.records.start_ns) / 1e9, max(export.records.end_ns) / 1e9
    energy, findings = metered(run_dir / log, window, record.measurement, record.point.gpus)
    return replace(record, energy=energy, findings=(*record.findings, *findings))


def _status(findings: Iterable[Finding]) -> Status:
    first = next((finding for finding in findings if finding.level == "error"), None)
    return Status("invalid", first.code, first.sentence) if first else OK


def _distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings in order, each statement once (the fault may be seen by two rules)."""
    return tuple({(finding.code, finding.sentence): finding for finding in findings}.values())


def _asked(point: Point) -> Asked:
    workload = point.workload
    assert not isinstance(workload, Accuracy)
    if isinstance(workload, Agentic):
        return Asked(
            lanes=point.conc,
            pause_s=PAUSE_S,
            duration_s=workload.duration_s,
            error_share=workload.error_share,
        )
    return Asked(
        conc=point.conc,
        requests=None if workload.duration_s else workload.requests,
        osl=workload.osl,
        duration_s=workload.duration_s,
        error_share=workload.error_share,
    )
