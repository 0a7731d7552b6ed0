"""The rows of a probe: three that are looked at, and everything that may stand beside them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from infx.engine.mono.probe.rows import PAD, Numbers, Row
from infx.engine.mono.shape import MOST_ROWS, LayerShape

__all__ = ["COMPANIES", "MOST_DRAFTS", "PROBES", "World", "WorldStep"]

PROBES = 3
MOST_DRAFTS = 7
# Who stands beside the probes, by seed in turn: every sort alone, and all of them together.
COMPANIES = ("mixed", "request", "pad", "long", "sharer", "duplicate")
# Contexts go up to so many blocks (a request's), or so many (the prefix that long ones share): some
# beyond what block selection keeps, and beyond one partition of keys.
REQUEST_BLOCKS, LONG_BLOCKS = 20, 128
# Room for a page that nobody ever holds, before and behind the others.
UNHELD = 2


@dataclass(frozen=True, slots=True)
class _Request:
    """``context`` tokens that the cache holds; ``likes`` is whose tokens they are, itself mostly.

    Up to ``shared`` pages are those of the request that it is like.
    """

    number: int
    context: int
    pages: tuple[int, ...]
    likes: int
    shared: int


@dataclass(frozen=True, slots=True)
class WorldStep:
    """Rows of a step; ``probes`` tells which row each of the probes is, by number."""

    rows: tuple[Row, ...]
    probes: Mapping[int, int]

    @property
    def live(self) -> list[int]:
        """Rows that are no pads."""
        return [number for number, row in enumerate(self.rows) if row.live]


class World:
    """Requests over the pages of one cache, drawn from ``seed``, for layers of ``shape``.

    Requests 0 to 2 are the probes; each kind of company has enough for the widest step. Long ones
    share the pages of one long prefix, duplicates those of a probe but for the last page.
    """

    def __init__(self, shape: LayerShape, seed: int) -> None:
        self.shape, self.seed = shape, seed
        self._draw = random.Random(seed)
        self.pages = _room(shape)
        self._free = list(range(1, self.pages - 1))
        self._draw.shuffle(self._free)
        self._requests: list[_Request] = []
        self._sorts = {
            "probe": [self._own(context) for context in self._probe_contexts()],
            "request": [self._own(self._context(REQUEST_BLOCKS)) for _ in range(MOST_ROWS)],
            "long": self._long(),
            "duplicate": [self._twin(number % PROBES) for number in range(MOST_ROWS)],
        }

    def probe(self, number: int, ahead: int = 0) -> Row:
        """Return the row of probe ``number`` that is ``ahead`` tokens past its context."""
        draw = np.random.default_rng((self.seed, number, ahead))
        return self._row(self._sorts["probe"][number], draw, ahead)

    def step(self, width: int) -> WorldStep:
        """Return a step of ``width`` rows: probes first, in the middle and last, and company."""
        draw = random.Random(f"{self.seed} {width}")
        places = sorted({0, width // 2, width - 1})
        numbers = draw.sample(range(PROBES), len(places))
        probes = dict(zip(numbers, places, strict=True))
        company = self._company(draw, self.sort, [self.probe(number) for number in numbers])
        at = {place: self.probe(number) for number, place in probes.items()}
        rows = tuple(at.get(place) or next(company) for place in range(width))
        return WorldStep(rows, probes)

    def verify_step(self, drafts: int) -> WorldStep:
        """Return a step whose first probe has ``drafts`` + 1 rows, somewhere in company.

        ``probes`` tells where its first row is.
        """
        draw = random.Random(f"{self.seed} verify {drafts}")
        number = draw.randrange(PROBES)
        own = [self.probe(number, ahead) for ahead in range(drafts + 1)]
        beside = draw.randint(0, MOST_ROWS - len(own))
        company = self._company(draw, self.sort, own[:1])
        others = [next(company) for _ in range(beside)]
        first = draw.randint(0, beside)
        return WorldStep((*others[:first], *own, *others[first:]), {number: first})

    def padded_step(self, width: int) -> tuple[WorldStep, tuple[Row, ...]]:
        """Return a step of few rows and many pads, and its rows as they were before they left.

        At least one row is live, and about a quarter.
        """
        draw = random.Random(f"{self.seed} pads {width}")
        requests = self._sorts["request"]
        before = tuple(
            self._row(request, np.random.default_rng((self.seed, width, place)))
            for place, request in enumerate(requests[:width])
        )
        staying = set(draw.sample(range(width), 1 + width // 4))
        rows = tuple(
            row if place in staying else replace(row, request=PAD)
            for place, row in enumerate(before)
        )
        return WorldStep(rows, {}), before

    @property
    def sort(self) -> str:
        """Who stands beside the probes in this world, one of `COMPANIES`."""
        return COMPANIES[self.seed % len(COMPANIES)]

    def history(self) -> tuple[npt.NDArray[np.int64], dict[str, Numbers]]:
        """Return the slots and vectors of all contexts (`rows.Filling`)."""
        shape, block = self.shape, self.shape.block
        draw = np.random.default_rng(self.seed)
        sizes = {r.number: r.context for r in self._requests if r.likes == r.number}
        firsts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
        slots, source = [], []
        for request in self._requests:
            positions = range(request.shared * block, request.context)
            slots += [request.pages[p // block] * block + p % block for p in positions]
            source += [firsts[request.likes] + p for p in positions]
        heads, dim, known = shape.kv_heads, shape.head_dim, sum(sizes.values())
        made = draw.standard_normal((known, 2 * heads + 1, dim), dtype=np.float32)
        chosen = made[np.array(source, dtype=np.int64)]
        return np.array(slots, dtype=np.int64), {
            "keys": chosen[:, :heads],
            "values": chosen[:, heads : 2 * heads],
            "index_keys": chosen[:, -1],
        }

    def _probe_contexts(self) -> list[int]:
        """Return a context within the first block, one about a few blocks, and any."""
        shape = self.shape
        chosen = min(shape.topk_blocks + 2, _blocks(shape, REQUEST_BLOCKS) - 1)
        contexts = [
            self._draw.randrange(shape.block),
            min(self._draw.randrange(shape.block * chosen), _most(shape, REQUEST_BLOCKS)),
            self._context(REQUEST_BLOCKS),
        ]
        self._draw.shuffle(contexts)
        return contexts

    def _context(self, blocks: int) -> int:
        return self._draw.randint(0, _most(self.shape, blocks))

    def _own(self, context: int) -> _Request:
        pages = tuple(self._free.pop() for _ in range(self._pages_for(context)))
        made = _Request(len(self._requests), context, pages, len(self._requests), 0)
        self._requests.append(made)
        return made

    def _long(self) -> list[_Request]:
        most = _most(self.shape, LONG_BLOCKS)
        first = self._own(most)
        least = max(0, most - 4 * self.shape.block)
        rest = [self._like(first, self._draw.randint(least, most)) for _ in range(MOST_ROWS - 1)]
        return [first, *rest]

    def _twin(self, probe: int) -> _Request:
        original = self._requests[probe]
        return self._like(original, original.context)

    def _like(self, other: _Request, context: int) -> _Request:
        """Return a request that goes on from full pages of ``other``, as a found prefix does."""
        shared = context // self.shape.block
        own = self._pages_for(context) - shared
        pages = (*other.pages[:shared], *(self._free.pop() for _ in range(own)))
        made = _Request(len(self._requests), context, pages, other.number, shared)
        self._requests.append(made)
        return made

    def _pages_for(self, context: int) -> int:
        return -(-(context + _AHEAD) // self.shape.block)

    def _row(self, request: _Request, draw: np.random.Generator, ahead: int = 0) -> Row:
        # Streams grow with depth: any size from a tenth to ten.
        size = np.float32(10 ** draw.uniform(-1, 1))
        stream = size * draw.standard_normal(self.shape.hidden, dtype=np.float32)
        return Row(request.number, request.context + ahead, request.pages, stream)

    def _company(self, draw: random.Random, sort: str, probes: Sequence[Row]) -> Iterator[Row]:
        numbers = np.random.default_rng(draw.randrange(2**32))
        makers: dict[str, Callable[[int], Row]] = {
            "request": lambda n: self._row(self._sorts["request"][n], numbers),
            "pad": lambda n: replace(self._row(self._sorts["request"][n], numbers), request=PAD),
            "long": lambda n: self._row(self._sorts["long"][n], numbers),
            "sharer": lambda n: replace(
                self._row(self._sorts["request"][n], numbers), stream=draw.choice(probes).stream
            ),
            "duplicate": lambda n: self._double(n, probes),
        }
        for number in range(MOST_ROWS):
            yield makers[draw.choice(COMPANIES[1:]) if sort == "mixed" else sort](number)

    def _double(self, number: int, probes: Sequence[Row]) -> Row:
        twin = self._sorts["duplicate"][number]
        own = next((row for row in probes if row.request == twin.likes), probes[0])
        return Row(twin.number, twin.context, twin.pages, own.stream)


# The row itself and its drafts.
_AHEAD = MOST_DRAFTS + 1


def _blocks(shape: LayerShape, most: int) -> int:
    return min(most, shape.reach // shape.block)


def _most(shape: LayerShape, blocks: int) -> int:
    return _blocks(shape, blocks) * shape.block - _AHEAD


def _room(shape: LayerShape) -> int:
    """Return the pages that any world of ``shape`` needs."""
    own, long = _blocks(shape, REQUEST_BLOCKS), _blocks(shape, LONG_BLOCKS)
    ends = 2 + _AHEAD // shape.block
    return UNHELD + (PROBES + MOST_ROWS) * own + long + (2 * MOST_ROWS - 1) * ends
