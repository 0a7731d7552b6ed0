"""What a bench found, as lines of text: pure, from the plain data that a run yields."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from infx.engine.mono.cuda.floor import targets_us
from infx.engine.mono.cuda.setting import Setting

__all__ = ["faults_of", "lines", "setting_of", "wrong"]

ARMS = ("unfused", "unfused_pdl", "mono")
HEADER = (
    "rows union    MB  floor | unfused, with PDL, mono: µs [low, high] | TB/s, of floor |"
    " bars | unfused / mono (PDL / mono)"
)


def wrong(check: dict[str, Any]) -> list[str]:
    """Return in a few words what a check found wrong; nothing where all is right."""
    found = [f"{name} {check['errors'][name]:.1e}" for name in check["faults"]]
    found += [f"mono's {name}" for name in check["mono_differs"]]
    found += [f"replayed {name}" for name in check["replayed_differs"]]
    return found + (["a wait gave up"] if any(check["gave_up"]) else [])


def setting_of(found: dict[str, Any]) -> Setting:
    """Return the setting that a result says it is of."""
    names = ("context", "kv", "index", "rows_per_request", "pads", "kind")
    return Setting(**{name: found[name] for name in names})


def faults_of(found: dict[str, Any]) -> list[str]:
    """Return what is wrong with a result, each with where it was seen; nothing if all is right."""
    said = [f"mixed requests: {fault}" for fault in wrong(found["mixed"])]
    for result in found["results"]:
        here = wrong(result["check"])
        here += [f"row {row} in other company" for row in result["rows_that_differ_alone"]]
        here += ["a stream that is not finite"] if not result.get("finite", True) else []
        here += ["a wait gave up"] if any(result.get("gave_up", ())) else []
        said += [f"{result['rows']} rows: {fault}" for fault in here]
    return said


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
    if group := result.get("group"):
        cells = (
            f"{a} {layers * result[a]['us'] / 1e3:.3f} ({layers * group[a]['us'] / 1e3:.3f})"
            for a in ARMS
        )
        yield (
            f"{rows} {layers} layers in one graph, ms (layers x µs of one in a graph of"
            f" {group['layers']}): {'  '.join(cells)}"
        )


def _width(result: dict[str, Any], setting: Setting, tb_s: float) -> str:
    size, mono = result["bytes"] / 1e6, result["mono"]["us"]
    floor, union = size / tb_s, statistics.mean(result["unions"])
    times = [
        f"{result[a]['us']:6.1f} [{result[a]['low']:.1f}, {result[a]['high']:.1f}]" for a in ARMS
    ]
    bars = targets_us(setting, result["rows"]) or "-"
    over = [result["over_mono"][arm]["ratio"] for arm in ARMS[:2]]
    return (
        f"{result['rows']:4d} {union:5.1f} {size:6.1f} {floor:5.1f} | {' '.join(times)} |"
        f" {size / mono:.2f} {floor / mono:.0%} |"
        f" {bars} | {over[0]:.3f} ({over[1]:.3f})"
    )
