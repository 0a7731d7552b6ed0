"""infx engine bench on a CPU: mono, the unfused layers and plain torch, in interleaved rounds."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from infx.cli.engine_options import bad, configured, facts, progress

if TYPE_CHECKING:
    from infx.engine.mono.probe.timing import Bench, WidthTimes

__all__ = ["measured", "show"]

CONTEXT, ROUNDS = 512, 40
TIMES = ("ROWS", "MONO US", "UNFUSED US", "UNFUSED/MONO", "TORCH US", "TORCH/MONO")
BYTES = ("ROWS", "EXPERTS", "GB/S", "COPY GB/S", "FLOOR US", "OF FLOOR", "PREPARE US")


def measured(
    device: str,
    model: str | None,
    weights: str | None,
    caches: tuple[str, str],
    widths: list[int],
    context: int | None,
    rounds: int | None,
) -> dict[str, Any]:
    """Return what a run found, as plain data. Raises RefusalError or UsageError before it."""
    context, rounds = CONTEXT if context is None else context, rounds or ROUNDS
    config = configured(device, model, weights, *caches)
    if context >= config.context:
        raise bad(
            f"--context {context}: expected below {config.context}, what {config.model} holds"
        )
    from infx.domain.serial import to_plain
    from infx.engine.mono.probe.timing import bench, machine_facts

    made = bench(config, widths, context, rounds, lambda done: progress("round", done, rounds))
    told = {**facts(config), **machine_facts(), "rounds": rounds, **_figures(made)}
    plain: dict[str, Any] = to_plain(told)
    return plain


def show(told: dict[str, Any]) -> None:
    """Print the tables, and what they are of."""
    from infx.cli.output import say, table

    table(TIMES, [_times(one) for one in told["widths"]])
    print()
    table(BYTES, [_bytes(one) for one in told["widths"]])
    for line in _notes(told):
        say(textwrap.fill(line, 100, subsequent_indent="  "))


def _figures(made: Bench) -> dict[str, Any]:
    from infx.engine.mono.probe.traffic import FLOOR

    return {
        "layers": made.layers,
        "context": made.context,
        "routing": "random streams, a row a request, dealt by the model's own router",
        "floor": FLOOR,
        "widths": [_at_width(times) for times in made.widths],
    }


def _at_width(times: WidthTimes) -> dict[str, Any]:
    mono_us, copy_gb_s = _median(times.us["mono"]), _median(times.copy_gb_s)
    floor_us = times.bytes / copy_gb_s / 1e3
    return {
        "width": times.width,
        "union": times.union,
        "bytes": times.bytes,
        "median_us": {arm: _median(us) for arm, us in times.us.items()},
        "least_us": {arm: min(us) for arm, us in times.us.items()},
        "unfused_over_mono": _ratio(times.us["unfused"], times.us["mono"]),
        "reference_over_mono": _ratio(times.us["reference"], times.us["mono"]),
        "gb_s": times.bytes / mono_us / 1e3,
        "copy_gb_s": copy_gb_s,
        "floor_us": floor_us,
        "share_of_floor": floor_us / mono_us,
        "prepare_us": _median(times.prepare_us),
        "us": times.us,
    }


def _ratio(above: list[float], below: list[float]) -> dict[str, Any]:
    """Return the median of the rounds' ratios with its 95 % interval, by resampling rounds.

    What slows a round slows both arms of it: their ratio keeps still where the times do not.
    """
    from infx.analysis.intervals import percentile_of, request_interval

    ratios = [a / b for a, b in zip(above, below, strict=True)]
    ones = [1.0] * len(ratios)
    interval = request_interval([ones], [ratios], percentile_of(50), paired=True)
    return {"ratio": _median(ratios), "interval": interval}


def _median(values: list[float]) -> float:
    from infx.analysis.statistics import percentile

    return percentile(sorted(values), 50)


def _times(one: dict[str, Any]) -> tuple[object, ...]:
    median, least, gain = one["median_us"], one["least_us"], one["unfused_over_mono"]
    low, high = gain["interval"] or (float("nan"), float("nan"))
    return (
        one["width"],
        f"{median['mono']:.1f} ({least['mono']:.1f})",
        f"{median['unfused']:.1f} ({least['unfused']:.1f})",
        f"{gain['ratio']:.3f} [{low:.3f}, {high:.3f}]",
        f"{median['reference']:.0f} ({least['reference']:.0f})",
        f"{one['reference_over_mono']['ratio']:.1f}",
    )


def _bytes(one: dict[str, Any]) -> tuple[object, ...]:
    return (
        one["width"],
        f"{one['union']:.1f} + shared",
        f"{one['gb_s']:.1f}",
        f"{one['copy_gb_s']:.1f}",
        f"{one['floor_us']:.1f}",
        f"{one['share_of_floor']:.0%}",
        f"{one['prepare_us']:.1f}",
    )


def _notes(told: dict[str, Any]) -> list[str]:
    return [
        f"{told['cpu']}, {told['threads']} thread, load {told['load']:.1f}; medians (least) of"
        f" {told['rounds']} interleaved rounds, ratios round by round; layers {told['layers']} in"
        f" turn, context {told['context']}",
        f"routing: {told['routing']}",
        f"{told['floor']}",
        "copy bandwidth: a copy of as many bytes as the timed layers read at that width, in the"
        " same run, bytes read and written; reads alone may be faster",
        "the gain of mono is unfused/mono; torch is the reference's own operators, no baseline",
    ]
