"""The properties, each as rows to compare, for one layer in one world."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from infx.engine.mono.probe.rows import Left, Ran, Row, Subject
from infx.engine.mono.probe.tally import UNTOLD, Pair
from infx.engine.mono.probe.world import World, WorldStep
from infx.engine.mono.shape import MOST_ROWS

__all__ = ["DRAFTS", "Clean", "clean", "poisoned"]

# Verify rows: EAGLE3's and DSpark's drafts a step.
DRAFTS = (3, 7)
CAPTURE_SIZES = (2, 4, 8, MOST_ROWS)


@dataclass(frozen=True, slots=True)
class Clean:
    """What the steps of a layer left over a cache without poison, by width."""

    layer: int
    ran: dict[int, Ran]


@dataclass(frozen=True, slots=True)
class _Layer:
    subject: Subject
    number: int

    def run(self, *steps: Sequence[Row]) -> list[Ran]:
        return self.subject.run(self.number, *steps)

    def pair(self, name: str, width: int, row: int, wanted: Left, found: Left) -> Pair:
        return Pair(name, self.number, width, row, wanted, found)


def clean(
    subject: Subject, layer: int, world: World, widths: Sequence[int]
) -> tuple[list[Pair], Clean]:
    """Return all comparisons over the cache as it is, and the results that poison may not change.

    ``subject`` is filled with ``world`` and zeros.
    """
    at = _Layer(subject, layer)
    steps = {width: world.step(width) for width in widths}
    ran = {width: at.run(step.rows)[0] for width, step in steps.items()}
    pairs = [
        *_alone(at, world, steps, ran),
        *_again(at, steps, ran),
        *_padded(at, steps, ran),
        *_verify(at, world),
        *_pads(at, world, widths),
    ]
    return pairs, Clean(layer, ran)


def poisoned(subject: Subject, world: World, before: Clean) -> Iterator[Pair]:
    """Yield the same steps over poison; ``subject`` is filled with ``world`` and NaN."""
    at = _Layer(subject, before.layer)
    for width, wanted in before.ran.items():
        step = world.step(width)
        found = at.run([_spoiled(row) for row in step.rows])[0]
        for row in step.live:
            yield at.pair("poison", width, row, wanted.rows[row], found.rows[row])


def _spoiled(row: Row) -> Row:
    return row if row.live else replace(row, stream=np.full_like(row.stream, np.nan))


def _alone(
    at: _Layer, world: World, steps: dict[int, WorldStep], ran: dict[int, Ran]
) -> Iterator[Pair]:
    numbers = sorted({number for step in steps.values() for number in step.probes})
    alone = {number: at.run([world.probe(number)])[0].rows[0] for number in numbers}
    for width, step in steps.items():
        for number, row in step.probes.items():
            yield at.pair("alone", width, row, alone[number], ran[width].rows[row])
        fault = "bytes of the cache outside the step's slots" if ran[width].stray else ""
        yield from (Pair("slots", at.number, width, row, fault=fault) for row in step.live)


def _again(at: _Layer, steps: dict[int, WorldStep], ran: dict[int, Ran]) -> Iterator[Pair]:
    for width, step in steps.items():
        found = at.run(step.rows)[0]
        for row in step.live:
            yield at.pair("again", width, row, ran[width].rows[row], found.rows[row])


def _padded(at: _Layer, steps: dict[int, WorldStep], ran: dict[int, Ran]) -> Iterator[Pair]:
    """Yield each step beside itself with pads up to the next capture size, and to the widest."""
    for width, step in steps.items():
        pad = replace(step.rows[-1], request=-1)
        above = [size for size in CAPTURE_SIZES if size > width]
        for size in {*above[:1], *above[-1:]}:
            found = at.run([*step.rows, *[pad] * (size - width)])[0]
            for row in step.live:
                yield at.pair("padded", size, row, ran[width].rows[row], found.rows[row])


def _verify(at: _Layer, world: World) -> Iterator[Pair]:
    for drafts in DRAFTS:
        step = world.verify_step(drafts)
        (first,) = step.probes.values()
        together = at.run(step.rows)[0]
        own = step.rows[first : first + drafts + 1]
        for number, single in enumerate(at.run(*([row] for row in own))):
            row = first + number
            yield at.pair("verify", len(step.rows), row, single.rows[0], together.rows[row])


def _pads(at: _Layer, world: World, widths: Sequence[int]) -> Iterator[Pair]:
    """Yield what steps of pads read of the experts that no live row chose, but a pad would have.

    Those experts' weights are NaN meanwhile: who reads them is caught by the arm (`Ran.read`), who
    uses them by the results.
    """
    if at.subject.kinds[at.number] != "sparse":
        return
    for width in widths:
        step, before = world.padded_step(width)
        whole, live = at.run(before)[0], at.run(step.rows)[0]
        used = {expert for row in step.live for expert in live.rows[row].routing}
        wished = {expert for left in whole.rows for expert in left.routing} - used
        if wished:
            yield from _pads_read(at, step, live, used)
        elif not used:
            yield from (Pair("pads", at.number, width, row, fault=UNTOLD) for row in range(width))


def _pads_read(at: _Layer, step: WorldStep, live: Ran, used: set[int]) -> Iterator[Pair]:
    width, others = len(step.rows), set(range(at.subject.shape.experts)) - used
    (found,) = at.subject.run(at.number, step.rows, spoiled=others)
    fault = "an expert that no row chose was read" if found.read else ""
    if not _tells(at, step, live, used):
        fault = UNTOLD
    for row, (was, left) in enumerate(zip(live.rows, found.rows, strict=True)):
        if step.rows[row].live:
            yield at.pair("pads", width, row, was, left)
        elif any(expert >= 0 for expert in left.routing):
            yield Pair("pads", at.number, width, row, fault="a pad has experts in the routing")
        else:
            yield Pair("pads", at.number, width, row, fault=fault)


def _tells(at: _Layer, step: WorldStep, live: Ran, used: set[int]) -> bool:
    """Return whether the arm hears of what is read, and of nothing where nothing is spoiled."""
    return live.read is False and at.subject.run(at.number, step.rows, spoiled=used)[0].read is True
