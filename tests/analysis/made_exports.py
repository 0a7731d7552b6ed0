"""Artifact folders as aiperf 0.13.0 writes them, made to measure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from infx.domain.point import FixedLengths
from infx.domain.record import EngineCounters, PointRecord
from infx.domain.status import Status
from tests.report.sample_runs import MINI, point, record

BASE_NS = 1_795_000_000_000_000_000


def row(
    start_ms: float, latency_ms: float, *, ttft_ms: float = 10.0, osl: int = 8,
    phase: str = "profiling", error: Mapping[str, Any] | None = None, **metrics: Any,
) -> dict[str, Any]:  # fmt: skip
    """One line of profile_export.jsonl; ``metrics`` replace values, ``...`` takes one away."""
    values = {
        "request_latency": latency_ms,
        "time_to_first_token": ttft_ms,
        "input_sequence_length": 16,
        "output_sequence_length": osl,
        "inter_chunk_latency": [1.0, 2.0],
    }
    values = {n: v for n, v in (values | metrics).items() if v is not ...}
    start = BASE_NS + int(start_ms * 1e6)
    return {
        "metadata": {
            "request_start_ns": start,
            "request_end_ns": start + int(latency_ms * 1e6),
            "benchmark_phase": phase,
            "x_request_id": f"r{start_ms:g}",
        },
        "metrics": {} if error else {n: {"value": v, "unit": ""} for n, v in values.items()},
        "error": dict(error) if error else None,
    }


def closed_loop(conc: int, waves: int, latency_ms: float = 100.0, **parts: Any) -> list[Any]:
    """Rows of ``conc`` lanes that send one request after another."""
    return [
        row(wave * latency_ms, latency_ms, **parts) for wave in range(waves) for _ in range(conc)
    ]


def ramped(conc: int, requests: int, latency_ms: float, ramp_ms: float) -> list[Any]:
    """Rows of a client that opens its lanes one after another over ``ramp_ms``."""
    free = [lane * ramp_ms / conc for lane in range(conc)]
    rows = []
    for _ in range(requests):
        lane = min(range(conc), key=free.__getitem__)
        rows.append(row(free[lane], latency_ms))
        free[lane] += latency_ms
    return rows


def write_phases(folder: Path) -> None:
    """Add what aiperf 0.13.0 leaves for each phase of an export: summaries, no records."""
    for name in ("warmup", "profiling"):
        part = folder / "phases" / name
        part.mkdir(parents=True)
        (part / "profile_export_aiperf.json").write_text('{"schema_version": "1.4"}')


def write_run(
    folder: Path, rows: Sequence[Any], *, conc: int = 2, requests: int | None = -1,
    osl: int = 8, duration_s: float | None = None, cancelled: int | None = 0, **summary: Any,
) -> Path:  # fmt: skip
    """Write a folder that asks for what ``rows`` hold, unless told otherwise."""
    profiled = sum(r["metadata"]["benchmark_phase"] == "profiling" for r in rows)
    asked = profiled if requests == -1 else requests
    phase = {"kind": "profiling", "concurrency": conc, "requests": asked, "duration": duration_s}
    dataset = {"type": "synthetic", "prompts": {"osl": {"mean": osl}}}
    told = {
        "was_cancelled": False,
        "is_complete": True,
        "completed_request_count": {"unit": "requests", "avg": profiled},
        "input_config": {"phases": [phase], "datasets": [dataset]},
    } | summary
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "profile_export_aiperf.json").write_text(json.dumps(told))
    lines = "".join(json.dumps(r) + "\n" for r in rows)
    (folder / "profile_export.jsonl").write_text(lines)
    if cancelled is not None:
        (folder / "logs").mkdir(exist_ok=True)
        end = f"completed={profiled:,}, cancelled={cancelled:,}, errors=0 | sessions"
        (folder / "logs/aiperf.log").write_text(f"Phase profiling (profiling) complete | {end}\n")
    return folder


def ours(run_dir: Path, entry: str = MINI, **parts: Any) -> PointRecord:
    """A measured point of two lanes with ten requests of 8 tokens, its export under ``run_dir``."""
    made = record(point(entry, 2, 4), Status("measured"), counters=steady())
    workload = FixedLengths(isl=16, osl=8, requests=10)
    attempt = replace(made.attempt, started_s=BASE_NS / 1e9 - 5, ended_s=BASE_NS / 1e9 + 60)
    made = replace(
        made,
        point=replace(made.point, workload=workload),
        attempt=attempt,
        artifacts={"aiperf": "job/aiperf"},
    )
    write_run(run_dir / "job/aiperf", closed_loop(2, 5))
    return replace(made, **parts)


def steady(**parts: Any) -> EngineCounters:
    return replace(EngineCounters(acceptance_length=2.78, verify_steps=400, preemptions=0), **parts)
