"""infx engine bench on a GPU: both arms of one TP4 rank's sparse layers, in graph replay."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from infx.cli.engine_options import bad

if TYPE_CHECKING:
    from infx.engine.mono.cuda.setting import Setting

__all__ = ["measured", "setting_of", "show"]

MODEL, LAYERS = "m3_tp4_rank", 8
TIMES = ("ROWS", "UNFUSED US", "UNFUSED, PDL", "MONO US", "UNFUSED/MONO")
SHARES = "OF FLOOR: UNFUSED, PDL, MONO"
BYTES = ("ROWS", "PDL/MONO", "EXPERTS", "MB", "FLOOR US", SHARES, "TB/S", "BARS US")
STEPS = ("ROWS", "UNFUSED MS", "UNFUSED, PDL", "MONO MS")
LOAD = ("clocks.sm", "clocks.mem", "power.draw")


def setting_of(
    caches: tuple[str, str],
    widths: Sequence[int],
    context: int | None,
    rows_per_request: int | None,
    pads: int | None,
) -> Setting:
    """Return what the layers run on. Raises RefusalError or UsageError for what cannot be."""
    from infx.engine.mono.cuda.setting import SHAPE, Setting

    kv, index = (_kind(*asked) for asked in zip(("kv", "index"), caches, strict=True))
    setting = Setting(
        context=8192 if context is None else context,
        kv=kv,
        index=index,
        rows_per_request=rows_per_request or 1,
        pads=pads or 0,
    )
    if not setting.rows_per_request <= setting.context <= SHAPE.reach:
        raise bad(
            f"--context {setting.context}: expected {setting.rows_per_request} (the rows of a"
            f" request) to {SHAPE.reach}"
        )
    if setting.pads >= min(widths):
        raise bad(f"--pads {setting.pads}: expected fewer than {min(widths)}, the least width")
    return setting


def _kind(cache: str, asked: str) -> str:
    from infx.engine.mono.cuda.setting import KINDS
    from infx.engine.refusal import RefusalError

    kind = "fp8" if asked == "auto" else asked
    if kind not in KINDS:
        sentence = f"--{cache}-cache-dtype {asked[:60]}: the CUDA kernels have {', '.join(KINDS)}"
        raise RefusalError(f"mono-{cache}-cache", sentence)
    return kind


def measured(
    model: str | None, setting: Setting, widths: Sequence[int], layers: int | None
) -> tuple[dict[str, Any], bool]:
    """Return what a run found, as plain data, and whether all of it was right.

    Raises RefusalError for another model, and where no GPU of this machine can run it.
    """
    _refuse(model, setting, layers or LAYERS)
    from infx.cli.output import say
    from infx.engine.mono.cuda.builds import Builds
    from infx.engine.mono.cuda.measuring import Plan, measure
    from infx.engine.mono.cuda.report import faults_of, figures

    plan = Plan(setting, widths, layers or LAYERS)
    *_, found = measure(plan, Builds(setting.defines), say)
    for result in found["results"]:
        result |= figures(result, setting, found["copy_tb_s"])
    faults = faults_of(found)
    return {"device": "cuda", **found, "wrong": faults}, not faults


def _refuse(model: str | None, setting: Setting, layers: int) -> None:
    from infx.engine.mono.cuda.device import cuda_refusal
    from infx.engine.mono.cuda.floor import held_bytes
    from infx.engine.refusal import RefusalError

    if model not in (None, MODEL):
        raise RefusalError("mono-shape", f"--model {model}: the CUDA kernels are built for {MODEL}")
    if refusal := cuda_refusal(held_bytes(setting, layers)):
        raise RefusalError(refusal.code, refusal.sentence)


def show(told: dict[str, Any]) -> None:
    """Print the tables, and what they are of."""
    from infx.cli.output import say, table

    results = told["results"]
    table(TIMES, [_times(one) for one in results])
    print()
    table(BYTES, [_bytes(one) for one in results])
    if steps := [_steps(one, told["layers"]) for one in results if "group" in one]:
        print()
        table(STEPS, steps)
    for line in _notes(told):
        say(textwrap.fill(line, 100, subsequent_indent="  "))


def _times(one: dict[str, Any]) -> tuple[object, ...]:
    from infx.engine.mono.cuda.report import ARMS

    times = [f"{one[a]['us']:.1f} [{one[a]['low']:.1f}, {one[a]['high']:.1f}]" for a in ARMS]
    gain = one["over_mono"]["unfused"]
    spread = f"[{gain['low']:.3f}, {gain['high']:.3f}]"
    return one["rows"], *times, f"{gain['ratio']:.3f} {spread}"


def _bytes(one: dict[str, Any]) -> tuple[object, ...]:
    shares = ", ".join(f"{share:.0%}" for share in one["share_of_floor"].values())
    bars = one["targets_us"]
    return (
        one["rows"],
        f"{one['over_mono']['unfused_pdl']['ratio']:.3f}",
        f"{one['union']:.1f} + shared",
        f"{one['bytes'] / 1e6:.1f}",
        f"{one['floor_us']:.1f}",
        shares,
        f"{one['tb_s']:.2f}",
        f"{bars[0]}, {bars[1]}" if bars else None,
    )


def _steps(one: dict[str, Any], layers: int) -> tuple[object, ...]:
    from infx.engine.mono.cuda.report import step_ms

    steps = step_ms(one, layers) or {}
    return one["rows"], *(f"{ms:.3f} ({of:.3f})" for ms, of in steps.values())


def _notes(told: dict[str, Any]) -> Iterator[str]:
    machine, results = told["machine"], told["results"]
    yield (
        f"{machine.get('name')}, driver {machine.get('driver_version')}, torch {told['torch']};"
        f" under load {_load(results)}; copy bandwidth of this run {told['copy_tb_s']:.2f} TB/s"
    )
    yield (
        f"one rank of four of MiniMax-M3 ({told['model']}): {told['ranks']}; {told['layers']}"
        f" layers in turn, made in {told['made']['seconds']:.1f} s,"
        f" {told['made']['peak_bytes'] / 1e9:.1f} GB; medians of interleaved rounds of graph"
        " replays [second least, second greatest], ratios round by round"
    )
    yield (
        f"context {told['context']}, {told['rows_per_request']} rows a request, {told['pads']}"
        f" pads, {told['kv']} keys and values, {told['index']} index keys; routing:"
        f" {told['routing']}"
    )
    yield told["floor"]
    yield from _padded(results)
    if any("group" in one for one in results):
        yield (
            f"MS: all {told['layers']} layers in one graph (in brackets {told['layers']} times"
            f" what one takes in a graph of {results[0]['group']['layers']})"
        )
    yield "the gain of mono is unfused/mono; PDL: the same kernels as programmatic dependents"
    yield _right(told)


def _load(results: Sequence[dict[str, Any]]) -> str:
    """Return the least and the greatest of what the device said of itself at any width."""
    said = []
    for name in LOAD:
        seen = sorted({one["under_load"].get(name, "?") for one in results}, key=_number)
        said.append(f"{name} " + (" to ".join((seen[0], seen[-1])) if len(seen) > 1 else seen[0]))
    return ", ".join(said)


def _number(text: str) -> float:
    """Return the number of ``1980 MHz``; 0 where there is none."""
    first = text.split()[0]
    return float(first) if first.replace(".", "", 1).isdigit() else 0.0


def _padded(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what 9 real rows take in the graph of 16, beside one of 9 if that was timed too."""
    by_rows = {one["rows"]: one for one in results}
    padded = by_rows.get(16, {}).get("nine_real_seven_pads")
    if not padded:
        return
    named = {"9 real rows and 7 pads in the graph of 16": padded, "16 real": by_rows[16]}
    if nine := by_rows.get(9):
        named["9 in a graph of their own"] = nine
    cells = [
        f"{what} {times['unfused']['us']:.1f}, {times['unfused_pdl']['us']:.1f},"
        f" {times['mono']['us']:.1f}"
        for what, times in named.items()
    ]
    yield f"unfused, PDL, mono, µs: {'; '.join(cells)}"


def _right(told: dict[str, Any]) -> str:
    if told["wrong"]:
        return "WRONG: " + "; ".join(told["wrong"])
    checks = [told["mixed"], *(one["check"] for one in told["results"])]
    worst = {
        name: max(check["errors"][name] for check in checks)
        for name in ("qkv", "attention", "o", "router", "up", "down")
    }
    errors = ", ".join(f"{name} {error:.0e}" for name, error in worst.items())
    return (
        "right: at every width and for mixed requests each stage is torch's in float32 (largest"
        f" ||d|| / ||ref||: {errors}), caches are the plan's bit for bit, mono's bits are the"
        f" unfused arm's, once and after {checks[0]['replays']} replays, and a row's bits are the"
        " same in steps of every width timed"
    )
