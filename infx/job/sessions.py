"""Recorded sessions, replayed by aiperf 0.13.0's scenario for agentic coding.

The scenario itself sets the pauses, the mark at the head of each session that keeps its pages its
own, and ``ignore_eos``. This aiperf has no ``--warmup-requests-per-lane`` (a fork has): one warm-up
request a lane is the scenario's own, more are sent for a time. Any cap of a trace's pauses
(``--trace-idle-gap-cap-seconds``) needs the scenario's override.
"""

from __future__ import annotations

from pathlib import Path

from infx.domain.errors import MeasurementError
from infx.domain.point import Agentic
from infx.workloads.traces import MalformedTraceError, read_trace

__all__ = ["checked_trace", "session_words"]

SCENARIO = "inferencex-agentx-mvp"
DRAIN_S = 1800
"""A lane's first request may be the history of half a session."""


def session_words(load: Agentic) -> list[str]:
    """Return aiperf's arguments for the sessions of ``load``."""
    words = ["--scenario", SCENARIO, *_trace(load), "--random-seed", str(load.seed)]
    words += ["--benchmark-duration", str(load.duration_s)]
    words += ["--trajectory-start-min-ratio", f"{load.trajectory_start_min_ratio:g}"]
    words += ["--trajectory-start-max-ratio", f"{load.trajectory_start_max_ratio:g}"]
    words += ["--agentic-warmup-grace-period", str(DRAIN_S)]
    words += ["--failed-request-threshold", f"{load.error_share:g}"]
    if load.cache_warmup_s:
        words += ["--agentic-cache-warmup-duration", str(load.cache_warmup_s)]
    if load.idle_gap_cap_s is not None:
        words += ["--trace-idle-gap-cap-seconds", str(load.idle_gap_cap_s)]
    if load.max_context is not None:
        words += ["--max-context-length", str(load.max_context)]
    words += ["--apply-chat-template"] if load.use_chat_template else []
    return words if load.submission_valid else [*words, "--unsafe-override"]


def checked_trace(load: Agentic) -> Path:
    """Return the trace's path, or the name of a public one.

    Raises MeasurementError (``trace-changed``) when a local one is not what was planned.
    """
    trace = Path(load.trace)
    if not load.content:
        return trace
    try:
        found = read_trace(trace).content
    except (OSError, MalformedTraceError) as error:
        text = f"the trace {load.trace} cannot be read on this machine: {error}"
        raise MeasurementError("trace-changed", text) from error
    if found != load.content:
        text = f"{load.trace} has content {found[:8]}, planned {load.content[:8]}"
        raise MeasurementError("trace-changed", text)
    return trace


def _trace(load: Agentic) -> list[str]:
    if load.content:
        return ["--input-file", load.trace, "--custom-dataset-type", "weka_trace"]
    return ["--public-dataset", load.trace]
