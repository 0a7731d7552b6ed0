"""What the engine counts, as Prometheus text. One writer (the step loop), any reader."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from infx.engine.mono.coverage import Coverage, Snapshot

__all__ = ["Histogram", "Metrics", "render"]

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


@dataclass(slots=True)
class Histogram:
    """Observations in seconds, counted by upper bound."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_SECONDS) + 1))
    total: float = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        """Count ``seconds``, ``times`` over."""
        self.counts[bisect_left(_SECONDS, seconds)] += times
        self.total += seconds * times


@dataclass(slots=True)
class Metrics:
    """Counters and gauges; names and meanings stand in `render`'s table."""

    synthetic_acceptance: bool = False
    running: int = 0
    waiting: int = 0
    kv_cache_usage: float = 0.0
    preemptions: int = 0
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    spec_draft_tokens: int = 0
    spec_accepted_tokens: int = 0
    spec_verify_steps: int = 0
    prefill_steps: int = 0
    decode_rows: int = 0
    padded_rows: int = 0
    decode_widths: Counter[int] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)
    mono: Coverage = field(default_factory=Coverage)
    ttft: Histogram = field(default_factory=Histogram)
    itl: Histogram = field(default_factory=Histogram)
    e2el: Histogram = field(default_factory=Histogram)
    write_delay: Histogram = field(default_factory=Histogram)

    @property
    def acceptance_length(self) -> float:
        """Realised tokens a verify step, before any cut at max_tokens; 0 before the first."""
        if not self.spec_verify_steps:
            return 0.0
        return 1 + self.spec_accepted_tokens / self.spec_verify_steps


def render(metrics: Metrics) -> str:
    """Return the Prometheus text exposition (format 0.0.4) of ``metrics``."""
    lines: list[str] = []
    mono = metrics.mono.snapshot()
    for name, kind, about, value in (*_scalars(metrics), *_of_mono(mono)):
        lines += [*_head(name, kind, about), f"infx:{name} {value:.12g}"]
    for name, about, label, counter in (
        ("decode_steps_total", "decode steps by executed rows", "width", metrics.decode_widths),
        ("refusals_total", "refused requests by code", "code", metrics.refusals),
        ("mono_refusals_total", "steps that mono did not serve by code", "code", mono.refusals),
        ("requests_finished_total", "requests by end", "reason", metrics.finished),
    ):
        lines += _head(name, "counter", about)
        lines += [f'infx:{name}{{{label}="{key}"}} {n}' for key, n in sorted(counter.items())]
    for name, about, histogram in (
        ("time_to_first_token_seconds", "arrival to first token", metrics.ttft),
        ("inter_token_latency_seconds", "time between tokens, each token once", metrics.itl),
        ("e2e_request_latency_seconds", "arrival to last token", metrics.e2el),
        ("write_delay_seconds", "sampler's return to socket write", metrics.write_delay),
    ):
        lines += [*_head(name, "histogram", about), *_histogram(name, histogram)]
    return "\n".join(lines) + "\n"


def _scalars(m: Metrics) -> Iterator[tuple[str, str, str, float]]:
    yield "synthetic_acceptance", "gauge", "1: a law decides acceptance", m.synthetic_acceptance
    yield "num_requests_running", "gauge", "requests in the batch", m.running
    yield "num_requests_waiting", "gauge", "requests in the queue", m.waiting
    yield "kv_cache_usage", "gauge", "share of pages held (0 to 1)", m.kv_cache_usage
    yield "num_preemptions_total", "counter", "requests computed again", m.preemptions
    yield "prefix_cache_queries_total", "counter", "prompt tokens asked", m.prefix_cache_queries
    yield "prefix_cache_hits_total", "counter", "prompt tokens found", m.prefix_cache_hits
    yield "prompt_tokens_total", "counter", "prompt tokens admitted", m.prompt_tokens
    yield "generation_tokens_total", "counter", "tokens given out", m.generation_tokens
    yield "spec_draft_tokens_total", "counter", "drafts verified", m.spec_draft_tokens
    yield "spec_accepted_tokens_total", "counter", "drafts accepted", m.spec_accepted_tokens
    yield "spec_verify_steps_total", "counter", "request verify steps", m.spec_verify_steps
    yield "spec_acceptance_length", "gauge", "mean tokens a verify step", m.acceptance_length
    yield "prefill_steps_total", "counter", "steps that held a prefill chunk", m.prefill_steps
    yield "decode_rows_total", "counter", "rows that decode steps executed", m.decode_rows
    yield "padded_rows_total", "counter", "of these, pads", m.padded_rows


def _of_mono(seen: Snapshot) -> Iterator[tuple[str, str, str, float]]:
    yield "mono_steps_total", "counter", "decode steps that mono served", seen.mono
    yield "mono_eligible_steps_total", "counter", "decode steps that mono is for", seen.eligible


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP infx:{name} {about}", f"# TYPE infx:{name} {kind}"]


def _histogram(name: str, histogram: Histogram) -> Iterator[str]:
    running = 0
    for bound, count in zip((*_SECONDS, float("inf")), histogram.counts, strict=True):
        running += count
        label = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield f'infx:{name}_bucket{{le="{label}"}} {running}'
    yield f"infx:{name}_sum {histogram.total:.6f}"
    yield f"infx:{name}_count {running}"
