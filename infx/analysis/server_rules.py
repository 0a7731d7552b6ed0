"""The rules about the server that was measured, one function each: what its own counters and its
own configuration say against the plan. Only points of ours have them."""

from __future__ import annotations

from collections import Counter

from infx.analysis.acceptance import independent_draws, tolerance
from infx.analysis.configuration import compared
from infx.analysis.evidence import Evidence, Findings, error, percent, warning
from infx.analysis.measurements import account
from infx.domain.axes import kebab
from infx.domain.record import EngineCounters, PointRecord

__all__ = [
    "acceptance_off",
    "config_differs",
    "mono_coverage",
    "preemption_storm",
    "prefix_cache_hits",
]

_COUNT_MONO = ("infx",)
"""The engines whose counters tell which decode steps mono served."""

_NEVER_PREEMPT = ("llamacpp",)
"""A slot of llama.cpp keeps its pages until its request ends."""

_CODES_TOLD = 4
"""A sentence names so many codes; the point's details have all."""


def acceptance_off(evidence: Evidence) -> Findings:
    """Synthetic acceptance must be realised, within chance: ±max(1 %, 4σ of the law's mean)."""
    record = evidence.record
    if record is None or record.point.arm.acceptance.mode != "synthetic":
        return
    asked, counters = record.point.arm.acceptance, record.counters or EngineCounters()
    seen, limit = (
        counters.acceptance_length,
        tolerance(asked, independent_draws(record), evidence.limits),
    )
    if asked.length is None or seen is None or limit is None:
        text = f"the engine does not tell its acceptance length, asked {asked.length}"
        yield error("acceptance-off", text)
        return
    if not abs(seen - asked.length) <= limit.slack:
        text = f"realised acceptance length {seen:.4f}, asked {asked.length} ±{limit.slack:.4f}"
        yield error("acceptance-off", f"{text} ({limit})")


def mono_coverage(evidence: Evidence) -> Findings:
    """A point that claims mono must have been served by it, wherever a step was eligible.

    A load whose every step is too wide for mono was measured as planned: that is told, and counts.
    """
    record = evidence.record
    if record is None or record.point.arm.axes.mono != "on":
        return
    seen, least = record.counters or EngineCounters(), evidence.limits.mono_coverage
    if seen.mono_coverage is None and seen.mono_share is not None:
        text = "no decode step was eligible for mono: the unfused layers served all of them"
        yield warning("mono-unused", f"{text}{_refused(seen)}")
    elif seen.mono_coverage is None and record.point.arm.framework not in _COUNT_MONO:
        text = f"{record.point.arm.framework} counts no steps of mono: only its log was looked at"
        yield warning("mono-untold", text)
    elif seen.mono_coverage is None:
        text = "the engine does not tell what share of its steps mono served, at least"
        yield error("mono-coverage", f"{text} {percent(least)}")
    elif seen.mono_coverage < least:
        text = f"mono served {percent(seen.mono_coverage)} of its eligible steps, at least"
        yield error("mono-coverage", f"{text} {percent(least)}{_refused(seen)}")


def preemption_storm(evidence: Evidence) -> Findings:
    """Requests that are thrown out and prefilled again measure the cache, not the server.

    The engine counted during the warm-up too, so its requests are among those divided by.
    """
    record, seen = evidence.record, account(evidence.export)
    if record is None or record.point.arm.framework in _NEVER_PREEMPT:
        return
    preemptions = (record.counters or EngineCounters()).preemptions
    done, limit = seen.profiled + seen.warmup, evidence.limits.preemptions_a_request
    if preemptions is None:
        text = f"{record.point.arm.framework} does not tell how often it preempted a request"
        yield warning("preemptions-untold", f"{text}: a storm would not be seen")
    elif preemptions > limit * done:
        text = f"{preemptions} preemptions over {done} requests"
        yield error("preemption-storm", f"{text} (warm-up included), limit {limit:g} a request")


def prefix_cache_hits(evidence: Evidence) -> Findings:
    """Random prompts share nothing but their chat template: more means that input was repeated.
    Sessions share their own past, which is what they are replayed for."""
    if evidence.asked.lanes:
        return
    record, limit = evidence.record, evidence.limits.prefix_hit_share
    share = record.counters.prefix_cache_hit_share if record and record.counters else None
    if share is not None and share > limit:
        text = f"{percent(share)} of the input tokens were found in the prefix cache, limit"
        told = "nothing is subtracted: a chat template that the prompts share counts"
        yield warning("prefix-cache-hits", f"{text} {percent(limit)}; {told}")


def config_differs(record: PointRecord) -> Findings:
    """What the running server reports is what the plan asked, axis by axis, where both speak."""
    settings = compared(record)
    for found in settings:
        if found.differs:
            text = f"the server runs {kebab(found.axis)}={found.running}, planned {found.planned}"
            yield error("config-differs", text)
    if not settings:
        text = f"{record.point.arm.framework} tells no setting of the plan"
        yield warning("config-untold", f"{text}: that it runs as planned was not checked")


def _refused(seen: EngineCounters) -> str:
    """Return ``; not served: mono-prefill 12, mono-no-width 3``, the commonest codes first."""
    commonest = Counter(seen.mono_refusals).most_common()
    told = ", ".join(f"{code} {steps}" for code, steps in commonest[:_CODES_TOLD])
    more = len(commonest) - _CODES_TOLD
    return f"; not served: {told}{f' and {more} more codes' if more > 0 else ''}" if told else ""
