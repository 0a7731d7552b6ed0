"""The validity rules, one function each: evidence in, findings out, figures in every sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from infx.analysis.evidence import Evidence
from infx.analysis.export import RECORDS, SUMMARY
from infx.analysis.measurements import account, steady_conc
from infx.domain.acceptance import Acceptance, distribution, moments
from infx.domain.axes import AXES, is_load, kebab, snake
from infx.domain.findings import Finding, Level
from infx.domain.record import EngineCounters

__all__ = [
    "acceptance_off",
    "cancelled_in_flight",
    "clock_skew",
    "concurrency_off",
    "config_differs",
    "errors",
    "incomplete",
    "interrupted",
    "mono_coverage",
    "nothing_succeeded",
    "osl_mismatch",
    "preemption_storm",
    "requests_missing",
    "stale",
    "unreadable",
    "unsafe_scenario",
    "without_figures",
]

Findings = Iterator[Finding]


def nothing_succeeded(evidence: Evidence) -> Findings:
    """Every request failed: aiperf then writes no summary, so this comes before its absence."""
    seen = account(evidence.export)
    if seen.errors and not seen.ok:
        yield _error(
            "no-requests", f"none of {seen.errors} requests succeeded: {_categories(evidence)}"
        )


def unreadable(evidence: Evidence) -> Findings:
    """A part of the export is missing, cut or not what aiperf writes."""
    yield from evidence.export.findings


def stale(evidence: Evidence) -> Findings:
    """The export is of an earlier run: a failing aiperf leaves an old summary in its folder."""
    export, profiled = evidence.export, evidence.export.profiled
    counted = export.summary.completed_request_count if export.summary else None
    if counted and counted.avg is not None and counted.avg != len(profiled):
        text = f"{SUMMARY} counts {counted.avg:g} requests, {RECORDS} holds {len(profiled)}"
        yield _error("stale-export", f"{text}: they are not of one run")
    started_s = evidence.record.attempt.started_s if evidence.record else 0.0
    first_s = min((row.metadata.request_start_ns for row in profiled), default=math.inf) / 1e9
    if first_s < started_s - evidence.limits.clock_s:
        early = f"the first request was sent {started_s - first_s:.1f} s before the attempt began"
        yield _error("stale-export", early)


def interrupted(evidence: Evidence) -> Findings:
    """A signal stopped aiperf, which then exits 0 with a summary of what it had."""
    summary = evidence.export.summary
    if summary and summary.was_cancelled:
        done, asked = len(evidence.export.profiled), evidence.asked.requests
        reached = f"{done} of {asked} requests" if asked else f"{done} requests"
        yield _error("interrupted-run", f"aiperf was interrupted after {reached}")


def incomplete(evidence: Evidence) -> Findings:
    """aiperf itself says that records are missing."""
    summary = evidence.export.summary
    if summary and not summary.is_complete:
        reason = summary.incomplete_reason or "is_complete is false"
        yield _error("incomplete-run", f"aiperf says: {reason}")


def unsafe_scenario(evidence: Evidence) -> Findings:
    """A published scenario ran with one of its own rules switched off."""
    metadata = evidence.export.summary.metadata if evidence.export.summary else {}
    if metadata.get("submission_valid") is False:
        reasons = ", ".join(map(str, metadata.get("submission_invalid_reasons", ()))) or "no reason"
        name = metadata.get("scenario", "the scenario")
        yield _error("unsafe-scenario", f"{name} is not valid for submission: {reasons}")


def without_figures(evidence: Evidence) -> Findings:
    """A figure has no value: nothing ran, or a successful request lacks a metric."""
    if evidence.fault:
        yield evidence.fault


def errors(evidence: Evidence) -> Findings:
    """Failed requests leave the latencies, so too many of them make survivors look good."""
    seen = account(evidence.export)
    profiled, limit = seen.ok + seen.errors, evidence.asked.error_share
    if not seen.errors:
        return
    share = seen.errors / profiled
    text = f"{seen.errors} of {profiled} requests failed ({_percent(share)})"
    sentence = f"{text}, limit {_percent(limit)}: {_categories(evidence)}"
    yield Finding("errors", _beyond(share, limit), sentence)


def cancelled_in_flight(evidence: Evidence) -> Findings:
    """The end of a timed run cut requests that appear in no export, only in the log."""
    cancelled, limit = evidence.export.cancelled, evidence.limits.cancelled_share
    if cancelled is None and evidence.asked.duration_s:
        text = "a timed run without aiperf's log: requests cut at the end cannot be counted"
        yield _error("cancelled-in-flight", text)
    if not cancelled:
        return
    total = len(evidence.export.profiled) + cancelled
    text = f"{cancelled} of {total} requests were cut in flight ({_percent(cancelled / total)})"
    level = _beyond(cancelled / total, limit)
    yield Finding("cancelled-in-flight", level, f"{text}, limit {_percent(limit)}")


def requests_missing(evidence: Evidence) -> Findings:
    """Every asked request left a record, or the sample is not the planned one."""
    done, asked = len(evidence.export.profiled), evidence.asked.requests
    if asked is not None and done < asked and evidence.asked.duration_s is None:
        yield _error("requests-missing", f"{done} of {asked} requests have a record")


def osl_mismatch(evidence: Evidence) -> Findings:
    """Throughput and E2EL of shorter or longer outputs answer another question."""
    measurement = evidence.measurement
    if measurement and measurement.osl_mismatches:
        text = f"{measurement.osl_mismatches} of {measurement.requests.ok} outputs"
        yield _error(
            "osl-mismatch",
            f"{text} are not {evidence.asked.osl} tokens long (mean {measurement.osl.mean:.4g})",
        )


def concurrency_off(evidence: Evidence) -> Findings:
    """A closed loop keeps the asked number in flight, but for its ends.

    The client's view counts a request that waits in the server's queue, so max-num-seqs has no
    part in it. The mean is taken from the first request sent to the last one *sent*: afterwards
    lanes drain, which in a short run would look like too little load. With no more requests than
    lanes everything is sent at once and there is nothing to judge.
    """
    rows, asked = evidence.export.profiled, evidence.asked.conc
    if not asked or len(rows) <= asked:
        return
    seen, slack = steady_conc(rows), evidence.limits.conc_share
    if abs(seen - asked) > asked * slack:
        text = f"{seen:.2f} requests in flight on average, asked {asked}"
        yield _error("concurrency-off", f"{text} (±{_percent(slack)})")


def clock_skew(evidence: Evidence) -> Findings:
    """Times that cannot be: an end before its start, or after the attempt ended."""
    times = [row.metadata for row in evidence.export.profiled]
    backwards = sum(time.request_end_ns < time.request_start_ns for time in times)
    if backwards:
        yield _error("clock-skew", f"{backwards} of {len(times)} requests end before they start")
    ended_s = evidence.record.attempt.ended_s if evidence.record else 0.0
    late_s = max((time.request_end_ns for time in times), default=0) / 1e9 - ended_s
    if ended_s and late_s > evidence.limits.clock_s:
        text = f"the last answer ended {late_s:.1f} s after the attempt did"
        yield _error("clock-skew", text)


def acceptance_off(evidence: Evidence) -> Findings:
    """Synthetic acceptance must be realised, within chance: ±max(1 %, 4σ of the law's mean)."""
    record = evidence.record
    if record is None or record.point.arm.acceptance.mode != "synthetic":
        return
    asked, counters = record.point.arm.acceptance, record.counters or EngineCounters()
    if asked.length is None or counters.acceptance_length is None:
        text = f"the engine does not tell its acceptance length, asked {asked.length}"
        yield _error("acceptance-off", text)
        return
    limits = evidence.limits
    chance = limits.acceptance_sigmas * _sigma(asked, asked.length, counters.verify_steps)
    slack = max(limits.acceptance_share * asked.length, chance)
    if not abs(counters.acceptance_length - asked.length) <= slack:
        text = f"realised acceptance length {counters.acceptance_length:.4f}, asked {asked.length}"
        yield _error("acceptance-off", f"{text} ±{slack:.4f} ({counters.verify_steps} steps)")


def mono_coverage(evidence: Evidence) -> Findings:
    """A point that claims mono must have been served by it."""
    record = evidence.record
    if record is None or record.point.arm.axes.mono != "on":
        return
    coverage = record.counters.mono_coverage if record.counters else None
    if coverage is None or coverage < evidence.limits.mono_coverage:
        told = "an unknown share" if coverage is None else _percent(coverage)
        text = f"mono served {told} of its eligible steps, at least"
        yield _error("mono-coverage", f"{text} {_percent(evidence.limits.mono_coverage)}")


def preemption_storm(evidence: Evidence) -> Findings:
    """Requests that are thrown out and prefilled again measure the cache, not the server."""
    record, done = evidence.record, len(evidence.export.profiled)
    preemptions = (record.counters.preemptions if record and record.counters else 0) or 0
    limit = evidence.limits.preemptions_a_request
    if preemptions > limit * done:
        text = f"{preemptions} preemptions over {done} requests"
        yield _error("preemption-storm", f"{text}, limit {limit:g} a request")


def config_differs(evidence: Evidence) -> Findings:
    """What the running server reports is what the plan asked, axis by axis, where both speak."""
    record = evidence.record
    if record is None:
        return
    server = {snake(name): value for name, value in record.provenance.server.items()}
    for name in AXES:
        planned, running = getattr(record.point.arm.axes, name), server.get(name)
        if is_load(name) or _silent(planned) or _silent(running) or _same(planned, running):
            continue
        text = f"the server runs {kebab(name)}={running}, planned {_plain(planned)}"
        yield _error("config-differs", text)


def _sigma(asked: Acceptance, length: float, steps: int | None) -> float:
    """Return σ of the mean of ``steps`` draws; without its curve a law is taken at its widest."""
    if not steps:
        return 0.0
    if asked.law == "from-curve":
        variance = (asked.k / 2) ** 2
    else:
        _, variance = moments(distribution(asked.law, length, asked.k))
    return math.sqrt(variance / steps)


def _silent(value: object) -> bool:
    return value is None or value in ("", "auto", "unknown") or value == () or value == []


def _same(planned: object, running: object) -> bool:
    return bool(_plain(planned) == _plain(running))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _categories(evidence: Evidence) -> str:
    by_category: Mapping[str, int] = account(evidence.export).errors_by_category
    return ", ".join(f"{count} {name}" for name, count in by_category.items())


def _beyond(share: float, limit: float) -> Level:
    return "error" if share > limit else "warning"


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _error(code: str, sentence: str) -> Finding:
    return Finding(code, "error", sentence)
