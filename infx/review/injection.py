"""How a started server was told a simulated acceptance, in the words of each engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
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


def injected(record: PointRecord) -> tuple[Injected, ...]:
    """Return what a record's server was told of a simulated acceptance, each word of it, for an
    engine may heed the last; empty: it is real."""
    told = (text for what, text in launched(record) if what in _PARTS)
    return tuple(dict.fromkeys(found for text in told for found in _found(text)))


def _found(text: str) -> Iterator[Injected]:
    for switch, expected in _SWITCHES.items():
        told = rf"\S*(?:{switch})[^\d\s]*\s*[^\d\s]*?(\d+(?:\.\d+)?)"
        yield from (Injected(hit[0], float(hit[1]), expected) for hit in re.finditer(told, text))
