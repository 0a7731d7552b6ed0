"""A toy of a layer that keeps every promise, and one that breaks each of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from infx.engine.mono.probe.rows import Filling, Left, Numbers, Ran, Row
from infx.engine.mono.shape import Kind
from tests.engine.mono.tiny_layers import TINY

NEVER = -1e30


class Toy:
    """One layer of experts: a row adds its context's keys, and what its two experts make of it."""

    def __init__(self) -> None:
        self.shape = replace(TINY, experts=12)
        self.kinds: Sequence[Kind] = ("sparse",)
        draw = np.random.default_rng(0)
        size = (self.shape.experts, self.shape.hidden, self.shape.hidden)
        self._router = draw.standard_normal(size[:2], dtype=np.float32)
        self._experts = draw.standard_normal(size, dtype=np.float32)
        self.runs = 0

    def fill(self, filling: Filling, nothing: int) -> None:
        slots, vectors = filling.history()
        dim, count = self.shape.head_dim, filling.pages * self.shape.block
        unwritten = np.full(4 * count * dim, nothing, dtype=np.uint8).view(np.float32)
        self._cache = unwritten.reshape(count, dim)
        self._cache[slots] = vectors["keys"][:, 0]
        self._kept = self._cache.copy()
        self.scratch = np.full(4, nothing, dtype=np.uint8).view(np.float32)[0]

    def run(self, layer: int, *steps: Sequence[Row], spoiled: Collection[int] = ()) -> list[Ran]:
        ran = []
        for rows in steps:
            self.runs += 1
            read = self.reads(rows)
            left = tuple(self._row(row, rows) for row in rows)
            ran.append((left, bool(read & set(spoiled))))
        for rows in steps:
            slots = [row.slot(self.shape.block) for row in rows if row.live]
            self._cache[slots] = self._kept[slots]
        stray = self._cache.tobytes() != self._kept.tobytes()
        self._cache[:] = self._kept
        return [Ran(left, stray, read) for left, read in ran]

    def reads(self, rows: Sequence[Row]) -> set[int]:
        return {expert for row in rows if row.live for expert in self.chosen(row)}

    def chosen(self, row: Row) -> list[int]:
        return np.argsort(-(self._router @ row.stream), kind="stable")[:2].tolist()

    def _row(self, row: Row, rows: Sequence[Row]) -> Left:
        if not row.live:
            return Left(bytes(4 * self.shape.hidden), b"", b"", (-1, -1))
        slot = row.slot(self.shape.block)
        self._cache[slot] = row.stream[: self.shape.head_dim]
        terms = [self._context(row, rows)]
        terms += [self._experts[expert] @ row.stream for expert in self.chosen(row)]
        total = self.add([row.stream, *terms], row, rows)
        kept = self._cache[slot].tobytes()
        return Left(total.tobytes(), kept, b"", tuple(self.chosen(row)))

    def add(self, terms: list[Numbers], row: Row, rows: Sequence[Row]) -> Numbers:
        """Add in order."""
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def _context(self, row: Row, rows: Sequence[Row]) -> Numbers:
        block = self.shape.block
        seen = [row.pages[p // block] * block + p % block for p in self.positions(row, rows)]
        keys = np.zeros(self.shape.hidden, dtype=np.float32)
        for slot in seen:
            keys[: self.shape.head_dim] += self._cache[slot]
        return keys

    def positions(self, row: Row, rows: Sequence[Row]) -> list[int]:
        return list(range(row.position + 1))


class OrderOfTheBatch(Toy):
    """Adds the other way round in wide steps."""

    def add(self, terms: list[Numbers], row: Row, rows: Sequence[Row]) -> Numbers:
        live = sum(other.live for other in rows)
        return super().add(terms[::-1] if live > 2 else terms, row, rows)


class OrderOfTheWidth(Toy):
    """Adds the other way round in steps of the widest build, whoever is in them."""

    def add(self, terms: list[Numbers], row: Row, rows: Sequence[Row]) -> Numbers:
        return super().add(terms[::-1] if len(rows) == 16 else terms, row, rows)


class OrderOfArrival(Toy):
    """Adds in another order each time."""

    def add(self, terms: list[Numbers], row: Row, rows: Sequence[Row]) -> Numbers:
        turn = hash((self.runs, self.runs**2)) % len(terms)
        return super().add([*terms[turn:], *terms[:turn]], row, rows)


class PadsInTheUnion(Toy):
    """Reads the experts of pads too."""

    def reads(self, rows: Sequence[Row]) -> set[int]:
        return {expert for row in rows for expert in self.chosen(row)}


class WholePages(Toy):
    """Reads the unwritten rest of a page, at a weight of 0."""

    def add(self, terms: list[Numbers], row: Row, rows: Sequence[Row]) -> Numbers:
        last = row.pages[row.position // self.shape.block] * self.shape.block
        rest = self._cache[last : last + self.shape.block].sum() * np.float32(0)
        return super().add([*terms, np.broadcast_to(rest, terms[0].shape)], row, rows)


class DirtyScratch(Toy):
    """Begins a sum with what scratch holds, at a weight of 0."""

    def add(self, terms: list[Numbers], row: Row, rows: Sequence[Row]) -> Numbers:
        return super().add([terms[0] + self.scratch * np.float32(0), *terms[1:]], row, rows)


class BlindVerifyRows(Toy):
    """Sees no key that its own step writes but the row's own."""

    def positions(self, row: Row, rows: Sequence[Row]) -> list[int]:
        own = [other.position for other in rows if other.request == row.request]
        return [*range(min(own)), row.position]


class PadsWrite(Toy):
    """Writes the slots of pads."""

    def reads(self, rows: Sequence[Row]) -> set[int]:
        for row in rows:
            if not row.live:
                self._cache[row.slot(self.shape.block)] = row.stream[: self.shape.head_dim]
        return super().reads(rows)


class PadsRouted(Toy):
    """Reports experts of pads."""

    def _row(self, row: Row, rows: Sequence[Row]) -> Left:
        left = super()._row(row, rows)
        return left if row.live else replace(left, routing=tuple(self.chosen(row)))
