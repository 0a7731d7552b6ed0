"""A run as large as one likes: arms over entries, mono, TP and KV dtype, swept over concurrencies.

Figures follow a closed loop with a little noise, so that curves bend as real ones do; some points
are invalid, some failed. The same seed gives the same run.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.findings import Finding
from infx.domain.identity import content_id
from infx.domain.plan import Candidate, Cost, Job, Plan
from infx.domain.point import Arm, FixedLengths, Model, Point
from infx.domain.record import Attempt, Energy, EngineCounters, Measurement, PointRecord, Provenance
from infx.domain.serial import encode_pretty
from infx.domain.status import OK, Status
from infx.plan.saved import write_plan
from infx.store import FILE, RunRow, Store
from tests.report.sample_runs import measurement

__all__ = ["ENTRIES", "many_plan", "many_points", "many_records", "write_run"]

ENTRIES = ("minimaxm3-fp4-mi355x-atom", "minimaxm3-fp8-h200-vllm")
HARDWARE = ("mi355x", "h200")
CONCS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
STARTED_S = 1_795_974_000.0


def many_points(n: int, isl: int = 1024, osl: int = 256) -> list[Point]:
    """Return ``n`` throughput points, ten concurrencies an arm (the last arm may have fewer)."""
    arms = product((16, 32, 64, 128, 256), ("auto", "fp8"), (1, 2, 4, 8), ("off", "on"), (0, 1))
    every = (
        _point(_arm(entry, mono, tp, dtype, block), conc, isl, osl)
        for block, dtype, tp, mono, entry in arms
        for conc in CONCS
    )
    found = list(islice(every, n))
    assert len(found) == n, f"{n} points asked, {len(found)} can be made"
    return found


def many_records(
    points: Sequence[Point], *, run_id: str = "20261129-1740-many", repeats: int = 1,
    seed: int = 7, faults: bool = True, gain: float = 1.0,
) -> list[PointRecord]:  # fmt: skip
    """Return ``repeats`` records a point; ``gain`` over 1 makes all of them faster.

    With ``faults`` every 25th point is invalid and every 60th failed, in every repeat.
    """
    dice = random.Random(f"{run_id} {seed}")
    return [
        _record(point, number, repeat, run_id, dice, faults, gain)
        for repeat in range(1, repeats + 1)
        for number, point in enumerate(points)
    ]


def many_plan(points: Sequence[Point], repeats: int = 1) -> Plan:
    """Return the plan of these points, one job an arm and repeat, and a hundred left out."""
    arms: dict[str, list[Point]] = {}
    for point in points:
        arms.setdefault(point.arm.arm_id, []).append(point)
    ran = [_candidate(point) for point in points]
    left = [_left_out(points[0], number) for number in range(100)]
    jobs = [_job(arm, repeat) for repeat in range(1, repeats + 1) for arm in arms.values()]
    return Plan(
        inputs={}, candidates=len(ran) + len(left), ledger=(*ran, *left), points=tuple(points),
        counts={"run": len(ran), "reused": 0, "excluded": len(left), "duplicate": 0, "deferred": 0},
        jobs=tuple(jobs), excluded_by={"conc > 512": len(left)},
        cost=Cost(jobs=len(jobs), points=len(points), wall_s=9000.0, gpu_hours=20.0),
    )  # fmt: skip


def write_run(
    results: Path, points: Sequence[Point], records: Iterable[PointRecord], plan: Plan,
    run_id: str = "20261129-1740-many", started_s: float = STARTED_S,
) -> Path:  # fmt: skip
    """Write a run with a store that holds it, as a sweep leaves it; return the run's folder."""
    folder = results / "runs" / run_id
    folder.mkdir(parents=True)
    row = RunRow(
        run_id=run_id, created_s=started_s, plan_id=plan.plan_id, source="configs/many.yaml",
        project=str(results.parent), folder=str(folder), executor="local", state="ended",
        ended_s=started_s + 9000,
    )  # fmt: skip
    write_plan(plan, folder / "plan.json")
    (folder / "run.json").write_text(encode_pretty(row))
    with Store(results / FILE) as store:
        store.create_run(row, plan)
        store.replace(list(records))
    return folder


