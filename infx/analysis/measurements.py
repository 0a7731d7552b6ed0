"""The figures of one point, from the records of its requests.

Definitions (one window, one way to count):

* Only requests of the profiling phase count; warm-up never does.
* The window runs from the first request sent to the last answer ended, failed requests included.
* Latencies, lengths and tokens are those of requests that succeeded; failed ones are counted.
* OSL and ISL are the server's own counts of output and prompt tokens where every request has one,
  else aiperf's. A client re-tokenises text, which is not exact, and does not see special tokens or
  what the chat template adds.
* ITL_i = TPOT_i = (E2EL_i - TTFT_i) / (OSL_i - 1), one value a request with two tokens or more.
  Two words for one figure: aiperf and InferenceX call it inter-token latency, vLLM and MLPerf time
  per output token. vLLM's ITL is another thing, the gap between two chunks of a stream: it holds as
  many tokens as the server sent at once (a whole verify step with speculation), so it is no time a
  token, and is not read here.
* A percentile of an interactivity is the inverse of that percentile of a latency, so p90 is the
  slow tail: 1000 / p90(ITL), and 1 / p90(E2EL_i / OSL_i) for the E2E-normalised one. Its mean and
  std are those of the requests' own rates, without the requests that have none: one whose tokens
  all came in one chunk has an ITL of 0.
* The context of a request is ISL + OSL: what the server holds for it when it ends.
* The steady window of a closed loop is the part in which all its lanes are open. It is told beside
  the figures, which are those of the whole window.
* A cache hit is an input token that the server's answer says it did not compute. What the engine's
  own counters tell (`EngineCounters`) holds the warm-up too.
* Error bounds are those of `statistics.error_bounds`: where the percentiles of a latency could be
  if the failed requests had ended, in whatever time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import gt

from infx.analysis.asked import Asked
from infx.analysis.export import Export
from infx.analysis.records import Records
from infx.analysis.statistics import QUANTILES, describe, error_bounds, moments
from infx.domain.errors import MeasurementError
from infx.domain.record import Bounds, Distribution, Measurement, RequestAccounting

__all__ = [
    "account",
    "input_lengths",
    "measure",
    "observed_conc",
    "osl_mismatches",
    "output_lengths",
    "steady_conc",
    "steady_window_ns",
    "window_ns",
]

_RE_TOKENISED_SHARE = 0.05
_RE_TOKENISED_TOKENS = 50


def measure(export: Export, asked: Asked, gpus: int) -> Measurement:
    """Return the figures of ``export`` on ``gpus`` accelerators.

    Raises MeasurementError: ``no-requests`` when none succeeded, ``metric-missing`` or
    ``not-a-number`` when a successful request lacks a figure, ``no-tokens`` when nothing was
    generated, ``clock-skew`` when no time passed, or a first token came after the last.
    """
    every, ok = export.records, export.records.succeeded()
    if not len(ok):
        raise MeasurementError("no-requests", f"none of {len(every)} requests succeeded")
    e2el_ms, ttft_ms = ok.numbers("request_latency"), ok.numbers("time_to_first_token")
    osl, isl = output_lengths(ok), input_lengths(ok)
    input_tokens, output_tokens = math.fsum(isl), math.fsum(osl)
    if not output_tokens:
        raise MeasurementError("no-tokens", f"{len(ok)} requests succeeded without a token")
    window_s, steady = _seconds(window_ns(every)), steady_window_ns(every, asked.conc)
    itl_ms = _inter_token_ms(e2el_ms, ttft_ms, osl)
    itl, cached = describe(itl_ms), _cached(ok)
    return Measurement(
        window_s=window_s,
        requests=account(export),
        observed_conc=observed_conc(every),
        isl=describe(isl),
        osl=describe(osl),
        ttft_ms=describe(ttft_ms),
        itl_ms=itl,
        tpot_ms=itl,
        e2el_ms=describe(e2el_ms),
        interactivity_tok_s=_rates(itl_ms, itl, "ITL"),
        e2e_interactivity_tok_s=_end_to_end(e2el_ms, osl),
        qps=len(ok) / window_s,
        tput_tok_s_gpu=(input_tokens + output_tokens) / window_s / gpus,
        output_tput_tok_s_gpu=output_tokens / window_s / gpus,
        input_tput_tok_s_gpu=input_tokens / window_s / gpus,
        osl_mismatches=_own_mismatches(ok) if asked.lanes else osl_mismatches(ok, asked.osl),
        theoretical_prefix_hit_share=_theoretical_hits(export),
        context=describe([i + o for i, o in zip(isl, osl, strict=True)]),
        steady_s=_seconds(steady) if steady else None,
        error_bounds=_bounds(len(every) - len(ok), ttft_ms, itl_ms, e2el_ms),
        cached_input=describe(cached) if cached else None,
        prefix_hit_share=math.fsum(cached) / input_tokens if cached and input_tokens else None,
    )


def account(export: Export) -> RequestAccounting:
    """Return where every request of the folder went."""
    records, cancelled = export.records, export.cancelled or 0
    failures = Counter(failure.category for failure in records.failures if failure)
    return RequestAccounting(
        total=records.warmup + len(records) + cancelled,
        warmup=records.warmup,
        ok=len(records) - failures.total(),
        errors=failures.total(),
        cancelled=cancelled,
        errors_by_category=dict(sorted(failures.items())),
    )


def window_ns(records: Records) -> tuple[int, int]:
    """Return when the first request was sent and when the last ended.

    Raises MeasurementError (``clock-skew``) when no time passes.
    """
    start, end = min(records.start_ns), max(records.end_ns)
    if end <= start:
        raise MeasurementError("clock-skew", f"{len(records)} requests end before the first starts")
    return start, end


def observed_conc(records: Records) -> float:
    """Return the mean number of requests in flight over the window, weighted by time."""
    in_flight_ns = sum(records.end_ns) - sum(records.start_ns)
    return in_flight_ns / 1e9 / _seconds(window_ns(records))


def steady_window_ns(records: Records, lanes: int | None) -> tuple[int, int] | None:
    """Return from when to when all ``lanes`` of a closed loop were open.

    Its two ends are not its load: the ramp, in which the client opens one lane after another, and
    the drain, in which lanes fall silent because nothing is left to send. The ramp is over with the
    ``lanes``-th request sent and the drain starts with the last one. None when they are one moment,
    when fewer requests than lanes were sent, and without lanes.
    """
    sent = sorted(records.start_ns)
    if not lanes or len(sent) < lanes or sent[-1] <= sent[lanes - 1]:
        return None
    return sent[lanes - 1], sent[-1]


def steady_conc(records: Records, lanes: int) -> float:
    """Return the mean number of requests in flight in the steady window, weighted by time; 0 when
    there is no such window."""
    steady = steady_window_ns(records, lanes)
    if steady is None:
        return 0.0
    # A request is in the window from max(start, first) to min(end, last); both cut to the window,
    # their sums can be taken apart.
    in_flight_ns = _cut_sum(records.end_ns, *steady) - _cut_sum(records.start_ns, *steady)
    return in_flight_ns / (steady[1] - steady[0])


def input_lengths(records: Records) -> list[float]:
    """Return the tokens of each prompt. Errors: as `output_lengths`."""
    return _lengths(records, "usage_prompt_tokens", "input_sequence_length")


def output_lengths(records: Records) -> list[float]:
    """Return the tokens of each answer. Raises MeasurementError (``metric-missing``,
    ``not-a-number``) when a request has no count."""
    return _lengths(records, "usage_completion_tokens", "output_sequence_length")


def osl_mismatches(records: Records, asked_osl: int | None) -> int:
    """Return how many outputs are not as long as asked (0 when no length was asked).

    The server's own count must be the asked one. Where only the client counts, by re-tokenising
    text, it may be off by 5 % and at most 50 tokens, as in aiperf's own mismatch metric.
    """
    if asked_osl is None:
        return 0
    exact = records.told_by_all("usage_completion_tokens")
    slack = 0 if exact else min(asked_osl * _RE_TOKENISED_SHARE, _RE_TOKENISED_TOKENS)
    return sum(abs(n - asked_osl) > slack for n in output_lengths(records))


def _own_mismatches(records: Records) -> int:
    """Return how many outputs are not as long as their trace says, as aiperf compares them."""
    return sum(map(bool, records.metrics["osl_mismatch_diff_pct"]))


def _theoretical_hits(export: Export) -> float | None:
    told = export.summary.theoretical_prefix_cache_hit if export.summary else None
    return told.avg / 100 if told and told.avg is not None else None


def _cached(records: Records) -> list[float]:
    """Return the input tokens of each request that were found in the cache; none where an answer
    does not tell: some servers leave the count out where it is 0, others where they have none."""
    name = "usage_prompt_cache_read_tokens"
    return records.numbers(name) if records.told_by_all(name) else []


def _bounds(
    failed: int, ttft_ms: Sequence[float], itl_ms: Sequence[float], e2el_ms: Sequence[float]
) -> Mapping[str, Bounds]:
    if not failed:
        return {}
    ttft, itl, e2el = (error_bounds(values, failed) for values in (ttft_ms, itl_ms, e2el_ms))
    return {"ttft_ms": ttft, "itl_ms": itl, "tpot_ms": itl, "e2el_ms": e2el}


def _seconds(window: tuple[int, int]) -> float:
    return (window[1] - window[0]) / 1e9


def _cut_sum(times_ns: Sequence[int], first: int, last: int) -> int:
    """Return the sum of the times, those outside of first … last moved to its nearer end."""
    ordered = sorted(times_ns)
    low, high = bisect_left(ordered, first), bisect_left(ordered, last)
    return low * first + sum(ordered[low:high]) + (len(ordered) - high) * last


def _lengths(records: Records, server: str, client: str) -> list[float]:
    return records.numbers(server if records.told_by_all(server) else client)


def _inter_token_ms(
    e2el_ms: Sequence[float], ttft_ms: Sequence[float], osl: Sequence[float]
) -> list[float]:
    if late := sum(map(gt, ttft_ms, e2el_ms)):
        raise MeasurementError("clock-skew", f"{late} requests have a TTFT above their E2EL")
    triples = zip(e2el_ms, ttft_ms, osl, strict=True)
    itl_ms = [(e2el - ttft) / (n - 1) for e2el, ttft, n in triples if n > 1]
    if itl_ms:
        return itl_ms
    raise MeasurementError("not-a-number", "every output has one token: ITL has no value")


def _end_to_end(e2el_ms: Sequence[float], osl: Sequence[float]) -> Distribution:
    per_token_ms = [e2el / n for e2el, n in zip(e2el_ms, osl, strict=True) if n]
    return _rates(per_token_ms, describe(per_token_ms), "E2EL")


def _rates(per_token_ms: Sequence[float], slow: Distribution, what: str) -> Distribution:
    """Return tokens/s: percentiles are inverted latencies, mean and std are of the rates above 0.

    ``n`` counts all requests. Only a percentile of 0 has no inverse: a request at 0 is a fast one.
    """
    if slow.p50 <= 0:
        raise MeasurementError("not-a-number", f"half of the requests have an {what} of 0: no rate")
    mean, std = moments([1000 / ms for ms in per_token_ms if ms])
    inverted = {f"p{q}": 1000 / getattr(slow, f"p{q}") for q in QUANTILES}
    return replace(slow, mean=mean, std=std, **inverted)
