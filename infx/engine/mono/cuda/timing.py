"""Times of launches in graph replay, the copy bandwidth beside them, and what the device says."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Launch", "captured", "copy_bandwidth", "machine", "timed"]

REPLAYS, ROUNDS = 20, 15

Launch = Callable[[int], None]
"""Launches kernels on the stream of this handle."""


def captured(launch: Launch) -> Any:
    """Return ``launch`` as a graph, after it ran once."""
    import torch

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        launch(stream.cuda_stream)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            launch(torch.cuda.current_stream().cuda_stream)
    graph.replay()
    return graph


def timed(launch: Launch, pieces: int) -> dict[str, float]:
    """Return µs of one of the ``pieces`` of ``launch`` in graph replay: median, low, high.

    low and high leave out the fastest and the slowest round.
    """
    graph = captured(launch)
    times = sorted(_rounds(lambda: [graph.replay() for _ in range(REPLAYS)]))
    us = [t * 1e3 / REPLAYS / pieces for t in times]
    return {"us": statistics.median(us), "low": us[1], "high": us[-2]}


def _rounds(work: Callable[[], object]) -> Iterator[float]:
    """Yield milliseconds of each round of ``work``."""
    import torch

    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        work()
        end.record()
        end.synchronize()
        yield begin.elapsed_time(end)


def copy_bandwidth() -> float:
    """Return TB/s of a device-to-device copy of 1 GB, bytes read and written.

    Not in a graph: there a copy engine does it, at 2.8 TB/s.
    """
    import torch

    a = torch.randint(0, 127, (1 << 28,), dtype=torch.int32, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.nbytes / statistics.median(_rounds(lambda: b.copy_(a))) / 1e9


def machine() -> dict[str, str]:
    """Return what the device says of itself now."""
    asked = "name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu"
    done = subprocess.run(
        ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(zip(asked.split(","), done.stdout.strip().split(", "), strict=False))
