"""The curves of a bundle and their frontiers: throughput a GPU over P90 end-to-end latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from infx.analysis.pareto import frontier
from infx.analysis.repeats import mean_of
from infx.domain.point import Accuracy
from infx.domain.record import Measurement, PointRecord
from infx.review.bundle import Bundle
from infx.review.facts import throughput

__all__ = ["Curve", "Spot", "curves"]


@dataclass(frozen=True, slots=True)
class Spot:
    """A point of a curve with its ``repeats``; it stands at the mean of those that are valid."""

    repeats: tuple[PointRecord, ...]

    @property
    def name(self) -> str:
        """The point's name."""
        return self.repeats[0].point.name

    @property
    def found(self) -> tuple[Measurement, ...]:
        """The figures that may be plotted: of what is valid, and numbers."""
        ok = (one.measurement for one in self.repeats if one.status.state == "ok")
        return tuple(one for one in ok if one and isfinite(one.tput_tok_s_gpu + one.e2el_ms.p90))

    @property
    def e2el_ms(self) -> float:
        """P90 end-to-end latency, ms; needs a valid repeat."""
        return mean_of([one.e2el_ms.p90 for one in self.found])

    @property
    def tput_tok_s_gpu(self) -> float:
        """Total throughput, tokens/s a GPU; needs a valid repeat."""
        return mean_of([one.tput_tok_s_gpu for one in self.found])


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of one model, workload, hardware, engine and precision."""

    name: str
    spots: tuple[Spot, ...]

    @property
    def valid(self) -> tuple[Spot, ...]:
        """The points that may be plotted."""
        return tuple(spot for spot in self.spots if spot.found)

    @property
    def on_frontier(self) -> tuple[Spot, ...]:
        """Those that no other beats, from the fastest."""
        valid = self.valid
        places = [(spot.e2el_ms, spot.tput_tok_s_gpu) for spot in valid]
        kept = [valid[n] for n in frontier(places, ("min", "max"))]
        return tuple(sorted(kept, key=lambda spot: spot.e2el_ms))

    @property
    def told(self) -> str:
        """How many are on the frontier, of how many, and how many may not be plotted."""
        of = f"{len(self.on_frontier)} of {len(self.spots)} measured points on the frontier"
        return f"{self.name}: {of}, {len(self.spots) - len(self.valid)} invalid"


def curves(bundle: Bundle) -> tuple[Curve, ...]:
    """Return the curves of the throughput records of affected entries."""
    found: dict[str, dict[str, list[PointRecord]]] = {}
    for record in throughput(bundle):
        points = found.setdefault(_line(record), {})
        points.setdefault(record.point.point_id, []).append(record)
    return tuple(Curve(name, _spots(list(points.values()))) for name, points in found.items())


def _line(record: PointRecord) -> str:
    arm, load = record.point.arm, record.point.workload
    asked = "" if isinstance(load, Accuracy) else load.words
    parts = (arm.model.prefix, asked, f"{arm.hardware}_{arm.framework}", arm.model.precision)
    return " / ".join(parts)


def _spots(points: Sequence[Sequence[PointRecord]]) -> tuple[Spot, ...]:
    return tuple(Spot(tuple(repeats)) for repeats in points)
