"""Export folders of the shape that aiperf 0.13.0 leaves: every field of a line, gaps between chunks
too, a summary of seventy metrics and a log. What the benchmarks of reading them read."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

START_NS = 1_795_974_010_000_000_000
OSL = 32
ISL = 64

_TAGS = (
    "request_latency", "time_to_first_token", "time_to_second_token", "inter_token_latency",
    "decode_duration", "inter_chunk_latency", "output_token_throughput_per_user",
    "e2e_output_token_throughput", "prefill_throughput_per_user", "input_sequence_length",
    "output_sequence_length", "output_token_count", "usage_prompt_tokens",
    "usage_completion_tokens", "usage_total_tokens", "http_req_total",
    "usage_prompt_cache_read_tokens", "http_req_waiting", "http_req_receiving",
    "http_req_sending", "http_req_duration", "http_req_blocked", "http_req_connecting",
    "http_req_dns_lookup", "time_to_first_output_token", "effective_latency",
    "credit_to_start_latency", "tokens_in_flight",
)  # fmt: skip
_STATS = ("avg", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "min", "max", "std")


def write_export(folder: Path, conc: int, requests: int, seed: int = 7) -> Path:
    """Write the export of a closed loop of ``conc`` lanes that all went well; return the folder."""
    (folder / "logs").mkdir(parents=True)
    lines = (json.dumps(row, separators=(",", ":")) + "\n" for row in _rows(conc, requests, seed))
    (folder / "profile_export.jsonl").write_text("".join(lines))
    (folder / "profile_export_aiperf.json").write_text(json.dumps(_summary(conc, requests)))
    (folder / "logs/aiperf.log").write_text(_log(requests))
    return folder


def _rows(conc: int, requests: int, seed: int) -> list[dict[str, Any]]:
    """Return the lines in the order in which their requests end, those of two warm-ups first."""
    dice = random.Random(f"{seed} {conc}")
    free_ms = [0.05 * lane for lane in range(conc)]
    rows = [_row(number, -2000.0 + 900 * number, dice, "warmup") for number in range(2)]
    for number in range(requests):
        lane = min(range(conc), key=free_ms.__getitem__)
        rows.append(_row(number, free_ms[lane], dice, "profiling"))
        free_ms[lane] += rows[-1]["metrics"]["request_latency"]["value"] + 0.4
    return sorted(rows, key=lambda row: int(row["metadata"]["request_end_ns"]))


def _row(number: int, start_ms: float, dice: random.Random, phase: str) -> dict[str, Any]:
    ttft_ms = 40 * dice.lognormvariate(0, 0.2)
    gaps_ms = [12 * dice.lognormvariate(0, 0.1) for _ in range(OSL - 1)]
    latency_ms = ttft_ms + sum(gaps_ms)
    start_ns = START_NS + int(start_ms * 1e6)
    end_ns = start_ns + int(latency_ms * 1e6)
    return {
        "metadata": _metadata(number, start_ns, end_ns, phase, dice),
        "metrics": _metrics(ttft_ms, gaps_ms, latency_ms),
    }


def _metadata(
    number: int, start_ns: int, end_ns: int, phase: str, dice: random.Random
) -> dict[str, Any]:
    session = _uuid(dice)
    return {
        "session_num": number, "x_request_id": _uuid(dice), "x_correlation_id": session,
        "conversation_id": f"session_{number:06}", "turn_index": 0,
        "credit_issued_ns": start_ns - 2_300_000, "request_start_ns": start_ns,
        "request_ack_ns": start_ns + 11_000_000, "request_end_ns": end_ns,
        "worker_id": "worker_4f21a0c3", "record_processor_id": "record_processor_77b1e2d9",
        "benchmark_phase": phase, "phase_index": 0 if phase == "warmup" else 1,
        "profiling_index": 0, "phase_name": phase, "phase_kind": phase, "was_cancelled": False,
        "context_overflow_skip": False, "agent_depth": 0, "root_correlation_id": session,
    }  # fmt: skip


def _metrics(ttft_ms: float, gaps_ms: list[float], latency_ms: float) -> dict[str, Any]:
    told: dict[str, Any] = {tag: round(latency_ms * 0.37, 6) for tag in _TAGS}
    told |= {
        "request_latency": latency_ms, "time_to_first_token": ttft_ms,
        "inter_chunk_latency": gaps_ms, "inter_token_latency": (latency_ms - ttft_ms) / (OSL - 1),
        "input_sequence_length": ISL - 8, "output_sequence_length": OSL, "output_token_count": OSL,
        "usage_prompt_tokens": ISL, "usage_completion_tokens": OSL,
        "usage_total_tokens": ISL + OSL, "usage_prompt_cache_read_tokens": 16,
        "osl_mismatch_diff_pct": 0.0,
    }  # fmt: skip
    return {tag: {"value": value, "unit": "ms"} for tag, value in told.items()}


def _summary(conc: int, requests: int) -> dict[str, Any]:
    metric = {"unit": "ms"} | dict.fromkeys(_STATS, 123.456789) | {"count": requests}
    phase = {"kind": "profiling", "concurrency": conc, "requests": requests, "duration": None}
    dataset = {"type": "synthetic", "prompts": {"osl": {"mean": OSL}, "isl": {"mean": ISL}}}
    return {
        "schema_version": "1.4", "aiperf_version": "0.13.0",
        **{f"{tag}{part}": metric for part in ("", "_warmup", "_total") for tag in _TAGS},
        "input_config": {"phases": [phase], "datasets": [dataset]},
        "was_cancelled": False, "is_complete": True, "error_summary": [],
        "completed_request_count": {"unit": "requests", "avg": float(requests)},
    }  # fmt: skip


def _log(requests: int) -> str:
    line = "17:40:02.117 INFO     Worker pull client connected, credits are waited for (worker)\n"
    end = f"completed={requests:,}, cancelled=0, errors=0 | sessions 0"
    return line * 120 + f"Phase profiling (profiling) complete | {end}\n" + line * 10


def _uuid(dice: random.Random) -> str:
    told = f"{dice.getrandbits(128):032x}"
    return "-".join((told[:8], told[8:12], told[12:16], told[16:20], told[20:]))
