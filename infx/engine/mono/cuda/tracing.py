"""When blocks pass the marks of kernels that were built with TRACE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.arguments import LayerArgs
from infx.engine.mono.cuda.builds import Builds
from infx.engine.mono.cuda.setting import Setting
from infx.engine.mono.cuda.timing import current_stream, finish
from infx.engine.mono.cuda.world import Rank, World

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["trace"]

SM_MHZ = 1980  # of an H200 that works a layer at a time (docs/mono.md)
EDGES = (0.02, 0.5, 0.98)


def trace(setting: Setting, widths: Sequence[int], layers: int, builds: Builds) -> None:
    """Print for each mark of mono `EDGES` of all blocks: µs since mark 0.

    Not of the unfused arm: a clock is an SM's, and a block of its next kernel may be on another.
    """
    rank = Rank(setting, layers)
    for rows in widths:
        for mark, edges in _edges(_clocks(rank.world(rows), builds.arms(rows).mono)):
            print(f"rows {rows} mono mark {mark}: " + " ".join(f"{t:.2f}" for t in edges))


def _clocks(world: World, launch: Callable[[int, LayerArgs], None]) -> Tensor:
    """Return clocks [layer, block, mark] of the second pass over the layers."""
    import torch

    marks, found = world.step.tensors["trace"], []
    for args in [*world.args, *world.args]:
        marks.zero_()
        launch(current_stream(), args)
        finish()
        found.append(marks.clone())
    return torch.stack(found[len(world.args) :])


def _edges(clocks: Tensor) -> Iterator[tuple[int, list[float]]]:
    """Yield each mark that some block passed and its edges."""
    import torch

    times = clocks.double().cpu()
    for mark in range(1, times.shape[-1]):
        since = (times[..., mark] - times[..., 0])[times[..., mark] > 0] / SM_MHZ
        if since.numel():
            yield mark, since.quantile(torch.tensor(EDGES).double()).tolist()
