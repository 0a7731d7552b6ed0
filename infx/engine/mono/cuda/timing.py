"""Times of launches in graph replay, the copy bandwidth beside them, and what the device says."""

from __future__ import annotations

import functools
import statistics
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from infx.engine.mono.cuda.width import current_stream

__all__ = [
    "Launch",
    "captured",
    "copy_bandwidth",
    "current_stream",
    "finish",
    "machine",
    "timed",
]

# Rounds of a figure; layers that a round runs, all replays of a graph together.
ROUNDS, PIECES, LEAST_REPLAYS = 15, 160, 3

Launch = Callable[[int], None]
"""Launches kernels on the stream of this handle."""


def finish() -> None:
    """Wait until the device has done all that was launched."""
    import torch

    torch.cuda.synchronize()


def captured(launch: Launch) -> Any:
    """Return ``launch`` as a graph, after it ran once, and nothing else runs.

    Two persistent kernels at once, on two streams, would wait for each other's places for ever.
    """
    import torch

    finish()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        launch(stream.cuda_stream)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            launch(torch.cuda.current_stream().cuda_stream)
    graph.replay()
    finish()
    return graph


def timed(launches: Mapping[str, Launch], pieces: int) -> dict[str, list[float]]:
    """Return µs of one of the ``pieces`` of each launch in graph replay, a figure a round.

    In a round each has its turn: what slows a round slows all of them.
    """
    graphs = {name: captured(launch) for name, launch in launches.items()}
    replays = max(LEAST_REPLAYS, PIECES // pieces)
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            graph.replay()  # While it runs the timed ones are launched: no gap is timed.
            ms = _elapsed(functools.partial(_replay, graph, replays))
            times[name].append(ms * 1e3 / replays / pieces)
    return times


def _replay(graph: Any, times: int) -> None:
    for _ in range(times):
        graph.replay()


def _elapsed(work: Callable[[], object]) -> float:
    """Return milliseconds of ``work`` on the device."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    work()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))


def copy_bandwidth() -> float:
    """Return TB/s of a device-to-device copy of 1 GB, bytes read and written.

    Not in a graph: there a copy engine does it, at 2.8 TB/s.
    """
    import torch

    a = torch.randint(0, 127, (1 << 28,), dtype=torch.int32, device="cuda")
    b = torch.empty_like(a)
    median_ms = statistics.median(_elapsed(lambda: b.copy_(a)) for _ in range(ROUNDS))
    return 2 * a.nbytes / median_ms / 1e9


def machine() -> dict[str, str]:
    """Return what the first device says of itself now; nothing without nvidia-smi."""
    asked = "name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu"
    command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return {}
    first = done.stdout.partition("\n")[0]
    return dict(zip(asked.split(","), first.split(", "), strict=False))
