"""Check and time the attention half of a layer on the device, stage by stage and in a chain.

``python -m infx.engine.mono.cuda.attention_bench --out FILE`` checks every case against infx's
reference, checks that a row's bits are the same alone, and prints µs, GB/s and the share of the
floor: the bytes that a step must read over the copy bandwidth of the same run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infx.engine.mono.cuda.arguments import args_of
from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.cuda.attention_truth import compare
from infx.engine.mono.cuda.attention_world import KINDS, SHAPE, Asked, World, make_world
from infx.engine.mono.cuda.compiling import cubin_of
from infx.engine.mono.cuda.timing import copy_bandwidth, machine, timed
from infx.engine.mono.shape import Caches

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["CHECKED", "TIMED", "Case", "main"]

BLOCK, DIM = SHAPE.block, SHAPE.head_dim
COLD_BYTES = 200 << 20  # what a graph reads before it reads anything again; L2 has 50 MB
# What one replay runs for each copy of the caches, and how.
CHAINS = {
    "scores": (("scores",), False),
    "attend": (("attend",), False),
    "split": (("split",), False),
    "merge": (("merge",), False),
    "three kernels": (("scores", "split", "merge"), False),
    "two kernels": (("scores", "attend"), False),
    "two kernels, dependent": (("scores", "attend"), True),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A step: ``requests`` in ``rows`` rows over caches of kinds ``kv`` and ``index``."""

    requests: tuple[Asked, ...]
    rows: int
    kv: str = "fp8"
    index: str = "fp8"

    @property
    def name(self) -> str:
        """The case in a word."""
        asked = ",".join(f"{a.context}x{a.rows}" for a in self.requests[:5])
        more = f"+{len(self.requests) - 5}" if len(self.requests) > 5 else ""
        return f"{self.kv}/{self.index} rows {self.rows}: {asked}{more}"

    @property
    def _token_bytes(self) -> tuple[int, int]:
        return Caches(self.kv, self.index).token_bytes(DIM)

    def index_bytes(self) -> int:
        """Return the bytes of index keys that must be read: once a request."""
        keys = sum(asked.context + asked.rows for asked in self.requests)
        return keys * self._token_bytes[1]

    def kv_bytes(self) -> int:
        """Return the bytes of chosen keys and values, a row's own 16 blocks each."""
        keys = sum(
            min(SHAPE.topk_blocks * BLOCK, asked.context + asked.rows) * asked.rows
            for asked in self.requests
        )
        return 2 * keys * self._token_bytes[0]

    def bytes_of(self, chain: str) -> int:
        """Return the bytes that the stages of a chain must read from memory."""
        return {"scores": self.index_bytes(), "attend": self.kv_bytes(), "merge": 0}.get(
            chain, self.kv_bytes() if chain == "split" else self.index_bytes() + self.kv_bytes()
        )


