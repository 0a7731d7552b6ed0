"""The rules about a client's run, one function each: evidence in, findings with figures out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import lt, sub

from infx.analysis.evidence import Evidence, Findings, beyond, error, percent, warning
from infx.analysis.measurements import account, steady_conc
from infx.analysis.records import Records
from infx.domain.artifacts import RECORDS, SUMMARY
from infx.domain.findings import Finding
from infx.domain.point import Agentic

__all__ = [
    "asked_unknown",
    "cancelled_in_flight",
    "clock_skew",
    "clock_steps",
    "clocks_disagree",
    "concurrency_off",
    "errors",
    "incomplete",
    "interrupted",
    "nothing_succeeded",
    "osl_mismatch",
    "requests_missing",
    "stale",
    "text_missing",
    "unreadable",
    "unsafe_scenario",
    "window_short",
    "without_figures",
]

_OVERRIDE = "unsafe_override"
"""aiperf's reason for a scenario that was run with its rules set aside."""


def nothing_succeeded(evidence: Evidence) -> Findings:
    """Every request failed: aiperf then writes no summary, so this comes before its absence."""
    seen = account(evidence.export)
    if seen.errors and not seen.ok:
        yield error(
            "no-requests", f"none of {seen.errors} requests succeeded: {_categories(evidence)}"
        )


def unreadable(evidence: Evidence) -> Findings:
    """A part of the export is missing, cut or not what aiperf writes."""
    yield from evidence.export.findings


def stale(evidence: Evidence) -> Findings:
    """The export is of an earlier run: a failing aiperf leaves an old summary in its folder."""
    export, records = evidence.export, evidence.export.records
    counted = export.summary.completed_request_count if export.summary else None
    if counted and counted.avg is not None and counted.avg != len(records):
        text = f"{SUMMARY} counts {counted.avg:g} requests, {RECORDS} holds {len(records)}"
        yield error("stale-export", f"{text}: they are not of one run")
    started_s = evidence.record.attempt.started_s if evidence.record else 0.0
    first_s = min(records.start_ns, default=math.inf) / 1e9
    if first_s < started_s - evidence.limits.clock_s:
        early = f"the first request was sent {started_s - first_s:.1f} s before the attempt began"
        yield error("stale-export", early)


def interrupted(evidence: Evidence) -> Findings:
    """A signal stopped aiperf, which then exits 0 with a summary of what it had."""
    summary = evidence.export.summary
    if summary and summary.was_cancelled:
        done, asked = len(evidence.export.records), evidence.asked.requests
        reached = f"{done} of {asked} requests" if asked else f"{done} requests"
        yield error("interrupted-run", f"aiperf was interrupted after {reached}")


def incomplete(evidence: Evidence) -> Findings:
    """aiperf itself says that records are missing."""
    summary = evidence.export.summary
    if summary and not summary.is_complete:
        reason = summary.incomplete_reason or "is_complete is false"
        yield error("incomplete-run", f"aiperf says: {reason}")


def unsafe_scenario(evidence: Evidence) -> Findings:
    """A published scenario ran with one of its own rules switched off: an error, unless the point
    was planned so."""
    metadata = (evidence.export.summary.metadata if evidence.export.summary else None) or {}
    if metadata.get("submission_valid") is False:
        told = metadata.get("submission_invalid_reasons") or ("no reason",)
        reasons = ", ".join(map(str, told if isinstance(told, list | tuple) else (told,)))
        text = f"{metadata.get('scenario', 'the scenario')} is not valid for submission: {reasons}"
        load = evidence.record.point.workload if evidence.record else None
        faults = load.submission_faults if isinstance(load, Agentic) else ()
        if faults and reasons == _OVERRIDE:
            yield warning("own-scenario", f"{text}, as planned ({'; '.join(faults)})")
        else:
            yield error("unsafe-scenario", text)


def asked_unknown(evidence: Evidence) -> Findings:
    """An export of another schema does not tell what it was asked: then much cannot be checked."""
    if evidence.asked.unread:
        text = "not checked: the number of requests, the duration, output lengths and concurrency"
        yield warning(
            "asked-unknown", f"what was asked is unknown ({evidence.asked.unread}); {text}"
        )