def _arm(entry: int, mono: str, tp: int, dtype: str, block: int) -> Arm:
    return Arm(
        framework=("atom", "vllm")[entry],
        image=("rocm/atom:0.9.2", "vllm/vllm-openai:v0.19.1")[entry],
        image_digest=f"sha256:{content_id(entry)}", recipe=ENTRIES[entry],
        model=Model(
            name="MiniMaxAI/MiniMax-M3", prefix="minimaxm3", precision=("fp4", "fp8")[entry],
            weights="hf:MiniMaxAI/MiniMax-M3", revision=content_id("m3")[:40],
        ),
        cluster="lab", hardware=HARDWARE[entry],
        axes=Axes(conc=0, tp=tp, mono=mono, kv_cache_dtype=dtype, k=3, block_size=block,
                  max_num_seqs=1024, capture_sizes=(1, 2, 4, *range(8, 513, 8))),
        acceptance=Acceptance("synthetic", 2.78, "min-variance", "minimaxm3_eagle3_gqa", "on", 3),
        method="eagle3", options={"max-model-len": 16384, "gpu-memory-utilization": 0.9},
        env={"NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "8"},
    )  # fmt: skip


def _point(arm: Arm, conc: int, isl: int, osl: int) -> Point:
    workload = FixedLengths(isl=isl, osl=osl, requests=10 * conc, warmup_requests=conc)
    axes = arm.axes
    said = f"tp{axes.tp}-kv-{axes.kv_cache_dtype}-bs{axes.block_size}-mono-{axes.mono}"
    entry, identity = arm.recipe, arm.identity()
    return Point(
        point_id=content_id([identity, conc, workload]), curve_id=content_id([identity, isl]),
        series_id=content_id([entry, "series"]), entry=entry, name=f"{entry}-{said}-c{conc}",
        mode="throughput", conc=conc, queueing=False, arm=arm, workload=workload,
    )  # fmt: skip


def _figures(point: Point, dice: random.Random, gain: float) -> Measurement:
    """Latency grows with the load, falls with ranks (at a cost a rank), mono and fp8 caches."""
    arm, axes = point.arm, point.arm.axes
    base_ms = {ENTRIES[0]: 14.0, ENTRIES[1]: 17.0}[arm.recipe] / axes.tp**0.62
    speed = gain * (1.14 if axes.mono == "on" and point.conc <= 8 else 1.0)
    speed *= 1.04 if axes.kv_cache_dtype == "fp8" else 1.0
    speed *= 1 - 0.004 * abs(axes.block_size or 64) / 64
    noise = dice.gauss(1.0, 0.012)
    itl_ms = base_ms * (1 + point.conc / (24 * axes.tp**0.5)) ** 0.8 / speed * noise
    ttft_ms = 9 * base_ms * (1 + point.conc / 20) / speed * dice.gauss(1.0, 0.02)
    found = measurement(point.conc, itl_ms, ttft_ms)
    share = 13.3 / axes.tp  # 1024 in and 256 out instead of the 64 and 32 that it is made for
    return replace(
        found, tput_tok_s_gpu=found.tput_tok_s_gpu * share,
        output_tput_tok_s_gpu=found.tput_tok_s_gpu * share / 5,
        input_tput_tok_s_gpu=found.tput_tok_s_gpu * share * 4 / 5,
        tpot_ms=found.itl_ms, steady_s=found.window_s * 0.9,
    )  # fmt: skip


def _record(
    point: Point, number: int, repeat: int, run_id: str, dice: random.Random,
    faults: bool, gain: float,
) -> PointRecord:  # fmt: skip
    status, findings = _fate(number) if faults else (OK, ())
    seen = None if status.state == "failed" else _figures(point, dice, gain)
    started_s = STARTED_S + 4 * number + 10_000 * repeat
    attempt = Attempt(
        run_id=run_id, job_id=content_id([point.arm.arm_id, repeat]), number=1, repeat=repeat,
        started_s=started_s, ended_s=started_s + 4,
    )  # fmt: skip
    mono = {"mono_coverage": 0.99, "mono_share": 0.93} if point.arm.axes.mono == "on" else {}
    return PointRecord(
        point=point, status=status, attempt=attempt, findings=findings, measurement=seen,
        counters=EngineCounters(acceptance_length=2.7812, verify_steps=41_000, **mono),
        energy=_energy(point, seen) if seen else None, provenance=_provenance(point),
        artifacts={name: f"jobs/{point.name}/a1/points/{point.label}/{name}"
                   for name in ("aiperf", "metrics-before", "metrics-after", "power")},
        phases_s={"server-start": 311.0, "warm-up": 22.0, "measure": seen.window_s if seen else 0},
    )  # fmt: skip


def _fate(number: int) -> tuple[Status, tuple[Finding, ...]]:
    if number % 60 == 59:
        return Status("failed", "server-died", "Traceback: RuntimeError: out of memory"), ()
    if number % 25 == 24:
        text = "realised acceptance length 2.4100, asked 2.78 ±0.0278 (41000 steps)"
        return Status("invalid", "acceptance-off", text), (
            Finding("acceptance-off", "error", text),
        )
    return OK, ()


def _energy(point: Point, seen: Measurement) -> Energy:
    watts = {"mi355x": 1050.0, "h200": 560.0}[point.arm.hardware]
    joules = watts * point.gpus * seen.window_s
    tokens = seen.tput_tok_s_gpu * point.gpus * seen.window_s
    return Energy(
        source="amd-smi" if point.arm.hardware == "mi355x" else "nvidia-smi", gpus=point.gpus,
        window_s=seen.window_s, energy_j=joules, avg_power_w=watts * point.gpus,
        j_per_output_token=joules / tokens * 5, j_per_total_token=joules / tokens,
    )  # fmt: skip


def _provenance(point: Point) -> Provenance:
    axes = point.arm.axes
    server = ("python", "-m", f"{point.arm.framework}.serve", "--model", point.arm.model.name,
              "--tensor-parallel-size", str(axes.tp), "--kv-cache-dtype", axes.kv_cache_dtype,
              "--block-size", str(axes.block_size), "--max-num-seqs", str(axes.max_num_seqs),
              "--speculative-config", '{"method": "eagle3", "k": 3}')  # fmt: skip
    client = ("aiperf", "profile", "-m", point.arm.model.name, "--concurrency", str(point.conc),
              "--endpoint-type", "chat", "--streaming", "--isl", "1024", "--osl", "256",
              "--request-count", str(10 * point.conc), "--random-seed", "7",
              "--extra-inputs", "ignore_eos:true")  # fmt: skip
    told = {"tensor-parallel-size": axes.tp, "kv-cache-dtype": axes.kv_cache_dtype, "k": axes.k}
    return Provenance(
        infx_version="0.1.0", git_revision="c16d28d", git_dirty=False,
        packages={"aiperf": "0.13.0", "lm-eval": "0.4.13", "torch": "2.13.0"},
        host={"name": "node07", "kernel": "6.8.0", "cpu": "128 × x86-64", "memory": "1536 GiB",
              "gpus": f"8 × {point.arm.hardware}", "driver": "570.12"},
        server_argv=server, client_argv=client,
        env={"NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "8", "HF_TOKEN": "redacted"},
        server=told | {f"setting-{n}": f"value {n}" for n in range(24)},
    )  # fmt: skip


def _candidate(point: Point) -> Candidate:
    return Candidate(
        entry=point.entry, scenario=0, values={"conc": point.conc, "tp": point.arm.axes.tp},
        disposition="run", point_id=point.point_id,
    )  # fmt: skip


def _left_out(point: Point, number: int) -> Candidate:
    return Candidate(
        entry=point.entry, scenario=0, values={"conc": 1024 + number}, disposition="excluded",
        rule="conc > 512", sentence="more than the lab's clients can hold",
    )  # fmt: skip


def _job(points: Sequence[Point], repeat: int) -> Job:
    first = points[0]
    return Job(
        job_id=content_id([first.arm.arm_id, repeat]), name=first.name.rsplit("-", 1)[0],
        arm=first.arm, points=tuple(points), cluster="lab", repeat=repeat,
    )  # fmt: skip
