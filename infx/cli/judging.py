"""How `infx judge` shows a verdict: a row a folder, and every figure of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from infx.analysis.statistics import QUANTILES

if TYPE_CHECKING:
    from pathlib import Path

    from infx.analysis.trials import TrialFigure
    from infx.analysis.validity import Verdict
    from infx.domain.record import Bounds, Distribution, Measurement, RequestAccounting

__all__ = ["FIGURES", "FOLDERS", "TRIALS", "account", "figure_rows", "folder_row", "trial_row"]

FOLDERS = (
    *("FOLDER", "STATUS", "OK", "ERRORS", "STEADY S", "TOK/S/GPU"),
    *("P90 TTFT MS", "P90 ITL MS", "P90 E2EL MS", "WHY"),
)
FIGURES = ("FIGURE", "UNIT", "MEAN", "STD", *(f"P{q}" for q in QUANTILES))
TRIALS = ("FIGURE", "MEAN", "95 % INTERVAL OF THE MEAN")

_PERCENTILES = [f"p{q}" for q in QUANTILES]
_LATENCIES = {"ttft_ms": "TTFT", "itl_ms": "ITL, TPOT", "e2el_ms": "E2EL"}


def folder_row(folder: Path, verdict: Verdict) -> tuple[object, ...]:
    """Return the cells of `FOLDERS`; the bounds that failed requests leave stand in brackets."""
    status, found = verdict.status, verdict.measurement
    if found is None:
        return folder, status, *[""] * 7, status.sentence
    return (
        folder,
        status,
        found.requests.ok,
        found.requests.errors,
        _steady(found),
        f"{found.tput_tok_s_gpu:.1f}",
        *(_p90(name, found) for name in _LATENCIES),
        status.sentence,
    )


def trial_row(told: TrialFigure) -> tuple[object, ...]:
    """Return the cells of `TRIALS`."""
    if told.low is None or told.high is None:
        return told.title, f"{told.value:.2f}", "one run does not tell"
    return told.title, f"{told.value:.2f}", f"{told.low:.2f} … {told.high:.2f}"


def figure_rows(found: Measurement) -> Iterator[tuple[object, ...]]:
    """Yield the cells of `FIGURES`: every figure that has a distribution, and the bounds of each
    latency below it."""
    for name, title in _LATENCIES.items():
        yield _figures(title, "ms", getattr(found, name))
        if bounds := found.error_bounds.get(name):
            cells = (_interval(getattr(bounds, p)) for p in _PERCENTILES)
            yield "  with the failed ones", "ms", "", "", *cells
    yield _figures("interactivity", "tok/s/user", found.interactivity_tok_s)
    yield _figures("E2E-normalised interactivity", "tok/s/user", found.e2e_interactivity_tok_s)
    yield from (_figures(title, "tokens", of) for title, of in _lengths(found).items() if of)


def account(found: Measurement) -> Iterator[str]:
    """Yield sentences: where the requests went, the window, the rates."""
    yield f"requests: {_requests(found.requests)}"
    steady = f"{_steady(found)} s with all lanes open, " if found.steady_s else ""
    load = f"{found.observed_conc:.2f} requests in flight on average"
    yield f"window: {found.window_s:.4g} s, {steady}{load}"
    yield (
        f"rates: {found.qps:.4g} requests/s; {found.tput_tok_s_gpu:.1f} tokens/s a GPU"
        f" ({found.output_tput_tok_s_gpu:.1f} out, {found.input_tput_tok_s_gpu:.1f} in)"
    )
    if found.prefix_hit_share is not None:
        yield f"prefix cache: {found.prefix_hit_share * 100:.3g} % of the input tokens"


def _steady(found: Measurement) -> str:
    return "" if found.steady_s is None else f"{found.steady_s:.4g}"


def _p90(name: str, found: Measurement) -> str:
    of: Distribution = getattr(found, name)
    bounds: Bounds | None = found.error_bounds.get(name)
    return f"{of.p90:.2f} {_interval(bounds.p90)}" if bounds else f"{of.p90:.2f}"


def _interval(bounds: tuple[float, float | None]) -> str:
    least, most = bounds
    return f"[{least:.2f}, {'∞' if most is None else f'{most:.2f}'}]"


def _figures(title: str, unit: str, of: Distribution) -> tuple[object, ...]:
    values = (of.mean, of.std, *(getattr(of, p) for p in _PERCENTILES))
    return title, unit, *(f"{value:.2f}" for value in values)


def _lengths(found: Measurement) -> Mapping[str, Distribution | None]:
    return {
        "input": found.isl,
        "output": found.osl,
        "context": found.context,
        "input in the cache": found.cached_input,
    }


def _requests(seen: RequestAccounting) -> str:
    causes = ", ".join(f"{count} {name}" for name, count in seen.errors_by_category.items())
    failed = f"{seen.errors} failed{f' ({causes})' if causes else ''}"
    return (
        f"{seen.total} in all, {seen.warmup} of them warm-up; {seen.profiled} profiled:"
        f" {seen.ok} ok, {failed}; {seen.cancelled} cut in flight"
    )
