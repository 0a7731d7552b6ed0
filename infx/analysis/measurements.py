"""The figures of one point, from the records of its requests.

Definitions (one window, one way to count):

* Only requests of the profiling phase count; warm-up never does.
* The window runs from the first request sent to the last answer ended, failed requests included.
* Latencies, lengths and tokens are those of requests that succeeded; failed ones are counted.
* OSL and ISL are the server's own counts of output and prompt tokens where every request has one,
  else aiperf's. A client re-tokenises text, which is not exact, and does not see special tokens or
  what the chat template adds.
* ITL_i = (E2EL_i - TTFT_i) / (OSL_i - 1), one value a request with two tokens or more.
* A percentile of an interactivity is the inverse of that percentile of a latency, so p90 is the
  slow tail: 1000 / p90(ITL), and 1 / p90(E2EL_i / OSL_i) for the E2E-normalised one. Its mean and
  std are those of the requests' own rates, without the requests that have none: one whose tokens
  all came in one chunk has an ITL of 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from infx.analysis.asked import Asked
from infx.analysis.export import Export, Row, Value
from infx.analysis.statistics import QUANTILES, describe
from infx.domain.errors import MeasurementError
from infx.domain.record import Distribution, Measurement, RequestAccounting

__all__ = [
    "account",
    "measure",
    "observed_conc",
    "osl_mismatches",
    "output_lengths",
    "steady_conc",
    "window_s",
]

_RE_TOKENISED_SHARE = 0.05
_RE_TOKENISED_TOKENS = 50


def measure(export: Export, asked: Asked, gpus: int) -> Measurement:
    """Return the figures of ``export`` on ``gpus`` accelerators.

    Raises MeasurementError: ``no-requests`` when none succeeded, ``metric-missing`` or
    ``not-a-number`` when a successful request lacks a figure, ``no-tokens`` when nothing was
    generated.
    """
    rows = [row for row in export.profiled if row.error is None]
    if not rows:
        raise MeasurementError("no-requests", f"none of {len(export.profiled)} requests succeeded")
    e2el_ms = _column(rows, "request_latency")
    ttft_ms = _column(rows, "time_to_first_token")
    osl = output_lengths(rows)
    isl = _lengths(rows, "usage_prompt_tokens", "input_sequence_length")
    if not math.fsum(osl):
        raise MeasurementError("no-tokens", f"{len(rows)} requests succeeded without a token")
    window = window_s(export.profiled)
    itl_ms = _inter_token_ms(e2el_ms, ttft_ms, osl)
    per_token_s = [e / 1000 / n for e, n in zip(e2el_ms, osl, strict=True) if n]
    return Measurement(
        window_s=window,
        requests=account(export),
        observed_conc=observed_conc(export.profiled),
        isl=describe(isl),
        osl=describe(osl),
        ttft_ms=describe(ttft_ms),
        itl_ms=describe(itl_ms),
        e2el_ms=describe(e2el_ms),
        interactivity_tok_s=_inverse([itl / 1000 for itl in itl_ms], "ITL"),
        e2e_interactivity_tok_s=_inverse(per_token_s, "E2EL"),
        qps=len(rows) / window,
        tput_tok_s_gpu=(math.fsum(isl) + math.fsum(osl)) / window / gpus,
        output_tput_tok_s_gpu=math.fsum(osl) / window / gpus,
        input_tput_tok_s_gpu=math.fsum(isl) / window / gpus,
        osl_mismatches=_own_mismatches(rows) if asked.lanes else osl_mismatches(rows, asked.osl),
        theoretical_prefix_hit_share=_theoretical_hits(export),
    )


def account(export: Export) -> RequestAccounting:
    """Return where every request of the folder went."""
    profiled = export.profiled
    failures = Counter(row.error.category for row in profiled if row.error)
    cancelled = export.cancelled or 0
    return RequestAccounting(
        total=len(export.rows) + cancelled,
        warmup=len(export.rows) - len(profiled),
        ok=len(profiled) - failures.total(),
        errors=failures.total(),
        cancelled=cancelled,
        errors_by_category=dict(sorted(failures.items())),
    )


def window_s(rows: Sequence[Row]) -> float:
    """Return seconds from the first request sent to the last ended.

    Raises MeasurementError (``clock-skew``) when no time passes.
    """
    start = min(row.metadata.request_start_ns for row in rows)
    end = max(row.metadata.request_end_ns for row in rows)
    if end <= start:
        raise MeasurementError("clock-skew", f"{len(rows)} requests end before the first starts")
    return (end - start) / 1e9


def observed_conc(rows: Sequence[Row]) -> float:
    """Return the mean number of requests in flight over the window, weighted by time."""
    spans = (row.metadata.request_end_ns - row.metadata.request_start_ns for row in rows)
    return sum(spans) / 1e9 / window_s(rows)


def steady_conc(rows: Sequence[Row], lanes: int) -> float:
    """Return the mean number of requests in flight while all lanes were open, weighted by time.

    A closed loop of ``lanes`` lanes has two ends that are not its load: the ramp, in which the
    client opens one lane after another, and the drain, in which lanes fall silent because nothing
    is left to send. The ramp is over with the ``lanes``-th request sent and the drain starts with
    the last one, so the mean is taken between these two. 0 when they are one moment or when fewer
    requests than lanes were sent.
    """
    sent = sorted(row.metadata.request_start_ns for row in rows)
    if len(sent) < lanes or sent[-1] <= sent[lanes - 1]:
        return 0.0
    start, end = sent[lanes - 1], sent[-1]
    spans = (_overlap(row, start, end) for row in rows)
    return sum(spans) / (end - start)


def output_lengths(rows: Sequence[Row]) -> list[float]:
    """Return the tokens of each answer. Raises MeasurementError (``metric-missing``,
    ``not-a-number``) when a request has no count."""
    return _lengths(rows, "usage_completion_tokens", "output_sequence_length")


def osl_mismatches(rows: Sequence[Row], asked_osl: int | None) -> int:
    """Return how many outputs are not as long as asked (0 when no length was asked).

    The server's own count must be the asked one. Where only the client counts, by re-tokenising
    text, it may be off by 5 % and at most 50 tokens, as in aiperf's own mismatch metric.
    """
    if asked_osl is None:
        return 0
    slack = min(asked_osl * _RE_TOKENISED_SHARE, _RE_TOKENISED_TOKENS)
    exact = _all_count(rows, "usage_completion_tokens")
    return sum(abs(n - asked_osl) > (0 if exact else slack) for n in output_lengths(rows))


def _own_mismatches(rows: Sequence[Row]) -> int:
    """Return how many outputs are not as long as their trace says, as aiperf compares them."""
    told = (row.metrics.osl_mismatch_diff_pct for row in rows)
    return sum(bool(one and one.value) for one in told)


def _theoretical_hits(export: Export) -> float | None:
    told = export.summary.theoretical_prefix_cache_hit if export.summary else None
    return told.avg / 100 if told and told.avg is not None else None


def _overlap(row: Row, start_ns: int, end_ns: int) -> int:
    first, last = row.metadata.request_start_ns, row.metadata.request_end_ns
    return max(0, min(last, end_ns) - max(first, start_ns))


def _lengths(rows: Sequence[Row], server: str, client: str) -> list[float]:
    return _column(rows, server if _all_count(rows, server) else client)


def _all_count(rows: Sequence[Row], name: str) -> bool:
    return all(getattr(row.metrics, name) is not None for row in rows)


def _column(rows: Sequence[Row], name: str) -> list[float]:
    return [_number(row, name, getattr(row.metrics, name)) for row in rows]


def _number(row: Row, name: str, value: Value | None) -> float:
    request = f"request {row.metadata.x_request_id or '?'}"
    if value is None:
        raise MeasurementError("metric-missing", f"{request} succeeded without {name}")
    if value.value is None or not math.isfinite(value.value):
        raise MeasurementError("not-a-number", f"{request} has no finite {name}")
    return value.value


def _inter_token_ms(
    e2el_ms: Sequence[float], ttft_ms: Sequence[float], osl: Sequence[float]
) -> list[float]:
    triples = zip(e2el_ms, ttft_ms, osl, strict=True)
    itl_ms = [(e2el - ttft) / (n - 1) for e2el, ttft, n in triples if n > 1]
    if itl_ms:
        return itl_ms
    raise MeasurementError("not-a-number", "every output has one token: ITL has no value")


def _inverse(seconds_a_token: Sequence[float], what: str) -> Distribution:
    """Return tokens/s: percentiles are inverted latencies, mean and std are of the rates above 0.

    ``n`` counts all requests. Only a percentile of 0 has no inverse: a request at 0 is a fast one.
    """
    if min(seconds_a_token) < 0:
        raise MeasurementError("not-a-number", f"a request has an {what} below 0")
    slow = describe(seconds_a_token)
    if slow.p50 <= 0:
        raise MeasurementError("not-a-number", f"half of the requests have an {what} of 0: no rate")
    rates = describe([1 / seconds for seconds in seconds_a_token if seconds])
    inverted = {f"p{q}": 1 / getattr(slow, f"p{q}") for q in QUANTILES}
    return replace(rates, n=slow.n, **inverted)
