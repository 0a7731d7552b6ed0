"""Time the two arms at true shapes on the device, check them first, print a table, keep JSON.

``python -m infx.engine.mono.cuda.bench --widths 1,2,4,8,16 --out FILE``

`infx engine bench --device cuda` measures the same; here are what one needs who changes kernels:
stages, marks of their clocks, numbers of a build, cubins that were compiled elsewhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from infx.engine.mono.cuda.builds import Builds
from infx.engine.mono.cuda.measuring import Plan, measure
from infx.engine.mono.cuda.report import faults_of, lines, setting_of
from infx.engine.mono.cuda.setting import KINDS, Setting
from infx.engine.mono.cuda.tracing import trace
from infx.engine.mono.shape import KINDS as LAYER_KINDS
from infx.engine.mono.shape import MOST_ROWS

__all__ = ["main"]


def _define(text: str) -> tuple[str, int]:
    name, value = text.split("=")
    return name, int(value)


def _widths(text: str) -> list[int]:
    ends = [part.partition("-") for part in text.split(",")]
    return [w for low, _, high in ends for w in range(int(low), int(high or low) + 1)]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=_widths, default=_widths("1,2,4,8,16"))
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--kv", choices=KINDS, default="fp8")
    parser.add_argument("--index", choices=KINDS, default="fp8")
    parser.add_argument("--kind", choices=LAYER_KINDS, default="sparse", help="of layers")
    parser.add_argument("--rows-per-request", type=int, default=1)
    parser.add_argument("--pads", type=int, default=0)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--stages", action="store_true", help="time each unfused kernel too")
    parser.add_argument("--check", action="store_true", help="only check, time nothing")
    parser.add_argument("--compile", action="store_true", help="only compile, on any machine")
    parser.add_argument("--define", type=_define, action="append", default=[], metavar="NAME=N")
    parser.add_argument("--trace", action="store_true", help="print when blocks pass the marks")
    parser.add_argument("--cubins", type=Path, help="folder of compiled builds")
    parser.add_argument("--out", type=Path)
    return parser.parse_args(arguments)


def _keep(found: dict[str, Any], options: argparse.Namespace) -> None:
    if options.out:
        said = found | {"define": dict(options.define)}
        options.out.write_text(json.dumps(said, indent=1), encoding="utf-8")


def _measure(options: argparse.Namespace, setting: Setting, builds: Builds) -> int:
    """Print and keep what is found, width after width; return 1 where something is wrong."""
    begun, found = time.monotonic(), {}
    plan = Plan(setting, options.widths, options.layers, options.stages, not options.check)

    def tell(line: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s {line}", file=sys.stderr)

    for found in measure(plan, builds, tell):
        last = found["results"][-1]
        checked = {name: last[name] for name in ("check", "rows_that_differ_alone")}
        print(f"rows {last['rows']}: {json.dumps(checked)}", flush=True)
        print(f"rows {last['rows']} done at {time.monotonic() - begun:.1f} s", flush=True)
        _keep(found, options)
    if plan.times:
        print(*lines(found), sep="\n")
    faults = faults_of(found)
    print(*(f"WRONG {fault}" for fault in faults), sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


def main(arguments: list[str] | None = None) -> int:
    """Run the bench."""
    options = _options(arguments)
    setting, marks = setting_of(vars(options)), {"TRACE": 1} if options.trace else {}
    builds = Builds({**setting.defines, **marks, **dict(options.define)}, options.cubins)
    if options.compile or options.trace:
        print(f"{builds.compile({*options.widths, MOST_ROWS})} builds", file=sys.stderr)
    if options.trace:
        trace(setting, options.widths, options.layers, builds)
    if options.compile or options.trace:
        return 0
    return _measure(options, setting, builds)


if __name__ == "__main__":
    sys.exit(main())
