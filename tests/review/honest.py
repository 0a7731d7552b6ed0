"""Honest bundles of other kinds than the public case: what else a pull request may ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from infx import frameworks
from infx.ci.diff import identity
from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.identity import content_id
from infx.domain.point import Accuracy, Arm, FixedLengths, Model, Point, Workload
from infx.domain.record import Attempt, FilterScore, PointRecord, Provenance, Score
from infx.domain.status import OK
from infx.review.body import body
from infx.review.bundle import (
    Bundle,
    CheckRun,
    Entries,
    Entry,
    PlannedPoint,
    PlannedPoints,
    UpstreamRecipe,
)
from infx.review.rules import load_rules
from tests.report.sample_runs import measurement
from tests.review.failing import corrected
from tests.review.minimax_m3 import CHANGELOG, CONFIG, RUN, SWEPT

__all__ = ["append_only", "evals_only", "fixed_lengths"]

VLLM = "minimaxm3-fp8-h200-vllm"
OLD, NEW = (f"vllm/vllm-openai:v0.{minor}.0" for minor in (26, 27))
CONCURRENCIES = (1, 2, 4, 8, 16, 32)


def _with_body(bundle: Bundle) -> Bundle:
    request = replace(bundle.pull_request, title="", body=body(bundle, load_rules(bundle.rules)))
    return replace(bundle, pull_request=request)


def append_only() -> Bundle:
    """The public case, whose concurrency 4 at TP2 alone is new."""
    bundle = corrected()
    name = "tp2-c4"
    head = bundle.points.head
    records = tuple(r for r in bundle.records if r.point.name.endswith(name))
    checks = tuple(one for one in bundle.runs[0].checks if one.name.endswith(name))
    return _with_body(
        replace(
            bundle,
            entries=replace(bundle.entries, base=bundle.entries.head),
            points=PlannedPoints(base=tuple(p for p in head if p.name != name), head=head),
            changelog=(replace(bundle.changelog[0], append_only=True, description=("TP2 at 4.",)),),
            runs=(replace(bundle.runs[0], checks=checks),),
            records=records,
        )
    )


def evals_only() -> Bundle:
    """The public case once it stands: evaluated again, and no more."""
    bundle = corrected()
    checks = tuple(one for one in bundle.runs[0].checks if one.kind == "evaluation")
    return _with_body(
        replace(
            bundle,
            entries=replace(bundle.entries, base=bundle.entries.head),
            points=replace(bundle.points, base=bundle.points.head),
            changelog=(replace(bundle.changelog[0], evals_only=True, description=("Again.",)),),
            runs=(replace(bundle.runs[0], checks=checks),),
            records=tuple(r for r in bundle.records if r.point.mode == "evaluation"),
        )
    )


def fixed_lengths() -> Bundle:
    """vLLM of a newer version at fixed lengths, which drafts nothing."""
    bundle = corrected()
    records = [_measured(tp, c) for tp in (4, 8) for c in CONCURRENCIES]
    scores = [_scored(tp, c) for tp in (4, 8) for c in CONCURRENCIES]
    head = tuple(_planned(record.point) for record in records)
    base = tuple(replace(p, point_id=content_id([OLD, p.point_id]), image=OLD) for p in head)
    checks = [CheckRun(name=r.point.name, kind=r.point.mode, conclusion="success")
              for r in (*records, *scores)]  # fmt: skip
    files = (CONFIG, CHANGELOG)
    url = "https://recipes.vllm.ai/MiniMax/MiniMax-M3"
    rules = {
        "model-status": "version: 1\nmodels: {minimaxm3: {scenarios: {fixed-lengths: active}}}"
    }
    link = replace(bundle.comments[0], id="3", body=f"The recipe: {url}")
    made = replace(
        bundle,
        pull_request=replace(bundle.pull_request, changed=files),
        comments=(*bundle.comments, link),
        diff="".join(_moved(path) for path in files),
        entries=Entries(base=(_entry(OLD),), head=(_entry(NEW),)),
        points=PlannedPoints(base=base, head=head),
        changelog=(
            replace(bundle.changelog[0], config_keys=(VLLM,), description=(f"{OLD} to {NEW}",)),
        ),
        runs=(replace(bundle.runs[0], checks=tuple(checks)),),
        records=(*records, *scores),
        drafts=(),
        upstream=(UpstreamRecipe(entry=VLLM, url=url, state="published"),),
        golden={},
        rules=rules,
        artifacts=(),
    )
    return _with_body(made)


def _moved(path: str) -> str:
    names = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
    return f"{names}@@ -1 +1 @@\n-  image: {OLD}\n+  image: {NEW}\n"


def _entry(image: str) -> Entry:
    return Entry(
        key=VLLM, framework="vllm", model_prefix="minimaxm3", precision="fp8", hardware="h200",
        image=image, version=image.partition(":v")[2], scenarios=("fixed-lengths",),
        files=(CONFIG,),
    )  # fmt: skip


def _planned(point: Point) -> PlannedPoint:
    return PlannedPoint(
        entry=VLLM, name=point.name, point_id=point.point_id, series_id=point.series_id, image=NEW,
        scenario="fixed-seq-len",
    )  # fmt: skip


def _point(tp: int, conc: int, load: Workload) -> Point:
    model = Model(
        name="MiniMaxAI/MiniMax-M3", prefix="minimaxm3", precision="fp8", weights="hf:MiniMax-M3"
    )
    arm = Arm(
        framework="vllm", image=NEW, image_digest="", recipe="minimaxm3-h200-vllm", model=model,
        cluster="h200", hardware="h200", acceptance=Acceptance(),
        axes=Axes(conc=0, tp=tp, max_num_seqs=2 * conc),
    )  # fmt: skip
    scores = isinstance(load, Accuracy)
    made = Point(
        point_id="", curve_id=content_id([tp]), series_id=content_id([VLLM]), entry=VLLM, conc=conc,
        queueing=False, mode="evaluation" if scores else "throughput", arm=arm, workload=load,
        name=f"{'gsm8k-' if scores else ''}tp{tp}-c{conc}",
    )  # fmt: skip
    return replace(made, point_id=content_id(identity(made)))


def _record(point: Point, **told: object) -> PointRecord:
    server = frameworks.get("vllm").launch(point.arm, "127.0.0.1", 8000, Path("/run"))
    seen = Provenance(
        server_argv=server.argv, env=server.env, git_revision=SWEPT, git_dirty=False,
        client_argv=("aiperf", "profile", "--endpoint-type", "chat"),
    )  # fmt: skip
    attempt = Attempt(run_id=RUN, job_id=point.arm.arm_id, number=1)
    return PointRecord(point=point, status=OK, attempt=attempt, provenance=seen, **told)  # type: ignore[arg-type]


def _measured(tp: int, conc: int) -> PointRecord:
    load = FixedLengths(isl=1024, osl=1024, requests=10 * conc, warmup_requests=2 * conc)
    found = measurement(4, 8.0 + conc / tp, 200.0)
    figures = replace(found, tput_tok_s_gpu=400.0 * conc**0.5 / tp)
    return _record(_point(tp, conc, load), measurement=figures)


def _scored(tp: int, conc: int) -> PointRecord:
    filters = dict.fromkeys(
        ("strict-match", "flexible-extract"), FilterScore(score=0.951, stderr=0.006)
    )
    score = Score(
        task="gsm8k", questions=1319, limit=None, shots=5, questions_hash="0" * 64, filters=filters
    )
    return _record(_point(tp, conc, Accuracy(task="gsm8k", source="hub")), score=score)
