"""How much of a server's work mono did: counts that a measurement is judged by."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import MOST_ROWS

__all__ = ["Coverage", "Snapshot", "eligible"]


def eligible(rows: int, prefill: bool) -> bool:
    """Return whether a step is one that mono is for: decode only and 1 to 16 rows, pads included.

    Whatever else refuses it, it stays eligible: a server that cannot bind mono covers nothing.
    """
    return not prefill and 1 <= rows <= MOST_ROWS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counts since the start, as plain values; ``refusals`` by code.

    ``steps`` are all, ``decode`` those without prompt rows.
    """

    steps: int
    decode: int
    eligible: int
    mono: int
    refusals: dict[str, int]

    @property
    def coverage(self) -> float | None:
        """Share of the eligible steps that mono served; None when there were none."""
        return self.mono / self.eligible if self.eligible else None

    def told(self) -> dict[str, Any]:
        """Return the counts and both shares by name, for a page of the server."""
        return asdict(self) | {"coverage": self.coverage, "share": self.share}

    @property
    def share(self) -> float | None:
        """Share of all decode steps that mono served; None when there were none."""
        return self.mono / self.decode if self.decode else None


@dataclass(slots=True)
class Coverage:
    """Counts steps. One thread counts, any may take a `snapshot`."""

    _steps: int = 0
    _decode: int = 0
    _eligible: int = 0
    _mono: int = 0
    _refusals: dict[str, int] = field(default_factory=dict)

    def count(self, rows: int, prefill: bool, refusal: Refusal | None) -> None:
        """Count a step of ``rows`` rows, pads included, served by mono unless ``refusal``."""
        self._steps += 1
        self._decode += not prefill
        self._eligible += eligible(rows, prefill)
        if refusal is None:
            self._mono += 1
            return
        self._refusals[refusal.code] = self._refusals.get(refusal.code, 0) + 1

    def snapshot(self) -> Snapshot:
        """Return the counts until now."""
        # Mono's steps first: a step counted meanwhile must not make the coverage exceed 1.
        mono, refusals = self._mono, dict(self._refusals)
        return Snapshot(self._steps, self._decode, self._eligible, mono, refusals)
