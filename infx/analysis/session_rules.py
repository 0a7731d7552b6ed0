"""The rules about recorded sessions, one function each: evidence in, findings with figures out."""

from __future__ import annotations

from infx.analysis.evidence import Evidence, Findings, beyond, error, percent, warning
from infx.domain.findings import Finding
from infx.domain.point import Agentic

__all__ = ["lanes_idle", "overflowed", "warm_up_short"]


def lanes_idle(evidence: Evidence) -> Findings:
    """Every lane replays a session, or the load was another one.

    How many requests are in flight says nothing: sessions pause, and subagents run side by side.
    """
    lanes, records = evidence.asked.lanes, evidence.export.records
    if not lanes or not len(records):
        return
    seen = len(set(records.sessions))
    if seen < lanes:
        yield error("concurrency-off", f"{seen} sessions sent requests, asked {lanes} at a time")


def overflowed(evidence: Evidence) -> Findings:
    """aiperf leaves requests that the server refused as too long out of every figure and record;
    they would have been the slowest ones."""
    summary, limit = evidence.export.summary, evidence.limits.overflow_share
    told = summary.skipped_context_overflow_count if summary else None
    if told is None or not told.avg:
        return
    sent = len(evidence.export.records) + told.avg
    text = f"{told.avg:g} of {sent:g} requests were refused as too long and are in no record"
    share = told.avg / sent
    text = f"{text} ({percent(share)}), limit {percent(limit)}"
    yield Finding("context-overflow", beyond(share, limit), text)


def warm_up_short(evidence: Evidence) -> Findings:
    """Fewer requests before the window leave more of the sessions' history to compute in it."""
    load = evidence.record.point.workload if evidence.record else None
    if not isinstance(load, Agentic) or not evidence.asked.lanes:
        return
    sent = evidence.export.records.warmup / evidence.asked.lanes
    if sent < load.warmup_requests_per_lane:
        text = (
            f"{sent:.3g} warm-up requests a lane were sent, asked {load.warmup_requests_per_lane}"
        )
        yield warning("warmup-short", text)
