"""How a started server was told a simulated acceptance, in the words of each engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from infx.domain.record import PointRecord
from infx.review.facts import launched

__all__ = ["Injected", "injected"]

Expected = Callable[[float, int], float]

_SWITCHES: Mapping[str, Expected] = {
    # infx, vLLM, SGLang and ATOM are told tokens a step; a rate is the share of drafts that pass,
    # and TensorRT-LLM counts accepted drafts, one less than the tokens.
    r"acceptance[-_]length|SIMULATE_ACC_LEN": lambda length, k: length,
    r"acceptance[-_]rate\b": lambda length, k: (length - 1) / k if k else 0.0,
    r"FORCE_NUM_ACCEPTED_TOKENS": lambda length, k: length - 1,
}
_PARTS = ("command", "variable", "srt --set")
_CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class Injected:
    """What the server's command or environment says: the words and their number."""

    text: str
    number: float
    expected: Expected

    def is_of(self, length: float, k: int) -> bool:
        """Return True when it simulates ``length`` tokens a step at K drafts."""
        return abs(self.number - self.expected(length, k)) < _CLOSE


def injected(record: PointRecord) -> Injected | None:
    """Return the simulated acceptance that a record's server was started with; None: it is real."""
    for what, text in launched(record):
        if what in _PARTS and (found := _first(text)):
            return found
    return None


def _first(text: str) -> Injected | None:
    for switch, expected in _SWITCHES.items():
        if hit := re.search(rf"\S*(?:{switch})[^\d\s]*\s*[^\d\s]*?(\d+(?:\.\d+)?)", text):
            return Injected(hit[0], float(hit[1]), expected)
    return None
