"""What a probe says to a back end: steps of rows over a cache; and what each row leaves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from infx.engine.mono.shape import Kind, LayerShape

__all__ = [
    "ARMS",
    "NAN",
    "PAD",
    "ZERO",
    "Arm",
    "Filling",
    "Left",
    "Numbers",
    "Ran",
    "Row",
    "Subject",
]

Arm = Literal["mono", "unfused", "reference"]
"""One call a layer, a call a stage, or plain torch."""
ARMS: tuple[Arm, ...] = ("mono", "unfused", "reference")

Numbers = npt.NDArray[np.float32]

PAD = -1
# Bytes of memory that nobody wrote: eight bits set are a NaN in every format of numbers.
ZERO, NAN = 0x00, 0xFF


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A row of a step: its request, position, that request's pages, and its input [hidden].

    Request -1 is a pad: the rest is what stood there before, and no row may see it. Rows of one
    request stand together.
    """

    request: int
    position: int
    pages: tuple[int, ...]
    stream: Numbers

    @property
    def live(self) -> bool:
        """Whether the row is no pad."""
        return self.request != PAD

    def slot(self, block: int) -> int:
        """Return the row's slot of the cache, with pages of ``block`` tokens."""
        return self.pages[self.position // block] * block + self.position % block


@dataclass(frozen=True, slots=True)
class Left:
    """What one row left, bit by bit: output, keys and values with scales, index key, experts.

    A pad keeps nothing in the cache; ``routing`` is () where the layer, or the arm, tells none.
    """

    output: bytes
    cache: bytes
    index: bytes
    routing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a step's rows left, in their order.

    ``stray`` says whether any other byte of the layer's cache changed; ``read`` whether weights of
    an expert that was spoiled were read (None: the arm cannot tell).
    """

    rows: tuple[Left, ...]
    stray: bool = False
    read: bool | None = None


class Filling(Protocol):
    """What a cache holds before a step: `World` is one."""

    @property
    def pages(self) -> int:
        """Pages of the cache, those that nobody holds included."""

    def history(self) -> tuple[npt.NDArray[np.int64], Mapping[str, Numbers]]:
        """Return slots [n], and ``keys``, ``values`` [n, kv heads, dim], ``index_keys`` [n, dim].

        The same vectors for every layer, before the cache's format.
        """


class Subject(Protocol):
    """One arm of a model's layers, as the probe needs it: any back end can be one."""

    @property
    def shape(self) -> LayerShape:
        """The shape of the layers."""

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kind of each layer."""

    def fill(self, filling: Filling, nothing: int) -> None:
        """Make the cache of every layer hold ``filling``, all other bytes of it ``nothing``.

        From now on scratch and outputs are full of ``nothing`` too before each step.
        """

    def run(self, layer: int, *steps: Sequence[Row], spoiled: Collection[int] = ()) -> list[Ran]:
        """Return what ``steps``, one after another, leave; the cache is then as it was filled.

        The weights of experts ``spoiled`` are NaN meanwhile.
        """