def without_figures(evidence: Evidence) -> Findings:
    """A figure has no value: nothing ran, or a successful request lacks a metric."""
    if evidence.fault:
        yield evidence.fault


def errors(evidence: Evidence) -> Findings:
    """Failed requests leave the latencies, so too many of them make survivors look good."""
    seen = account(evidence.export)
    limit = evidence.asked.error_share
    if not seen.errors:
        return
    share = seen.errors / seen.profiled
    text = f"{seen.errors} of {seen.profiled} requests failed ({percent(share)})"
    sentence = f"{text}, limit {percent(limit)}: {_categories(evidence)}"
    yield Finding("errors", beyond(share, limit), sentence)


def cancelled_in_flight(evidence: Evidence) -> Findings:
    """The end of a timed run cut requests that appear in no export, only in the log."""
    cancelled, limit = evidence.export.cancelled, evidence.limits.cancelled_share
    if cancelled is None and (evidence.asked.duration_s or evidence.asked.unread):
        kind = "a timed run" if evidence.asked.duration_s else "a run that may be timed"
        text = f"{kind} without aiperf's log: requests cut at the end cannot be counted"
        yield error("cancelled-in-flight", text)
    if not cancelled:
        return
    total = len(evidence.export.records) + cancelled
    text = f"{cancelled} of {total} requests were cut in flight ({percent(cancelled / total)})"
    level = beyond(cancelled / total, limit)
    yield Finding("cancelled-in-flight", level, f"{text}, limit {percent(limit)}")


def window_short(evidence: Evidence) -> Findings:
    """A timed run shows its time, or what it shows is not what was planned."""
    done, asked = len(evidence.export.records), evidence.asked
    reached = asked.requests is not None and done >= asked.requests
    if not asked.duration_s or not evidence.measurement or reached:
        return
    seen, least = evidence.measurement.window_s, evidence.limits.window_share * asked.duration_s
    least -= 2 * asked.pause_s  # sessions may be silent at both ends
    if seen < least:
        text = f"the window is {seen:.4g} s long, asked {asked.duration_s:g} s"
        yield error("window-short", f"{text}, at least {least:.4g} s")


def requests_missing(evidence: Evidence) -> Findings:
    """Every asked request left a record, or the sample is not the planned one."""
    done, asked = len(evidence.export.records), evidence.asked.requests
    if asked is not None and done < asked and evidence.asked.duration_s is None:
        yield error("requests-missing", f"{done} of {asked} requests have a record")


def osl_mismatch(evidence: Evidence) -> Findings:
    """Throughput and E2EL of shorter or longer outputs answer another question."""
    measurement = evidence.measurement
    if measurement and measurement.osl_mismatches:
        text = f"{measurement.osl_mismatches} of {measurement.requests.ok} outputs"
        long = f"{evidence.asked.osl} tokens long" if evidence.asked.osl else "as long as recorded"
        yield error("osl-mismatch", f"{text} are not {long} (mean {measurement.osl.mean:.4g})")
    ok = evidence.export.records.succeeded()
    untold = ok.metrics["osl_mismatch_diff_pct"].count(None) if evidence.asked.lanes else 0
    if untold:
        text = f"{untold} of {len(ok)} answers do not tell how long their trace wants them"
        yield warning("asked-unknown", f"{text}: the length of these is not checked")


def text_missing(evidence: Evidence) -> Findings:
    """The server says that it sent tokens which the client did not see: streams ended early."""
    answers, least = evidence.export.records.succeeded(), evidence.limits.text_share
    ok = answers.metrics
    pairs = zip(ok["output_sequence_length"], ok["usage_completion_tokens"], strict=True)
    short = [(n, of) for n, of in pairs if n is not None and of and not n >= of * least]
    if not short:
        return
    seen, counted = (math.fsum(values) / len(short) for values in zip(*short, strict=True))
    text = f"{len(short)} of {len(answers)} outputs hold less than "
    text += f"{percent(least)} of the tokens that the server"
    level = beyond(len(short) / len(answers), evidence.asked.error_share)
    yield Finding("osl-mismatch", level, f"{text} counted (mean {seen:.4g} of {counted:.4g})")


