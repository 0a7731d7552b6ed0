"""What a bench found, as figures and as lines of text: pure, from the plain data of a run."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from infx.engine.mono.cuda.floor import expected_union, targets_us
from infx.engine.mono.cuda.setting import Setting

__all__ = [
    "ARMS",
    "RATIOS",
    "faults_of",
    "figures",
    "lines",
    "ratios",
    "setting_of",
    "spread",
    "step_ms",
]

ARMS = ("unfused", "unfused_pdl", "mono", "mono_pdl")
RATIOS = {"unfused/mono": ("unfused", "mono"), "pdl/pdl": ("unfused_pdl", "mono_pdl")}
HEADER = (
    "rows union    MB  floor | unfused, with PDL, mono, with PDL: µs [low, high] |"
    " mono: TB/s, of floor | bars | unfused / mono, both with PDL"
)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median, and low and high without the least and the greatest."""
    ordered = sorted(values)
    return {"us": statistics.median(ordered), "low": ordered[1], "high": ordered[-2]}


def ratios(rounds: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """Return median, low and high of `RATIOS`, round by round."""
    made = {}
    for name, (above, below) in RATIOS.items():
        found = spread([a / b for a, b in zip(rounds[above], rounds[below], strict=True)])
        made[name] = {"ratio": found.pop("us"), **found}
    return made


def setting_of(found: Mapping[str, Any]) -> Setting:
    """Return the setting that a result says it is of."""
    return Setting(**{field.name: found[field.name] for field in fields(Setting)})


def figures(result: dict[str, Any], setting: Setting, copy_tb_s: float) -> dict[str, Any]:
    """Return what follows from one width's times: µs of the floor and each arm's share of it, the
    bars (unfused, mono; None but in the issue's setting), TB/s of mono, the mean union and that of
    uniform routing."""
    floor_us = result["bytes"] / copy_tb_s / 1e6
    rows = result["rows"] - setting.pads if setting.kind == "sparse" else 0
    return {
        "union": statistics.mean(result["unions"]),
        "uniform_union": expected_union(rows),
        "floor_us": floor_us,
        "share_of_floor": {arm: floor_us / result[arm]["us"] for arm in ARMS},
        "tb_s": result["bytes"] / result["mono"]["us"] / 1e6,
        "targets_us": targets_us(setting, result["rows"]),
    }


def step_ms(result: dict[str, Any], layers: int) -> dict[str, tuple[float, float]] | None:
    """Return of each arm ms of all ``layers`` in one graph, and ``layers`` times the time of one
    in a graph of fewer; None where no such graph was timed."""
    group = result.get("group")
    if not group:
        return None
    return {
        arm: (layers * result[arm]["us"] / 1e3, layers * group[arm]["us"] / 1e3) for arm in ARMS
    }


def faults_of(found: dict[str, Any]) -> list[str]:
    """Return what is wrong with a result, each with where it was seen; nothing if all is right."""
    said = [f"mixed requests: {fault}" for fault in _wrong(found["mixed"])]
    for result in found["results"]:
        here = _wrong(result["check"])
        here += [f"row {row} in other company" for row in result["rows_that_differ_alone"]]
        here += [f"layers in a chain: {way}" for way in result["chain_differs"]]
        here += ["a stream that is not finite"] if not result.get("finite", True) else []
        here += ["a wait gave up"] if any(result.get("gave_up", ())) else []
        said += [f"{result['rows']} rows: {fault}" for fault in here]
    return said


def _wrong(check: dict[str, Any]) -> list[str]:
    found = [f"{name} {check['errors'][name]:.1e}" for name in check["faults"]]
    found += [f"mono's {name}" for name in check["mono_differs"]]
    found += [f"replayed {name}" for name in check["replayed_differs"]]
    return found + (["a wait gave up"] if any(check["gave_up"]) else [])


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the stages, what pads cost, and a line a width."""
    results, setting = found["results"], setting_of(found)
    for result in results:
        yield from _stages(result)
        yield from _more(result, found["layers"])
    yield f"copy {found['copy_tb_s']:.2f} TB/s"
    yield HEADER
    yield from (_width(result, setting, found["copy_tb_s"]) for result in results)


def _stages(result: dict[str, Any]) -> Iterator[str]:
    for name, times in result.get("stages", {}).items():
        read = result["reads"].get(name)
        share = f"  a pure read {read['us']:.2f}: {read['us'] / times['us']:.0%}" if read else ""
        yield f"rows {result['rows']:2d} {name:10s} {times['us']:6.2f} µs{share}"


def _more(result: dict[str, Any], layers: int) -> Iterator[str]:
    rows = f"rows {result['rows']:2d}"
    if padded := result.get("nine_real_seven_pads"):
        yield f"{rows} of which 7 pads: " + "  ".join(f"{a} {padded[a]['us']:.1f}" for a in ARMS)
    if steps := step_ms(result, layers):
        cells = "  ".join(f"{arm} {ms:.3f} ({of:.3f})" for arm, (ms, of) in steps.items())
        few = result["group"]["layers"]
        yield (
            f"{rows} {layers} layers in one graph, ms ({layers} times one of {few} in a graph):"
            f" {cells}"
        )


def _width(result: dict[str, Any], setting: Setting, copy_tb_s: float) -> str:
    made = figures(result, setting, copy_tb_s)
    times = [
        f"{result[a]['us']:6.1f} [{result[a]['low']:.1f}, {result[a]['high']:.1f}]" for a in ARMS
    ]
    gains = [f"{result['ratios'][name]['ratio']:.3f}" for name in RATIOS]
    return (
        f"{result['rows']:4d} {made['union']:5.1f} {result['bytes'] / 1e6:6.1f}"
        f" {made['floor_us']:5.1f} | {' '.join(times)} | {made['tb_s']:.2f}"
        f" {made['share_of_floor']['mono']:.0%} | {made['targets_us'] or '-'} |"
        f" {', '.join(gains)}"
    )
