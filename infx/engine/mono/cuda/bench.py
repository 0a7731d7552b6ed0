"""Time the two arms at true shapes on the device, check them first, print a table, keep JSON.

``python -m infx.engine.mono.cuda.bench --widths 1,2,4,8,16 --out FILE``

The floor is the bytes that a layer must read (fp8 projections, bf16 router, the union's experts and
the shared one in MXFP4 at 4.25 bits, 16 chosen blocks of fp8 keys and values a row with their
scales, all fp8 index keys of each request) over the copy bandwidth of the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infx.engine.mono.cuda.arguments import LayerArgs
from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.cuda.judge import judge_attention, judge_stages
from infx.engine.mono.cuda.random_layer import (
    BLOCK,
    DIM,
    EXPERT_SIZE,
    HIDDEN,
    TOPK,
    TOPK_BLOCKS,
    RandomLayer,
    Step,
    make_layer,
    make_step,
    narrowed,
)
from infx.engine.mono.cuda.timing import Launch, captured, copy_bandwidth, machine, timed
from infx.engine.mono.shape import Caches, Formats

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["main"]

EXPERT_BYTES = Formats.weight_bytes("mxfp4", 3 * EXPERT_SIZE, HIDDEN)
FIXED_BYTES = 2560 * HIDDEN + 2048 * HIDDEN + 2 * 128 * HIDDEN + EXPERT_BYTES
TARGETS = {1: (45, 30), 2: (52, 37), 4: (65, 50), 8: (89, 78), 16: (129, 120)}
WATCHED_REPLAYS = 1000
SM_MHZ = 1980  # of an H200 under load, at every width (docs/mono.md)
READ_ROUNDS, READ_BLOCKS = 8, 264
ARMS = ("unfused", "unfused_pdl", "mono", "mono_pdl")


@dataclass(frozen=True, slots=True)
class World:
    """Layers, a step, and the arguments of each layer; streams go from layer to layer."""

    layers: list[RandomLayer]
    step: Step
    streams: list[Tensor]
    args: list[LayerArgs]

    @classmethod
    def make(cls, layers: list[RandomLayer], step: Step) -> World:
        """Return ``layers`` on ``step``, from the same stream whatever the width."""
        import torch

        draw = torch.Generator("cuda").manual_seed(7)
        first = torch.randn(16, HIDDEN, generator=draw, device="cuda")[: step.rows].clone()
        streams = [first, *(torch.full_like(first, torch.nan) for _ in layers)]
        args = [step.args(layer, streams[i], streams[i + 1]) for i, layer in enumerate(layers)]
        return cls(layers, step, streams, args)

    def each(self, launch: Callable[[int, LayerArgs], None]) -> Launch:
        """Return a launch of every layer in turn."""

        def all_layers(stream: int) -> None:
            for args in self.args:
                launch(stream, args)

        return all_layers

    def unions(self, arms: Arms) -> list[int]:
        """Return how many experts each layer reads, the shared one not counted."""
        import torch

        counts = []
        for args in self.args:
            arms.unfused(torch.cuda.current_stream().cuda_stream, args)
            ids = self.step.tensors["routing"][:, :TOPK]
            counts.append(len(set(ids[ids >= 0].tolist())))
        return counts


def layer_bytes(rows: int, union: float, context: int) -> float:
    """Return the bytes that a layer must read (the module says which)."""
    kv, index = Caches("fp8", "fp8").token_bytes(DIM)
    chosen = min(TOPK_BLOCKS, -(-context // BLOCK)) * BLOCK
    return FIXED_BYTES + union * EXPERT_BYTES + rows * (chosen * 2 * kv + context * index)


def check(world: World, arms: Arms) -> dict[str, Any]:
    """Run layer 0 by both arms; return errors, what of mono differs in bits, and after replays."""
    import torch

    stream, args = torch.cuda.current_stream().cuda_stream, world.args[0]
    names = ("mid", "mids", "routing", "logit_sums", "qkv_sums", "chosen")
    caches = ("keys", "values", "index_keys", "key_scales", "value_scales")
    given, out = world.step.tensors | world.layers[0].tensors, world.streams[1]
    arms.unfused(stream, args)
    arms.stage("merge", stream, args)
    errors = judge_stages(world.layers[0], world.step, world.streams[0], out)
    errors |= judge_attention(world.layers[0], world.step)
    first = {name: given[name].clone() for name in (*names, *caches)} | {"out": out.clone()}

    def differing(launch: Callable[[], object]) -> list[str]:
        """Return what ``launch`` leaves with other bits than the unfused arm did; scratch and
        output are poisoned before."""
        for name in names:
            given[name].view(torch.uint8).fill_(255)
        out.fill_(torch.nan)
        launch()
        torch.cuda.synchronize()
        now = given | {"out": out}
        return [name for name in first if not torch.equal(_bits(first[name]), _bits(now[name]))]

    found: dict[str, Any] = {
        "errors": errors,
        "mono_differs": differing(lambda: arms.mono(stream, args)),
    }
    graph = captured(lambda s: arms.mono(s, args))
    found["replays"] = WATCHED_REPLAYS
    found["replayed_differs"] = differing(lambda: [graph.replay() for _ in range(WATCHED_REPLAYS)])
    return found | {"gave_up": given["give_up"].tolist()}


def _bits(x: Tensor) -> Tensor:
    import torch

    return x.contiguous().view(torch.uint8)


def narrower_differs(wide: World, rows: int, arms: Arms, wide_arms: Arms) -> list[int]:
    """Return the rows whose output bits depend on whether 16 rows run or the first ``rows``."""
    import torch

    stream = torch.cuda.current_stream().cuda_stream
    wide_arms.mono(stream, wide.args[0])
    world = World.make(wide.layers[:1], narrowed(wide.step, rows))
    arms.mono(stream, world.args[0])
    torch.cuda.synchronize()
    same = (wide.streams[1][:rows] == world.streams[1]).all(-1)
    return (~same).nonzero()[:, 0].tolist()


def time_reads(world: World, arms: Arms, union: int) -> dict[str, Any]:
    """Return µs of pure reads of the bytes of the streaming stages."""
    sizes = {
        "qkv": 2560 * HIDDEN,
        "o": 2048 * HIDDEN,
        "up": (union + 1) * EXPERT_BYTES * 2 // 3 // 16 * 16,
        "down": (union + 1) * EXPERT_BYTES // 3 // 16 * 16,
    }
    out = world.step.tensors["deal"].data_ptr()
    figures = {}
    for name, size in sizes.items():

        def launch(stream: int, size: int = size) -> None:
            for i in range(READ_ROUNDS):
                layer = world.layers[i % len(world.layers)].tensors["up"].data_ptr()
                again = i // len(world.layers) * size
                arms.read(stream, layer + again, size, out, READ_BLOCKS)

        figures[name] = timed(launch, READ_ROUNDS) | {"bytes": size}
    return figures


def time_arms(world: World, arms: Arms) -> dict[str, Any]:
    """Return µs a layer of the arms; PDL: the unfused kernels as programmatic dependents."""
    ways = (
        arms.unfused,
        lambda s, a: arms.unfused(s, a, dependent=True),
        arms.mono,
        lambda s, a: arms.mono(s, a, dependent=a is not world.args[0]),
    )
    times = (timed(world.each(way), len(world.args)) for way in ways)
    return dict(zip(ARMS, times, strict=True))


def bench_width(
    layers: list[RandomLayer], wide: World, options: argparse.Namespace, rows: int
) -> dict[str, Any]:
    """Check and time one width."""
    import torch

    world = World.make(layers, make_step(rows, options.context))
    arms = Arms(rows, options.define, options.cubins)
    result: dict[str, Any] = {"rows": rows, "check": check(world, arms)}
    wide_arms = Arms(wide.step.rows, options.define, options.cubins)
    result["rows_that_differ_alone"] = narrower_differs(wide, rows, arms, wide_arms)
    print(f"rows {rows}: {json.dumps(result)}", flush=True)
    result["unions"] = world.unions(arms)
    union = statistics.mean(result["unions"])
    result["bytes"] = layer_bytes(rows, union, options.context)
    result |= time_arms(world, arms)
    for _ in range(3000):
        arms.mono(torch.cuda.current_stream().cuda_stream, world.args[0])
    result["under_load"] = machine()
    torch.cuda.synchronize()
    if options.stages:
        result["stages"] = {
            name: timed(world.each(lambda s, a, n=name: arms.stage(n, s, a)), len(world.args))  # type: ignore[misc]
            for name in arms.stages
        }
        result["reads"] = time_reads(world, arms, round(union))
    if rows == 16:
        padded = World.make(layers, make_step(16, options.context, pads=7))
        result["nine_real_seven_pads"] = time_arms(padded, arms)
    result["gave_up"] = world.step.tensors["give_up"].tolist()
    return result


def report(results: list[dict[str, Any]], bandwidth: float) -> None:
    """Print what was found, a line a width."""
    for r in results:
        for name, t in r.get("stages", {}).items():
            read = r["reads"].get(name)
            share = f"  a pure read {read['us']:.2f}: {read['us'] / t['us']:.0%}" if read else ""
            print(f"rows {r['rows']:2d} {name:7s} {t['us']:6.2f} µs{share}")
        if "nine_real_seven_pads" in r:
            cells = (f"{a} {r['nine_real_seven_pads'][a]['us']:.1f}" for a in ARMS)
            print(f"rows {r['rows']:2d} of which 7 pads: {'  '.join(cells)}")
    print(f"copy {bandwidth:.2f} TB/s")
    print(
        "rows union    MB  floor | unfused, with PDL, mono: µs [low, high] | TB/s, of floor | bars"
    )
    for r in results:
        size, mono = r["bytes"] / 1e6, r["mono"]["us"]
        floor, union = size / bandwidth, statistics.mean(r["unions"])
        times = [f"{r[a]['us']:6.1f} [{r[a]['low']:.1f}, {r[a]['high']:.1f}]" for a in ARMS]
        print(
            f"{r['rows']:4d} {union:5.1f} {size:6.1f} {floor:5.1f} | {' '.join(times)} |"
            f" {size / mono:.2f} {floor / mono:.0%} | {TARGETS.get(r['rows'])}"
        )


def trace(layers: list[RandomLayer], options: argparse.Namespace, rows: int) -> None:
    """Print when blocks pass the marks of kernels built with TRACE: µs since mark 0."""
    import torch

    world = World.make(layers, make_step(rows, options.context))
    arms = Arms(rows, {"TRACE": 1, **options.define}, options.cubins)
    marks = world.step.tensors["trace"]
    for name, launch in (("unfused", arms.unfused), ("mono", arms.mono)):
        found = []
        for args in [*world.args, *world.args]:
            marks.zero_()
            launch(torch.cuda.current_stream().cuda_stream, args)
            torch.cuda.synchronize()
            found.append(marks.clone())
        times = torch.stack(found[len(world.args) :]).double().cpu()
        for mark in range(1, times.shape[-1]):
            since = (times[..., mark] - times[..., 0])[times[..., mark] > 0] / SM_MHZ
            if since.numel():
                edges = since.quantile(torch.tensor([0.02, 0.5, 0.98]).double()).tolist()
                print(f"rows {rows} {name} mark {mark}: " + " ".join(f"{t:.2f}" for t in edges))


def _define(text: str) -> tuple[str, int]:
    name, value = text.split("=")
    return name, int(value)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", default="1,2,4,8,16")
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--stages", action="store_true", help="time each unfused kernel too")
    parser.add_argument("--define", type=_define, action="append", default=[], metavar="NAME=N")
    parser.add_argument("--trace", action="store_true", help="print when blocks pass the marks")
    parser.add_argument("--cubins", type=Path, help="folder of compiled builds")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    options.define = dict(options.define)
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the bench."""
    import torch

    options = _options(arguments)
    widths = [int(width) for width in options.widths.split(",")]
    begin = time.monotonic()
    torch.backends.cuda.matmul.allow_tf32 = False
    layers = [make_layer(seed, 16 * -(-options.context // 128)) for seed in range(options.layers)]
    if options.trace:
        for rows in widths:
            trace(layers, options, rows)
        return 0
    wide = World.make(layers, make_step(16, options.context))
    bandwidth, results = copy_bandwidth(), []
    for rows in widths:
        results.append(bench_width(layers, wide, options, rows))
        print(f"rows {rows} done at {time.monotonic() - begin:.1f} s", flush=True)
        if options.out:
            found = {
                "machine": machine(),
                "torch": torch.__version__,
                "copy_tb_s": bandwidth,
                "context": options.context,
                "layers": options.layers,
                "kv": "fp8",
                "routing": "uniform: the router on random streams",
                "ranks": "a self-sum of 4 equal parts",
                "define": options.define,
                "results": results,
            }
            options.out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    report(results, bandwidth)
    return 0


if __name__ == "__main__":
    sys.exit(main())
