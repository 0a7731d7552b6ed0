"""The figures that points are judged, drawn and compared by: one table for all who read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from infx.analysis.cost import usd_per_m_tokens
from infx.analysis.pareto import Direction
from infx.domain.record import Energy, Measurement

__all__ = [
    "COMPARED",
    "COVERAGE_ADVICE",
    "FEW_IN_TAIL",
    "METRICS",
    "NORTH_STAR",
    "THROUGHPUT",
    "X_METRICS",
    "Y_METRICS",
    "Drawn",
    "Metric",
    "Priced",
]

COVERAGE_ADVICE = 5
"""Points on a frontier below which a curve's shape is a guess (public review practice)."""

FEW_IN_TAIL = 20
"""Requests below which fewer than two lie beyond a p90, so that one slow request decides it."""

FEW_REQUESTS = 10
"""Below this an interval of a mean or a median held its value less often than it says: 92 % at 6,
95 to 97 % from 10 on (simulated, log-normal latencies, 500 runs each)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What a figure is read from: a measurement, what it drew, and the price of its accelerators in
    dollars an hour each."""

    measurement: Measurement
    energy: Energy | None = None
    usd_gpu_hour: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How a figure comes from requests, so that an interval can be drawn from those of one run.

    The ``q``-th percentile of the first of ``columns`` (names of `requests.Requests.columns`), or
    with ``q`` 0 the sum of the first over that of the second; its inverse where ``inverted``.
    """

    columns: tuple[str, ...]
    q: int = 0
    inverted: bool = False

    @property
    def needed(self) -> int:
        """Requests without which an interval would say more than they tell."""
        return FEW_IN_TAIL if self.q > 50 else FEW_REQUESTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure: ``key`` names it in JSON and addresses, ``title`` and ``unit`` for readers.

    ``of`` returns None where the point does not tell. ``drawn`` is None where requests do not give
    the figure.
    """

    key: str
    title: str
    unit: str
    better: Literal["more", "less"]
    of: Callable[[Priced], float | None]
    drawn: Drawn | None = None

    @property
    def direction(self) -> Direction:
        """The direction in which it improves, as `pareto.frontier` takes it."""
        return "max" if self.better == "more" else "min"

    @property
    def label(self) -> str:
        """Title and unit: ``P90 TTFT, ms``."""
        return f"{self.title}, {self.unit}"


def _percentile(
    key: str, title: str, unit: str, field: str, q: int, drawn: Drawn, scale: float = 1.0
) -> Metric:
    read = attrgetter(f"measurement.{field}.p{q}")
    return Metric(
        key=f"{key}_p{q}",
        title=f"P{q} {title}",
        unit=unit,
        better="more" if drawn.inverted else "less",
        of=lambda priced: read(priced) * scale,
        drawn=drawn,
    )


def _interactivity(q: int) -> Metric:
    drawn = Drawn(columns=("itl_ms",), q=q, inverted=True)
    return _percentile(
        "interactivity", "interactivity", "tok/s/user", "interactivity_tok_s", q, drawn
    )


def _latency(key: str, title: str, q: int) -> Metric:
    return _percentile(key, title, "ms", f"{key}_ms", q, Drawn(columns=(f"{key}_ms",), q=q))


def _e2el(q: int) -> Metric:
    return _percentile("e2el", "E2EL", "s", "e2el_ms", q, Drawn(columns=("e2el_ms",), q=q), 0.001)


def _throughput(key: str, title: str, column: str) -> Metric:
    return Metric(
        key=key,
        title=title,
        unit="tok/s/GPU",
        better="more",
        of=attrgetter(f"measurement.{key}"),
        drawn=Drawn(columns=(column, "e2el_ms")),
    )


def _usd_per_m_tokens(priced: Priced) -> float | None:
    rate = priced.measurement.tput_tok_s_gpu
    if priced.usd_gpu_hour is None or rate <= 0:
        return None
    return usd_per_m_tokens(rate, priced.usd_gpu_hour)


def _j_per_token(priced: Priced) -> float | None:
    energy = priced.energy
    return energy.j_per_total_token if energy and energy.valid else None


NORTH_STAR = _percentile(
    "e2e_interactivity",
    "E2E-normalised interactivity",
    "tok/s/user",
    "e2e_interactivity_tok_s",
    90,
    Drawn(columns=("token_s",), q=90, inverted=True),
)
"""1 / p90(E2EL_i / OSL_i): the x that decides what is on a frontier."""

X_METRICS: tuple[Metric, ...] = (
    NORTH_STAR,
    _interactivity(90),
    _e2el(90),
    _latency("ttft", "TTFT", 90),
)

THROUGHPUT = _throughput("tput_tok_s_gpu", "Throughput", "tokens")
"""Input and output tokens a second and accelerator: the y that decides."""

_OUTPUT = _throughput("output_tput_tok_s_gpu", "Output throughput", "osl")

_ENERGY = Metric(key="j_per_token", title="Energy", unit="J/token", better="less", of=_j_per_token)

Y_METRICS: tuple[Metric, ...] = (
    THROUGHPUT,
    _OUTPUT,
    _throughput("input_tput_tok_s_gpu", "Input throughput", "isl"),
    Metric(
        key="usd_per_m_tokens",
        title="Cost",
        unit="$/M tokens",
        better="less",
        of=_usd_per_m_tokens,
    ),
    _ENERGY,
)

COMPARED: tuple[Metric, ...] = (
    THROUGHPUT,
    _OUTPUT,
    NORTH_STAR,
    *(_interactivity(q) for q in (50, 90)),
    *(_latency("ttft", "TTFT", q) for q in (50, 90)),
    *(_latency("itl", "ITL", q) for q in (50, 90)),
    *(_e2el(q) for q in (50, 90)),
    _ENERGY,
)
"""What two points are compared by; of a figure that a side does not tell nothing is said."""

METRICS: dict[str, Metric] = {metric.key: metric for metric in (*X_METRICS, *Y_METRICS, *COMPARED)}
"""Every metric by its key."""
