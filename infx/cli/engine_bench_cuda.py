"""infx engine bench on a GPU: both arms of one TP4 rank's layers, in graph replay."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from infx.cli.engine_cuda import MODEL
from infx.cli.engine_options import bad

if TYPE_CHECKING:
    from infx.engine.mono.cuda.setting import Setting
    from infx.engine.mono.shape import Kind

__all__ = ["measured", "setting_of", "show"]

LAYERS = 8
TIMES = ("ROWS", "UNFUSED US", "UNFUSED, PDL", "MONO US", "MONO, PDL")
GAINS = ("ROWS", "UNFUSED/MONO", "BOTH WITH PDL", "FLOOR US", "OF FLOOR", "TB/S", "BARS US")
READ = ("ROWS", "EXPERTS", "BLOCKS", "MB", "SM", "MEMORY", "POWER")
STEPS = ("ROWS", "UNFUSED MS", "UNFUSED, PDL", "MONO MS", "MONO, PDL")
INVARIANCE = (
    "invariance: every width cuts its sums alike (by weight coordinates), so there is no other"
    " build to time against; what padding a step costs is said by 9 real rows in the graph of 16"
)
LOAD = ("clocks.sm", "clocks.mem", "power.draw")
# Stages that are judged by ||d|| / ||ref||; a layer has experts or a dense MLP.
JUDGED = ("qkv", "attention", "o", "router", "up", "down", "dense-up", "dense-down")


def setting_of(
    caches: tuple[str, str],
    widths: Sequence[int],
    kind: str | None,
    context: int | None,
    rows_per_request: int | None,
    pads: int | None,
) -> Setting:
    """Return what the layers run on. Raises RefusalError or UsageError for what cannot be."""
    from infx.engine.mono.cuda.setting import SHAPE, Setting

    kv, index = (_cache(*asked) for asked in zip(("kv", "index"), caches, strict=True))
    setting = Setting(
        context=8192 if context is None else context,
        kv=kv,
        index=index,
        rows_per_request=rows_per_request or 1,
        pads=pads or 0,
        kind=_layers(kind or "sparse"),
    )
    if not setting.rows_per_request <= setting.context <= SHAPE.reach:
        raise bad(
            f"--context {setting.context}: expected {setting.rows_per_request} (the rows of a"
            f" request) to {SHAPE.reach}"
        )
    if setting.pads >= min(widths):
        raise bad(f"--pads {setting.pads}: expected fewer than {min(widths)}, the least width")
    return setting


def _layers(asked: str) -> Kind:
    from infx.engine.mono.shape import KINDS

    for kind in KINDS:
        if kind == asked:
            return kind
    raise bad(f"--kind {asked[:60]}: expected {', '.join(KINDS)}")


def _cache(cache: str, asked: str) -> str:
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
    faults = [*faults_of(found), *_others()]
    return {"device": "cuda", **found, "wrong": faults}, not faults


def _refuse(model: str | None, setting: Setting, layers: int) -> None:
    from infx.engine.mono.cuda.device import cuda_refusal
    from infx.engine.mono.cuda.floor import held_bytes
    from infx.engine.refusal import RefusalError

    if model not in (None, MODEL):
        raise RefusalError("mono-shape", f"--model {model}: the CUDA kernels are built for {MODEL}")
    if refusal := cuda_refusal(held_bytes(setting, layers)):
        raise RefusalError(refusal.code, refusal.sentence)


def _others() -> list[str]:
    """Return what is wrong where others came to the GPU since it was judged: times are not its."""
    from infx.engine.mono.cuda.device import device_facts

    facts = device_facts()
    return [f"{facts.others} other processes compute on {facts.name} now"] if facts.others else []


def show(told: dict[str, Any]) -> None:
    """Print the tables, and what they are of."""
    from infx.cli.output import say, table

    results, layers = told["results"], told["layers"]
    table(TIMES, [_times(one) for one in results])
    for headers, row in ((GAINS, _gains), (READ, _read)):
        print()
        table(headers, [row(one) for one in results])
    if steps := [_steps(one, layers) for one in results if "group" in one]:
        print()
        table(STEPS, steps)
    for line in _notes(told):
        say(textwrap.fill(line, 100, subsequent_indent="  "))


def _times(one: dict[str, Any]) -> tuple[object, ...]:
    from infx.engine.mono.cuda.report import ARMS

    times = [f"{one[a]['us']:.1f} [{one[a]['low']:.1f}, {one[a]['high']:.1f}]" for a in ARMS]
    return one["rows"], *times


def _gains(one: dict[str, Any]) -> tuple[object, ...]:
    gains = [f"{g['ratio']:.3f} [{g['low']:.3f}, {g['high']:.3f}]" for g in one["ratios"].values()]
    shares = ", ".join(f"{share:.0%}" for share in one["share_of_floor"].values())
    bars = one["targets_us"]
    told = f"{bars[0]}, {bars[1]}" if bars else None
    return one["rows"], *gains, f"{one['floor_us']:.1f}", shares, f"{one['tb_s']:.2f}", told


def _read(one: dict[str, Any]) -> tuple[object, ...]:
    from statistics import mean

    load = [one["under_load"].get(name) for name in LOAD]
    union, uniform = one["union"], one["uniform_union"]
    experts = f"{union:.1f} ({uniform:.1f}) + shared" if union else None
    return one["rows"], experts, f"{mean(one['blocks']):.1f}", f"{one['bytes'] / 1e6:.1f}", *load


def _steps(one: dict[str, Any], layers: int) -> tuple[object, ...]:
    from infx.engine.mono.cuda.report import step_ms

    steps = step_ms(one, layers) or {}
    return one["rows"], *(f"{ms:.3f} ({of:.3f})" for ms, of in steps.values())


def _notes(told: dict[str, Any]) -> Iterator[str]:
    machine, results = told["machine"], told["results"]
    yield (
        f"{machine.get('name')}, driver {machine.get('driver_version')}, torch {told['torch']};"
        " clocks and power are those under load;"
        f" copy bandwidth of this run {told['copy_tb_s']:.2f} TB/s"
    )
    yield (
        f"one rank of four of MiniMax-M3 ({told['model']}): {told['ranks']}; {told['layers']}"
        f" {told['kind']} layers in turn, made in {told['made']['seconds']:.1f} s,"
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
    yield (
        "the gain of mono is unfused/mono, where both are launched in one way; PDL: each kernel may"
        " begin before the one before it ends; OF FLOOR and bars (aims: unfused, mono) stand"
        " in the order of the times; TB/S is that of mono without PDL; EXPERTS: the mean of the"
        " layers (in brackets what uniform routing gives)"
    )
    yield INVARIANCE
    yield _right(told)


def _padded(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what 9 real rows take in the graph of 16, beside one of 9 if that was timed too."""
    from infx.engine.mono.cuda.report import ARMS

    by_rows = {one["rows"]: one for one in results}
    padded = by_rows.get(16, {}).get("nine_real_seven_pads")
    if not padded:
        return
    named = {"9 real rows and 7 pads in the graph of 16": padded, "16 real": by_rows[16]}
    if nine := by_rows.get(9):
        named["9 in a graph of their own"] = nine
    cells = [
        f"{what} {', '.join(format(times[arm]['us'], '.1f') for arm in ARMS)}"
        for what, times in named.items()
    ]
    yield f"µs in the order of the times: {'; '.join(cells)}"


def _right(told: dict[str, Any]) -> str:
    if told["wrong"]:
        return "WRONG: " + "; ".join(told["wrong"])
    checks = [told["mixed"], *(one["check"] for one in told["results"])]
    figures = {name: [c["errors"][name] for c in checks if name in c["errors"]] for name in JUDGED}
    errors = ", ".join(f"{name} {max(found):.0e}" for name, found in figures.items() if found)
    return (
        "right: at every width and for mixed requests each stage is torch's in float32 (largest"
        f" ||d|| / ||ref||: {errors}), caches are the plan's bit for bit, mono's bits are the"
        f" unfused arm's, once and after {checks[0]['replays']} replays, layers in a chain leave"
        " the same bits however they are launched, and a row's bits are the same in steps of every"
        " width that was timed"
    )