def concurrency_off(evidence: Evidence) -> Findings:
    """A closed loop keeps the asked number in flight between its ramp and its drain.

    The client's view counts a request that waits in the server's queue, so max-num-seqs has no
    part in it. With as many requests as lanes everything is sent at once and there is nothing to
    judge; with fewer, the asked number was never in flight.
    """
    records, asked = evidence.export.records, evidence.asked.conc
    sent = len(records) + (evidence.export.cancelled or 0)
    if not asked or not len(records):
        return
    if sent < asked:
        text = f"{sent} requests were sent for {asked} lanes: never {asked} in flight"
        yield error("concurrency-off", text)
    if len(records) <= asked:
        return
    seen, slack = steady_conc(records, asked), evidence.limits.conc_share
    if abs(seen - asked) > asked * slack:
        text = f"{seen:.2f} requests in flight on average, asked {asked}"
        yield error("concurrency-off", f"{text} (±{percent(slack)})")


def clock_skew(evidence: Evidence) -> Findings:
    """Times that cannot be: an end before its start, or after the attempt ended."""
    records = evidence.export.records
    backwards = sum(map(lt, records.end_ns, records.start_ns))
    if backwards:
        yield error("clock-skew", f"{backwards} of {len(records)} requests end before they start")
    ended_s = evidence.record.attempt.ended_s if evidence.record else 0.0
    late_s = max(records.end_ns, default=0) / 1e9 - ended_s
    if ended_s and late_s > evidence.limits.clock_s:
        text = f"the last answer ended {late_s:.1f} s after the attempt did"
        yield error("clock-skew", text)


def clocks_disagree(evidence: Evidence) -> Findings:
    """A request's E2EL, which the client takes by a clock that nobody sets, is about as long as the
    time between its start and its end, which the window is made of. About: it ends with the last
    token, and a stream is closed a step or so later."""
    records, slack_ms = evidence.export.records, evidence.limits.clock_s * 1000
    triples = zip(records.start_ns, records.end_ns, records.metrics["request_latency"], strict=True)
    apart = [
        off_ms
        for start, end, e2el_ms in triples
        if e2el_ms is not None
        and (off_ms := abs((end - start) / 1e6 - e2el_ms)) > max(slack_ms, e2el_ms / 2)
    ]
    if apart:
        text = f"{len(apart)} of {len(records)} requests have an E2EL that is up to"
        yield error("clock-skew", f"{text} {max(apart) / 1000:.3g} s off their start and end")


def clock_steps(evidence: Evidence) -> Findings:
    """A clock that was set during the run moves the window, and with it every rate.

    Backwards it shows where a request became due before the one that was sent ahead of it.
    Forwards it shows only when the window is longer than the client ran by a clock that nobody
    sets.
    """
    records, limits = evidence.export.records, evidence.limits
    due_ns = _due_in_order(records)
    back_s = max(map(sub, due_ns, due_ns[1:]), default=0) / 1e9
    if back_s > limits.clock_step_s:
        yield error("clock-skew", f"the client's clock was set back by {back_s:.3g} s in the run")
    ran_s = evidence.record.phases_s.get("client") if evidence.record else None
    seen_s = evidence.measurement.window_s if evidence.measurement else 0.0
    if ran_s and seen_s > ran_s + limits.clock_step_s:
        text = f"the window is {seen_s:.4g} s long, and the client ran {ran_s:.4g} s"
        yield error("clock-skew", f"{text}: its clock was set forward in the run")


def _categories(evidence: Evidence) -> str:
    by_category: Mapping[str, int] = account(evidence.export).errors_by_category
    return ", ".join(f"{count} {name}" for name, count in by_category.items())


def _due_in_order(records: Records) -> list[int]:
    """Return when the requests became due (ns), in the order of their numbers."""
    pairs = zip(records.order, records.due_ns, strict=True)
    told = [(number, due) for number, due in pairs if number is not None and due is not None]
    return [due for _, due in sorted(told)]
