"""Capture sizes against the batches that a server can reach.

A decode step of n requests has n·(K+1) rows, a draft's rows included; capture sizes count rows for
every engine (a framework converts to its engine's own unit). A step runs at the least size that
holds it, the rest is padding; a step wider than all sizes runs without a captured graph.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from infx.domain.findings import Finding, Where
from infx.domain.point import Arm

__all__ = ["COARSE", "Padding", "lint_gap", "lint_padding", "worst_padding"]

COARSE = 0.25
"""Padded share of a step above which sizes are called coarse. Powers of two pad a batch of 9 by
44 %; every size instead brought 51 % more interactivity at 24 requests (ATOM, MiniMax-M3)."""


@dataclass(frozen=True, slots=True)
class Padding:
    """A step of ``requests`` that runs at ``size`` rows of which ``padded`` are none of theirs;
    no size fits ``missed`` of the ``reachable`` batches exactly."""

    requests: int
    size: int
    padded: int
    missed: int
    reachable: int

    @property
    def share(self) -> float:
        """Return which part of the step's rows is padding."""
        return self.padded / self.size


def lint_gap(arm: Arm, conc: int, where: Where) -> Finding | None:
    """Return an error when the widest step of ``conc`` requests is over every capture size."""
    sizes, requests, width = arm.axes.capture_sizes, _reachable(arm, conc), arm.axes.k + 1
    if not sizes or max(sizes) >= requests * width:
        return None
    sentence = (
        f"conc {conc} reaches {requests * width} rows a step ({requests} requests of {width}); "
        f"the largest capture size is {max(sizes)} rows ({max(sizes) // width} requests)"
    )
    hint = f"add a capture size of {requests * width} or more"
    return Finding("capture-gap", "error", sentence, where, hint)


def lint_padding(measured: Iterable[tuple[Arm, int, Where]]) -> Iterator[Finding]:
    """Yield, for each place that sets capture sizes, the step that is padded most.

    ``measured`` holds the server, the concurrency and the place of each point.
    """
    worst: dict[Where, tuple[Padding, int, int]] = {}
    for arm, conc, where in measured:
        width = arm.axes.k + 1
        found = worst_padding(arm.axes.capture_sizes, _reachable(arm, conc), width)
        if found and (where not in worst or found.share > worst[where][0].share):
            worst[where] = (found, conc, width)
    for where, (padding, conc, width) in worst.items():
        yield _coarse(padding, conc, width, where)


@cache
def worst_padding(sizes: Sequence[int], requests: int, width: int) -> Padding | None:
    """Return the most padded step of 1 … ``requests`` requests of ``width`` rows each; None when
    every one that a size holds is fitted exactly. ``sizes`` are in order."""
    padded = [
        (size, size - n * width, n)
        for n in range(1, requests + 1)
        if (at := bisect_left(sizes, n * width)) < len(sizes) and (size := sizes[at]) != n * width
    ]
    if not padded:
        return None
    size, rows, n = max(padded, key=lambda step: (step[1] / step[0], step[1]))
    return Padding(n, size, rows, len(padded), requests)


def _reachable(arm: Arm, conc: int) -> int:
    return min(conc, arm.axes.max_num_seqs or conc)


def _coarse(padding: Padding, conc: int, width: int, where: Where) -> Finding:
    rows = padding.requests * width
    sentence = (
        f"at conc {conc} a step of {padding.requests} requests has {rows} rows and runs as "
        f"{padding.size}: {padding.padded} are padding ({padding.share:.0%}), the most of any; no "
        f"capture size fits {padding.missed} of {padding.reachable} reachable batches"
    )
    level = "warning" if padding.share > COARSE else "info"
    return Finding("capture-padding", level, sentence, where, f"add a capture size of {rows}")  # type: ignore[arg-type]
