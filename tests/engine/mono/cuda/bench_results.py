"""Results of a bench as its run yields them, with times that a test names."""

from __future__ import annotations

from typing import Any

from infx.engine.mono.cuda.floor import layer_bytes
from infx.engine.mono.cuda.report import ratios, spread
from infx.engine.mono.cuda.setting import Setting

ERRORS = dict.fromkeys(("qkv", "attention", "o", "router", "up", "down"), 1e-4)


def checked() -> dict[str, Any]:
    """Return a check that found nothing wrong."""
    return {
        "errors": dict(ERRORS),
        "faults": [],
        "mono_differs": [],
        "replays": 1000,
        "replayed_differs": [],
        "gave_up": [0, 0, 0, 0],
    }


def result(rows: int, unfused: float, pdl: float, mono: float) -> dict[str, Any]:
    """Return what is found at a width; each arm's times are within 1 of the median."""
    times = {"unfused": unfused, "unfused_pdl": pdl, "mono": mono, "mono_pdl": mono - 2}
    rounds = {name: [us + i for i in range(-2, 3)] for name, us in times.items()}
    return {
        "rows": rows,
        "check": checked(),
        "rows_that_differ_alone": [],
        "chain_differs": [],
        "unions": [4, 4],
        "blocks": [16 * rows] * 2,
        "bytes": layer_bytes(Setting(), rows, 4.0, 16 * rows),
        **{name: spread(us) for name, us in rounds.items()},
        "ratios": ratios(rounds),
        "under_load": {"clocks.sm": "1980 MHz", "clocks.mem": "3201 MHz", "power.draw": "258 W"},
        "finite": True,
    }


def found(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a run's whole result."""
    return {
        "machine": {"name": "NVIDIA H200", "driver_version": "580.1"},
        "torch": "2.11.0",
        "copy_tb_s": 4.0,
        "model": "m3_tp4_rank",
        "context": 8192,
        "kv": "fp8",
        "index": "fp8",
        "rows_per_request": 1,
        "pads": 0,
        "layers": 8,
        "kind": "sparse",
        "routing": "the router on random streams: nearly uniform",
        "ranks": "the all-reduce is a self-sum of 4 equal parts",
        "floor": "floor = bytes / copy bandwidth of the same run",
        "made": {"seconds": 3.0, "peak_bytes": 9_000_000_000},
        "mixed": checked(),
        "results": results,
    }
