"""A bench's run on the device: every width checked, then timed in graph replay."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.cuda.builds import Builds
from infx.engine.mono.cuda.checking import chain_differs, check_layer, rows_that_differ
from infx.engine.mono.cuda.floor import FLOOR, layer_bytes, streamed_bytes
from infx.engine.mono.cuda.report import ratios, spread
from infx.engine.mono.cuda.setting import SHAPE, Setting
from infx.engine.mono.cuda.timing import (
    Launch,
    captured,
    copy_bandwidth,
    current_stream,
    finish,
    machine,
    timed,
)
from infx.engine.mono.cuda.world import Rank, World, ways
from infx.engine.mono.shape import MOST_ROWS

__all__ = ["PADDED", "Plan", "measure"]

PADDED = 7  # of the widest step: nine real rows beside them
GROUP = 8  # layers in turn whose µs stand beside a whole step of more
LOADED_US = 400_000  # how long the device works while its clocks are asked for
READ_ROUNDS, READ_BLOCKS = 8, 264
TOPK = SHAPE.experts_per_token
# At 16 rows 48.5 experts of 57 layers, where uniform draws give 51.0 (docs/mono.md).
ROUTING = "the router on random streams: nearly uniform"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures. ``stages``: each unfused kernel too, beside pure reads of its bytes;
    ``times`` off: only checks."""

    setting: Setting
    widths: Sequence[int]
    layers: int = 8
    stages: bool = False
    times: bool = True


def measure(
    plan: Plan, builds: Builds, tell: Callable[[str], None] = lambda line: None
) -> Iterator[dict[str, Any]]:
    """Yield all that is known so far, after each width: plain data, more ``results`` each time.

    ``builds`` are compiled before the first layer is drawn.
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    count = builds.compile({*plan.widths, MOST_ROWS})
    tell(f"{count} builds compiled")
    found = _said(plan) | {"machine": machine(), "copy_tb_s": copy_bandwidth()}
    rank = Rank(plan.setting, plan.layers, tell=lambda made: _count(tell, made, plan.layers))
    found["made"] = {"seconds": rank.seconds, "peak_bytes": torch.cuda.max_memory_allocated()}
    found["mixed"] = check_layer(rank.mixed(), builds.arms(MOST_ROWS))
    wide = rank.world(MOST_ROWS)
    results: list[dict[str, Any]] = []
    for width in plan.widths:
        results.append(_at_width(plan, rank, wide, builds, width))
        tell(f"width {width} done")
        yield found | {"results": results}


def _said(plan: Plan) -> dict[str, Any]:
    """Return what the figures are of."""
    import torch

    setting = plan.setting
    return {
        "torch": str(torch.__version__),
        "model": "m3_tp4_rank",
        **asdict(setting),
        "layers": plan.layers,
        "routing": ROUTING if setting.kind == "sparse" else "none: no layer has experts",
        "ranks": "the all-reduce is a self-sum of 4 equal parts",
        "floor": FLOOR,
    }


def _count(tell: Callable[[str], None], made: int, of: int) -> None:
    if made == of or made % 10 == 0:
        tell(f"layer {made} of {of} made")


def _at_width(plan: Plan, rank: Rank, wide: World, builds: Builds, width: int) -> dict[str, Any]:
    """Return what is found at one width."""
    world, arms = rank.world(width), builds.arms(width)
    result: dict[str, Any] = {
        "rows": width,
        "check": check_layer(world, arms),
        "rows_that_differ_alone": rows_that_differ(wide, arms, builds.arms(MOST_ROWS)),
        "chain_differs": chain_differs(world, arms),
    }
    if not plan.times:
        return result
    result |= _routed(world, arms)
    union = statistics.mean(result["unions"])
    result["bytes"] = layer_bytes(plan.setting, width, union, statistics.mean(result["blocks"]))
    result |= time_arms(world, arms)
    if plan.layers > GROUP:
        result["group"] = {"layers": GROUP} | time_arms(world, arms, GROUP)
    result["under_load"] = _under_load(world, arms, result["mono"]["us"])
    if plan.stages:
        result["stages"] = _time_stages(world, arms)
        left = streamed_bytes(plan.setting, result["unions"][-1])
        result["reads"] = _time_reads(world, arms, left)
    if width == MOST_ROWS and not plan.setting.pads:
        padded = rank.world(width, replace(plan.setting, pads=PADDED))
        result["nine_real_seven_pads"] = time_arms(padded, arms)
    result["finite"] = bool(world.streams[-1].isfinite().all())
    return result | {"gave_up": world.step.tensors["give_up"].tolist()}


def time_arms(world: World, arms: Arms, count: int | None = None) -> dict[str, Any]:
    """Return µs a layer of each way to launch, round by round too, and `RATIOS`, whose spread is
    that of the rounds."""
    launches = {name: world.each(way, count) for name, way in ways(arms).items()}
    rounds = timed(launches, len(world.args[:count]))
    figures: dict[str, Any] = {name: spread(us) for name, us in rounds.items()}
    return figures | {"ratios": ratios(rounds), "rounds": rounds}


def _routed(world: World, arms: Arms) -> dict[str, list[int]]:
    """Return for each layer how many experts it reads, the shared one not counted, and how many
    blocks of requests."""
    unions, blocks = [], []
    routing, chosen = (world.step.tensors[name] for name in ("routing", "chosen"))
    for args in world.args:
        arms.unfused(current_stream(), args)
        ids = routing[:, :TOPK]
        unions.append(len(set(ids[ids >= 0].tolist())))
        rows = chosen.tolist()
        blocks.append(
            sum(
                len({block for row in rows[own] for block in row if block >= 0})
                for _, _, own in world.step.spans
            )
        )
    return {"unions": unions, "blocks": blocks}


def _under_load(world: World, arms: Arms, layer_us: float) -> dict[str, str]:
    """Return what the device says of itself while mono runs."""
    graph = captured(world.each(arms.mono))
    for _ in range(1 + int(LOADED_US / layer_us / len(world.args))):
        graph.replay()
    said = machine()
    finish()
    return said


def _time_stages(world: World, arms: Arms) -> dict[str, Any]:
    """Return µs of each kernel of the unfused arm, all layers in turn, on what the last layer left:
    its routing is that of all.

    Between two runs of a layer's kernel all others' bytes pass: few enough to stay in L2 where a
    stage reads little (router, scores of short contexts) and layers are few.
    """
    launches = {name: world.each(functools.partial(arms.stage, name)) for name in arms.stages}
    return {name: spread(us) for name, us in timed(launches, len(world.args)).items()}


def _time_reads(world: World, arms: Arms, sizes: Mapping[str, float]) -> dict[str, Any]:
    """Return µs of pure reads of as many bytes as streaming stages have.

    Experts at 4.25 bits a number, as in the floor; packed they have 4.17.
    """
    launches = {name: _reads(world, arms, int(size) // 16 * 16) for name, size in sizes.items()}
    times = timed(launches, READ_ROUNDS)
    return {name: spread(us) | {"bytes": sizes[name]} for name, us in times.items()}


def _reads(world: World, arms: Arms, size: int) -> Launch:
    """Return a launch of pure reads of ``size`` bytes of one layer after another."""
    out, count = world.step.tensors["deal"].data_ptr(), len(world.layers)

    def in_turn(stream: int) -> None:
        for i in range(READ_ROUNDS):
            weights = world.layers[i % count].weights["up"]
            again = i // count * size % (weights.nbytes - size + 16)  # never behind its end
            arms.read(stream, weights.data_ptr() + again, size, out, READ_BLOCKS)

    return in_turn
