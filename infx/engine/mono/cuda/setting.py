"""What a bench's layers run on: requests of one length, kinds of caches, verify rows, pads.

Plain values: who reads them draws tensors (random_step, random_layer) or counts bytes (floor).
"""

from __future__ import annotations

from dataclasses import dataclass

from infx.engine.mono.cuda.scratch import SHAPE
from infx.engine.mono.shape import KINDS as LAYER_KINDS
from infx.engine.mono.shape import MOST_ROWS, Kind

__all__ = ["KINDS", "MIXED", "SHAPE", "Asked", "Setting"]

# Of caches; a kernel's KV_KIND and INDEX_KIND are places in here (kernels/attn_cache.cuh).
KINDS = ("bf16", "fp8", "mxfp4")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: tokens that its cache holds, and the rows that come after them."""

    context: int
    rows: int = 1

    @property
    def tokens(self) -> int:
        """Tokens that the last row sees, itself included."""
        return self.context + self.rows

    @property
    def pages(self) -> int:
        """Pages of the request."""
        return -(-self.tokens // SHAPE.block)


# A first token, a page's last, fewer blocks than are chosen and as many, verify rows, pads.
MIXED = (Asked(0), Asked(126, 3), Asked(2047), Asked(2048), Asked(32767, 2), Asked(40000, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """``context`` tokens are what each request's last row sees, itself included.

    ``rows_per_request``: rows of a request, at consecutive positions (1: plain decode, K + 1: the
    verify rows of K drafts). ``pads``: the last rows of a step are nobody's. ``kind``: of layers.
    """

    context: int = 8192
    kv: str = "fp8"
    index: str = "fp8"
    rows_per_request: int = 1
    pads: int = 0
    kind: Kind = "sparse"

    @property
    def defines(self) -> dict[str, int]:
        """Numbers of a build: its caches and its kind of layer."""
        caches = {"KV_KIND": KINDS.index(self.kv), "INDEX_KIND": KINDS.index(self.index)}
        return caches | {"LAYER_KIND": LAYER_KINDS.index(self.kind)}

    def requests(self, width: int) -> tuple[Asked, ...]:
        """Return the requests of a step of ``width`` rows; the last one has the rows left over."""
        live, each = width - self.pads, self.rows_per_request
        rows = [min(each, live - first) for first in range(0, live, each)]
        return tuple(Asked(self.context - count, count) for count in rows)

    def pages(self) -> int:
        """Return the pages of a layer's caches: those of the widest step, and one of nobody."""
        return 1 + sum(asked.pages for asked in self.requests(MOST_ROWS))
