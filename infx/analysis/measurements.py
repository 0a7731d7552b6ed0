"""The figures of one point, from the records of its requests.

Definitions (one window, one way to count):

* Only requests of the profiling phase count; warm-up never does.
* The window runs from the first request sent to the last answer ended, failed requests included.
* Latencies, lengths and tokens are those of requests that succeeded; failed ones are counted.
* OSL is the output length that aiperf counted; ISL is the server's own count of prompt tokens where
  every request has one (a client does not see what the chat template adds), else aiperf's.
* ITL_i = (E2EL_i - TTFT_i) / (OSL_i - 1), one value a request with two tokens or more.
* A percentile of an interactivity is the inverse of that percentile of a latency, so p90 is the
  slow tail: 1000 / p90(ITL), and 1 / p90(E2EL_i / OSL_i) for the E2E-normalised one. Its mean and
  std are those of the requests' own rates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from infx.analysis.export import Asked, Export, Row, Value
from infx.analysis.statistics import QUANTILES, describe
from infx.domain.errors import MeasurementError
from infx.domain.record import Distribution, Measurement, RequestAccounting

__all__ = [
    "account",
    "measure",
    "observed_conc",
    "osl_mismatches",
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
    osl = _column(rows, "output_sequence_length")
    isl = _input_lengths(rows)
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
        osl_mismatches=osl_mismatches(rows, asked.osl),
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


def steady_conc(rows: Sequence[Row]) -> float:
    """Return the mean number of requests in flight from the first sent to the last sent.

    Without the drain at the end, which is long in a short run. 0 when all are sent at once.
    """
    start = min(row.metadata.request_start_ns for row in rows)
    end = max(row.metadata.request_start_ns for row in rows)
    spans = (min(row.metadata.request_end_ns, end) - row.metadata.request_start_ns for row in rows)
    return sum(spans) / (end - start) if end > start else 0.0


def osl_mismatches(rows: Sequence[Row], asked_osl: int | None) -> int:
    """Return how many outputs are not as long as asked (0 when no length was asked).

    The server's own count must be the asked one. The client's count re-tokenises text, which is not
    exact: it may be off by 5 % and at most 50 tokens, as in aiperf's own mismatch metric.
    """
    if asked_osl is None:
        return 0
    slack = min(asked_osl * _RE_TOKENISED_SHARE, _RE_TOKENISED_TOKENS)
    return sum(_is_mismatch(row, asked_osl, slack) for row in rows)


def _is_mismatch(row: Row, asked_osl: int, slack: float) -> bool:
    client, server = row.metrics.output_sequence_length, row.metrics.usage_completion_tokens
    if server and server.value is not None and server.value != asked_osl:
        return True
    return bool(client and client.value is not None and abs(client.value - asked_osl) > slack)


def _column(rows: Sequence[Row], name: str) -> list[float]:
    return [_number(row, name, getattr(row.metrics, name)) for row in rows]


def _number(row: Row, name: str, value: Value | None) -> float:
    request = f"request {row.metadata.x_request_id or '?'}"
    if value is None:
        raise MeasurementError("metric-missing", f"{request} succeeded without {name}")
    if value.value is None or not math.isfinite(value.value):
        raise MeasurementError("not-a-number", f"{request} has no finite {name}")
    return value.value


def _input_lengths(rows: Sequence[Row]) -> list[float]:
    counted = all(row.metrics.usage_prompt_tokens is not None for row in rows)
    return _column(rows, "usage_prompt_tokens" if counted else "input_sequence_length")


def _inter_token_ms(
    e2el_ms: Sequence[float], ttft_ms: Sequence[float], osl: Sequence[float]
) -> list[float]:
    triples = zip(e2el_ms, ttft_ms, osl, strict=True)
    itl_ms = [(e2el - ttft) / (n - 1) for e2el, ttft, n in triples if n > 1]
    if itl_ms:
        return itl_ms
    raise MeasurementError("not-a-number", "every output has one token: ITL has no value")


def _inverse(seconds_a_token: Sequence[float], what: str) -> Distribution:
    """Return tokens/s: percentiles are inverted latencies, mean and std are of the rates."""
    if min(seconds_a_token) <= 0:
        raise MeasurementError("not-a-number", f"a request has an {what} of 0: a rate has no value")
    slow = describe(seconds_a_token)
    rates = describe([1 / seconds for seconds in seconds_a_token])
    return replace(rates, **{f"p{q}": 1 / getattr(slow, f"p{q}") for q in QUANTILES})