def _even(rows: int, a_request: int, context: int, kind: str) -> Case:
    asked = Asked(context - a_request, a_request)
    return Case((asked,) * (rows // a_request), rows, kind, kind)


_MIXED = (Asked(0), Asked(126, 3), Asked(2047), Asked(2048), Asked(32767, 2), Asked(40000, 4))
CHECKED = (
    *(Case(_MIXED, 16, kv, index) for kv in KINDS for index in KINDS),
    *(
        _even(rows, a_request, context, kind)
        for kind in KINDS
        for context in (8192, 100_000)
        for rows, a_request in ((1, 1), (2, 1), (4, 4), (8, 8), (16, 4))
    ),
)
TIMED = (
    *(_even(rows, 1, c, "fp8") for c in (8192, 100_000) for rows in (1, 2, 4, 8, 16)),
    *(_even(rows, 4, 100_000, kind) for kind in ("fp8", "mxfp4") for rows in (4, 8, 16)),
    *(_even(rows, 1, c, "mxfp4") for c in (8192, 100_000) for rows in (1, 4, 16)),
    *(_even(rows, 1, 8192, "bf16") for rows in (1, 16)),
)


class Bench:
    """Builds by width and kinds, kept between cases; ``defines`` replace numbers of kernels."""

    def __init__(self, cubins: Path | None, defines: Mapping[str, int]) -> None:
        self._cubins, self._defines = cubins, defines
        self._arms: dict[tuple[int, str, str], Arms] = {}

    def compile(self, cases: Iterable[Case]) -> None:
        """Compile what ``cases`` need, a process a core: before anything holds the device."""
        builds = {(rows, case.kv, case.index) for case in cases for rows in (1, case.rows)}
        sources = [self.arms(*build).source("attn.cu") for build in sorted(builds)]
        with concurrent.futures.ProcessPoolExecutor() as processes:
            list(processes.map(cubin_of, sources, [self._cubins] * len(sources)))

    def arms(self, rows: int, kv: str, index: str) -> Arms:
        """Return the kernels of a build."""
        key = (rows, kv, index)
        if key not in self._arms:
            kinds = {"KV_KIND": KINDS.index(kv), "INDEX_KIND": KINDS.index(index)}
            self._arms[key] = Arms(rows, {**kinds, **self._defines}, self._cubins)
        return self._arms[key]

    def check(self, case: Case) -> dict[str, Any]:
        """Run a case; return what is found against the truth, between forms, and alone."""
        import torch

        before = make_world(case.requests, case.rows, case.kv, case.index, 1, "cuda")
        after, arms = before.copy(), self.arms(case.rows, case.kv, case.index)
        self._run(arms, after, ("scores", "attend"))
        found = dataclasses.asdict(facts := compare(before, after))
        merged = after.tensors["merged"].clone()
        same = []
        for stages in (("scores", "split", "merge"), *[("scores", "attend")] * 5):
            again = before.copy()
            self._run(arms, again, stages)
            same.append(torch.equal(again.tensors["merged"], merged))
        alone = all(self._alone(case, before, after, row) for row in _live(case))
        return found | {"good": facts.good, "repeats": all(same), "alone": alone}

    def _alone(self, case: Case, before: World, after: World, row: int) -> bool:
        """Return whether a row alone in a step has the bits that it has among others."""
        import torch

        # Over the caches that the whole step left: a row looks at no token behind its own.
        tensors = before.only(row).tensors | {
            "batch_ids": torch.zeros_like(before.tensors["batch_ids"][:1])
        }
        world = before.with_stores([store.clone() for store in after.stores], tensors)
        self._run(self.arms(1, case.kv, case.index), world, ("scores", "attend"))
        pairs = [(world.tensors["merged"][:, 0], after.tensors["merged"][:, row])]
        pairs += [(world.tensors["chosen"][0], after.tensors["chosen"][row])]
        own = int(before.tensors["positions"][row]) // BLOCK + 1
        pairs += [(world.tensors["scores"][0, :own], after.tensors["scores"][row, :own])]
        return all(torch.equal(a, b) for a, b in pairs)

    def _run(self, arms: Arms, world: World, stages: Iterable[str]) -> None:
        import torch

        args, stream = args_of(world.fields()), torch.cuda.current_stream().cuda_stream
        for stage in stages:
            arms.stage(stage, stream, args)
        torch.cuda.synchronize()

    def time(self, case: Case) -> dict[str, Any]:
        """Return µs of each chain, in graph replay over caches that no replay finds in L2."""
        world = make_world(case.requests, case.rows, case.kv, case.index, 2, "cuda")
        touched = case.index_bytes() + case.kv_bytes()
        copies = min(64, max(4, -(-COLD_BYTES // touched)))
        worlds = [world] + [
            world.with_stores([store.clone() for store in world.stores]) for _ in range(copies - 1)
        ]
        every, arms = (
            [args_of(w.fields()) for w in worlds],
            self.arms(case.rows, case.kv, case.index),
        )
        self._run(arms, world, ("scores", "attend"))
        figures = {}
        for chain, (stages, dependent) in CHAINS.items():

            def launch(stream: int, stages: Any = stages, dependent: bool = dependent) -> None:
                for args in every:
                    for stage in stages:
                        arms.stage(stage, stream, args, dependent)

            figures[chain] = timed(launch, copies) | {"bytes": case.bytes_of(chain)}
        result = {"case": case.name, "copies": copies, "chains": figures}
        if "TRACE" in self._defines:
            self._run(arms, worlds[-1], ("scores", "split"))
            result["marks"] = _marks(world.tensors["trace"])
        return result


def _marks(trace: Tensor) -> dict[str, list[int]]:
    """Return for some blocks the cycles since a kernel's first mark, by mark."""
    marks = {}
    for block, clocks in enumerate(trace.tolist()):
        for first, points in ((0, range(30, 34)), (1, range(20, 28))):
            if block in (0, 3, 7, 31, 33, 100) and clocks[first]:
                marks[f"{block}/{first}"] = [clocks[p] - clocks[first] for p in points]
    return marks


def _live(case: Case) -> range:
    return range(sum(asked.rows for asked in case.requests))


def report(results: dict[str, Any]) -> None:
    """Print a line a case."""
    tb = results["copy_tb_s"]
    print(f"copy {tb:.2f} TB/s; µs [low, high] (GB/s, % of floor = bytes / copy bandwidth)")
    for found in results["timed"]:
        cells = []
        for chain, f in found["chains"].items():
            share = f["bytes"] / tb / 1e6 / f["us"] * 100
            rate = f"({f['bytes'] / f['us'] / 1e3:.0f}, {share:.0f}%)" if f["bytes"] else ""
            cells.append(f"{chain} {f['us']:.2f} [{f['low']:.2f},{f['high']:.2f}] {rate}")
        print(f"{found['case']}\n    " + " | ".join(cells))
        if "marks" in found:
            print("    cycles", found["marks"])
    bad = [name for name, found in results["checked"].items() if not _passed(found)]
    print(f"checked {len(results['checked'])} cases, wrong: {bad or 'none'}")


def _passed(found: dict[str, Any]) -> bool:
    return bool(found["good"] and found["repeats"] and found["alone"])


def main(arguments: list[str] | None = None) -> int:
    """Run checks, then timings; return 1 where a check failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cubins", type=Path, help="folder of compiled builds")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--times", action="store_true", help="check nothing")
    parser.add_argument("--define", action="append", default=[], metavar="NAME=NUMBER")
    options = parser.parse_args(arguments)
    defines = {name: int(number) for name, number in (d.split("=") for d in options.define)}
    bench, begin = Bench(options.cubins, defines), time.monotonic()
    checked = [case for case in CHECKED if options.only in case.name and not options.times]
    wanted = [case for case in TIMED if options.only in case.name]
    bench.compile([*checked, *wanted])
    print(f"{time.monotonic() - begin:6.1f} s compiled", flush=True)
    results: dict[str, Any] = {
        "machine": machine(),
        "copy_tb_s": copy_bandwidth(),
        "defines": defines,
    }
    results |= {"checked": {}, "timed": []}

    def keep() -> None:
        if options.out:
            options.out.write_text(json.dumps(results, indent=1), encoding="utf-8")

    for case in checked:
        results["checked"][case.name] = found = bench.check(case)
        mark = "ok" if _passed(found) else "WRONG"
        print(f"{time.monotonic() - begin:6.1f} s {mark} {case.name} {found}", flush=True)
        keep()
    for case in wanted:
        results["timed"].append(bench.time(case))
        print(f"{time.monotonic() - begin:6.1f} s timed {case.name}", flush=True)
        keep()
    report(results)
    return 0 if all(map(_passed, results["checked"].values())) else 1


if __name__ == "__main__":
    sys.exit(main())
