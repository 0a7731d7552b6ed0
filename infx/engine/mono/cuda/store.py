"""Keys, values and index keys of one layer in pages, of every kind of cache, in torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.setting import SHAPE

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Store"]

BLOCK, DIM = SHAPE.block, SHAPE.head_dim
NAN_CODE, NAN_SCALE = 0x7F, 255


@dataclass(frozen=True, slots=True)
class Store:
    """Vectors of one kind in pages: ``numbers`` [pages, block, width]; ``scales`` None: none.

    ``scaled``: fp8 with a float scale a vector, as keys and values have.
    """

    kind: str
    scaled: bool
    numbers: Tensor
    scales: Tensor | None

    @classmethod
    def unwritten(cls, kind: str, scaled: bool, pages: int, device: str) -> Store:
        """Return pages of NaN."""
        import torch

        width = {"bf16": DIM, "fp8": DIM, "mxfp4": DIM // 2}[kind]
        dtype = torch.bfloat16 if kind == "bf16" else torch.uint8
        fill = torch.nan if kind == "bf16" else NAN_CODE
        numbers = torch.full((pages, BLOCK, width), fill, dtype=dtype, device=device)
        scales = None
        if kind == "mxfp4":
            scales = torch.full((pages, BLOCK, 4), NAN_SCALE, dtype=torch.uint8, device=device)
        elif kind == "fp8" and scaled:
            scales = torch.full((pages, BLOCK), torch.nan, device=device)
        return cls(kind, scaled, numbers, scales)

    def parts(self) -> list[Tensor]:
        """Return numbers and scales."""
        return [self.numbers] if self.scales is None else [self.numbers, self.scales]

    def clone(self) -> Store:
        """Return a copy in memory of its own."""
        scales = None if self.scales is None else self.scales.clone()
        return Store(self.kind, self.scaled, self.numbers.clone(), scales)

    def write(self, slots: Tensor, vectors: Tensor) -> None:
        """Keep float32 ``vectors`` [n, dim] at ``slots`` [n]."""
        for part, new in zip(self.parts(), self._encoded(vectors), strict=True):
            part.flatten(0, 1)[slots] = new

    def _encoded(self, x: Tensor) -> tuple[Tensor, ...]:
        import torch

        from infx.engine.quant import fp8_quantise, mxfp4_pack, saturating_e4m3

        if self.kind == "bf16":
            return (x.bfloat16(),)
        if self.kind == "mxfp4":
            return mxfp4_pack(x)
        if not self.scaled:
            return (saturating_e4m3(x).view(torch.uint8),)
        codes, scale = fp8_quantise(x, -1)
        return codes.view(torch.uint8), scale[..., 0]

    def read(self, pages: Tensor) -> Tensor:
        """Return float32 [n block, dim] of ``pages`` [n]."""
        from infx.engine.quant import fp8_unpack, mxfp4_unpack

        parts = [part[pages].flatten(0, 1) for part in self.parts()]
        if self.kind == "bf16":
            return parts[0].float()
        if self.kind == "mxfp4":
            return mxfp4_unpack(*parts)
        numbers = fp8_unpack(parts[0])
        return numbers * parts[1][:, None] if self.scaled else numbers
