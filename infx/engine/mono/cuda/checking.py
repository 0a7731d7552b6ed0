"""Whether what is timed is right: a layer by both arms, its replays, and rows in other company."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.cuda.judge import faults, judge_layer
from infx.engine.mono.cuda.random_layer import Layer, copied
from infx.engine.mono.cuda.random_step import picked
from infx.engine.mono.cuda.timing import captured, current_stream, finish
from infx.engine.mono.cuda.world import World, ways

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["chain_differs", "check_layer", "rows_that_differ"]

WATCHED_REPLAYS, CHAIN_REPLAYS = 1000, 20
# Not queries: where rows are alone mono makes them where they are read.
COMPARED = ("qkv_sums", "chosen", "mid", "logit_sums", "routing", "mids")


def check_layer(world: World, arms: Arms) -> dict[str, Any]:
    """Run layer 0 by both arms; return the judge's figures, what of mono has other bits than the
    unfused arm, and what it has after replays of its graph."""

    stream, args = current_stream(), world.args[0]
    layer, step, out = world.layers[0], world.step, world.streams[1]
    before = copied(layer)

    def left_by(launch: Callable[[], object]) -> dict[str, Tensor]:
        """Return what ``launch`` leaves, from poisoned scratch and the first caches."""
        _begin(world, before)
        launch()
        finish()
        fields = step.tensors | layer.fields | {"out": out}
        caches = set(layer.fields) - set(layer.weights)
        return {name: fields[name] for name in (*COMPARED, *sorted(caches), "out")}

    def unfused() -> None:
        arms.unfused(stream, args)
        if "split" in arms.stages:  # its partitions are merged by the next one
            arms.stage("merge", stream, args)

    first = {name: tensor.clone() for name, tensor in left_by(unfused).items()}
    errors = judge_layer(before, layer, step, world.streams[0], out)
    mono = _differing(first, left_by(lambda: arms.mono(stream, args)))
    graph = captured(lambda s: arms.mono(s, args))
    replayed = left_by(lambda: [graph.replay() for _ in range(WATCHED_REPLAYS)])
    return {
        "errors": errors,
        "faults": faults(errors),
        "mono_differs": mono,
        "replays": WATCHED_REPLAYS,
        "replayed_differs": _differing(first, replayed),
        "gave_up": step.tensors["give_up"].tolist(),
    }


def chain_differs(world: World, arms: Arms) -> list[str]:
    """Return the ways to launch whose layers, one behind the other in a graph that is replayed,
    leave streams with other bits than the unfused arm's; a dependent launch may run ahead."""
    import torch

    left = {}
    for name, way in ways(arms).items():
        for stream in world.streams[1:]:
            stream.fill_(torch.nan)
        graph = captured(world.each(way))
        for _ in range(CHAIN_REPLAYS):
            graph.replay()
        finish()
        left[name] = torch.stack(world.streams[1:])
    return [name for name, streams in left.items() if not _equal(streams, left["unfused"])]


def rows_that_differ(wide: World, arms: Arms, wide_arms: Arms) -> list[int]:
    """Return the rows of ``wide`` whose output bits are others in a step of ``arms``' width.

    Rows run with their neighbours, so rows of one request are parted; over the caches that the
    whole step left: a row looks at no token behind its own.
    """

    stream = current_stream()
    wide_arms.mono(stream, wide.args[0])
    differing: set[int] = set()
    last = wide.step.rows - arms.rows
    for first in sorted({*range(0, last, arms.rows), last}):
        rows = range(first, first + arms.rows)
        given = wide.streams[0][first : rows.stop].clone()
        alone = World.make(wide.layers[:1], picked(wide.step, rows), given)
        arms.mono(stream, alone.args[0])
        same = (alone.streams[1] == wide.streams[1][first : rows.stop]).all(-1)
        differing |= {first + row for row in (~same).nonzero()[:, 0].tolist()}
    return sorted(differing)


def _begin(world: World, before: Layer) -> None:
    """Poison what is compared, and put the caches back."""
    import torch

    for name in COMPARED:
        world.step.tensors[name].view(torch.uint8).fill_(255)
    world.streams[1].fill_(torch.nan)
    for store, old in zip(world.layers[0].stores, before.stores, strict=True):
        for part, kept in zip(store.parts(), old.parts(), strict=True):
            part.copy_(kept)


def _differing(first: dict[str, Tensor], now: dict[str, Tensor]) -> list[str]:
    return [name for name, kept in first.items() if not _equal(kept, now[name])]


def _equal(a: Tensor, b: Tensor) -> bool:
    import torch

    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
