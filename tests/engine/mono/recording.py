"""A host and a back end that write down what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from infx.engine.mono.consensus import Agree, alone
from infx.engine.mono.dispatch import Deployment
from infx.engine.mono.library import Mono, StepRows
from infx.engine.mono.refusal import Refusal

KINDS = ("dense", "sparse", "sparse")
CACHE_PAGES, BLOCK, REACH = 40, 16, 128


def deployment(**changes: Any) -> Deployment:
    """Return a deployment that mono serves, with ``changes``."""
    sizes = {"layers": len(KINDS), "context": 100, "reach": REACH, "cache_pages": CACHE_PAGES}
    return Deployment(**{**sizes, **changes})


@dataclass
class Recording:
    """Refuses what it is told to; keeps every call, and the arrays of every step."""

    bind: Refusal | Exception | None = None
    widths: dict[int, Refusal | Exception] = field(default_factory=dict)
    pages: int = CACHE_PAGES
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    steps: list[StepRows] = field(default_factory=list)

    def refuse(self) -> Refusal | None:
        self.calls.append(("refuse",))
        return raised(self.bind)

    def build(self, width: int) -> Refusal | None:
        self.calls.append(("build", width))
        return raised(self.widths.get(width))

    def prepare(self, step: StepRows, width: int) -> None:
        if max(map(max, step.pages.tolist())) >= self.pages:
            raise ValueError(f"a page is outside of the cache of {self.pages}")
        self.calls.append(("prepare", step.rows, width))
        self.steps.append(step)

    def run(self, layer: int, stream_in: Any, stream_out: Any) -> None:
        self.calls.append(("run", layer, address(stream_in), address(stream_out)))
        stream_out[:] = stream_in + 1

    def close(self) -> None:
        self.calls.append(("close",))


def raised(answer: Refusal | Exception | None) -> Refusal | None:
    if isinstance(answer, Exception):
        raise answer
    return answer


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def bound(
    back_end: Recording | None = None,
    widths: Sequence[int] = (1, 8, 16),
    agree: Agree = alone,
    **changes: Any,
) -> Mono:
    """Return mono, bound; its back end's calls so far are forgotten."""
    back_end = back_end or Recording()
    mono = Mono.bind(deployment(**changes), KINDS, back_end, agree, widths)
    assert isinstance(mono, Mono), mono
    back_end.calls.clear()
    return mono


def rows(count: int = 3, **changes: Any) -> StepRows:
    """Return a decode step of ``count`` requests with two pages each, with ``changes``."""
    pages = np.arange(2 * count, dtype=np.int32).reshape(count, 2)
    positions = np.arange(count, dtype=np.int64)
    given: dict[str, Any] = {
        "batch_ids": np.arange(count, dtype=np.int32),
        "positions": positions,
        "slots": pages[:, 0].astype(np.int64) * BLOCK + positions,
        "pages": pages,
        "requests": count,
    }
    return StepRows(**{**given, **changes})
