"""The public case: MiniMax-M3 with ATOM moves to a newer nightly, and its text stays behind.

From the pull request and its review: images, versions, commits, the run, the nineteen points and
which nine are on the frontier, the ranges of the scores, GSM8K, the golden length, the draft's
types, who owns, signed and reused. Everything else is made up, as `NOTE` says in the bundle.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from infx.ci.diff import identity
from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.identity import content_id
from infx.domain.point import Accuracy, Agentic, Arm, Model, Point, Workload
from infx.domain.record import (
    Attempt,
    EngineCounters,
    FilterScore,
    Measurement,
    PointRecord,
    Provenance,
    Score,
)
from infx.domain.status import OK
from infx.frameworks.atom import Atom
from infx.review.bundle import (
    Addition,
    Bundle,
    CheckRun,
    Comment,
    Commit,
    Draft,
    DraftLayer,
    Entries,
    Entry,
    Manifest,
    PlannedPoint,
    PlannedPoints,
    PullRequest,
    Run,
)
from infx.review.rules import load_rules
from infx.review.writing import bundle_files
from tests.report.sample_runs import measurement

__all__ = ["ARTIFACTS", "KEY", "NOTE", "RUN", "VLLM", "minimax_m3", "write"]

NOTE = (
    "From public facts; latencies, throughputs, single scores, question counts, the number of the"
    " pull request and commits without a public name are synthetic."
)
REPOSITORY, NUMBER, RUN = "SemiAnalysisAI/InferenceX", 999999, "37598205362"
HEAD, SWEPT, BASE = "6acaeab387acd9635a89cc3fd51ea54de7ce0601", "4b94f096", "0" * 40
KEY, VLLM = "minimaxm3-fp4-mi355x-atom-agentic-mtp", "minimaxm3-fp4-mi355x-vllm-agentic-mtp"
OLD, NEW = (f"rocm/atom-dev:nightly_{day}" for day in ("202609281543", "202610070333"))
DIGEST = "sha256:2f605a3e8b459a0385f784edb0335c11892277fee650fe42044e4af39e36dd01"
DRAFT = "Inferact/MiniMax-M3-EAGLE3-GQA"
CONFIG = "inferencex-e2e/configs/amd-master.yaml"
RECIPE = "inferencex-e2e/recipes/minimaxm3/agentic.yaml"
CHANGELOG = "inferencex-e2e/perf-changelog.yaml"
GOLDEN = "minimaxm3_eagle3_gqa"
ROOT = Path(__file__).parents[2]

# (TP, concurrency, offload): the nineteen points; first the nine of the frontier, in its order.
FRONTIER = [(4, c, "none") for c in (5, 8, 12, 15, 20, 24, 28)] + [(4, 40, "dram"), (2, 25, "dram")]
BEATEN = [(4, c, "none") for c in (1, 2, 4, 10)] + [(4, 48, "dram")]
BEATEN += [(2, c, "none") for c in (1, 2, 4)] + [(2, 20, "dram"), (2, 30, "dram")]

BODY = """\
Move minimaxm3-fp4-mi355x-atom-agentic-mtp from nightly_202609281543 (ATOM 0.1.7.dev43+gaa0c5c3a1)
to rocm/atom-dev:nightly_202610061452 (ATOM 0.1.7.dev58+g08735170a).

Mono decode at every TP4 point; TP2 gets concurrency 4. The plan holds 19 throughput points.

GPU sweep pending.
"""

DIFF = f"""\
diff --git a/{CONFIG} b/{CONFIG}
--- a/{CONFIG}
+++ b/{CONFIG}
@@ -700,3 +700,3 @@ minimaxm3
 {KEY}:
-  image: {OLD}
+  image: {NEW}
   model: amd/MiniMax-M3-MXFP4
diff --git a/{RECIPE} b/{RECIPE}
--- a/{RECIPE}
+++ b/{RECIPE}
@@ -40,3 +40,3 @@
 c15:
-  ATOM_MONO_ENABLE: '0'
+  # mono decode at every point of TP4
   max-num-seqs: 30
diff --git a/{CHANGELOG} b/{CHANGELOG}
--- a/{CHANGELOG}
+++ b/{CHANGELOG}
@@ -6373,0 +6375 @@
+- config-keys:
"""

ARTIFACTS = {
    f"{RUN}/tp4-c1/srt-single-node-submission.json": (
        b'{"argv": ["--set", "roles.agg.args.spec-decode-acceptance-length=2.78"]}\n'
    )
}


@cache
def minimax_m3() -> Bundle:
    """Return the bundle; nothing in it changes."""
    records = (*_throughput(), *_evaluations())
    measured = [record.point for record in records if record.point.mode == "throughput"]
    return Bundle(
        manifest=Manifest(
            repository=REPOSITORY, pull_request=NUMBER, base=BASE, head=HEAD, files={}, note=NOTE
        ),
        pull_request=_request(), comments=_comments(), diff=DIFF,
        codeowners=f"* @SemiAnalysisAI/core\n/{CONFIG} @seungrokj\n",
        entries=Entries(base=(_atom(OLD), _vllm()), head=(_atom(NEW), _vllm())),
        points=PlannedPoints(
            base=tuple(_planned(p, OLD) for p in measured if not p.name.endswith("tp2-c4")),
            head=tuple(_planned(p, NEW) for p in measured),
        ),
        changelog=(
            Addition(
                config_keys=(KEY,), pr_link=f"https://github.com/{REPOSITORY}/pull/{NUMBER}",
                description=(f"Image {OLD} to {NEW} (ATOM 0.1.7.dev60+g7fc0926c6)",), line=6375,
            ),
        ),
        runs=(_run(),), records=records, drafts=(_draft(),),
        golden={GOLDEN: (ROOT / f"golden_al/{GOLDEN}.yaml").read_text()},
        artifacts=tuple(ARTIFACTS),
    )  # fmt: skip


def write(bundle: Bundle, folder: Path) -> Path:
    """Write the bundle into ``folder``, which it makes, and return it."""
    for name, data in bundle_files(bundle, ARTIFACTS).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def _request() -> PullRequest:
    commits = (
        Commit(sha="1" * 40, files=(CONFIG, RECIPE, CHANGELOG)),
        Commit(sha=SWEPT, files=(CONFIG, RECIPE, CHANGELOG)),
        Commit(sha="3" * 40, files=(CONFIG, CHANGELOG), merge=True),
        Commit(sha=HEAD, files=(CHANGELOG,), merge=True),
    )
    return PullRequest(
        number=NUMBER, repository=REPOSITORY, author="yhl-amd", body=BODY, commits=commits,
        title="MiniMax-M3 ATOM AgentX on the 1007 nightly with mono decode at every TP4 point",
        changed=(CONFIG, RECIPE, CHANGELOG), labels=("full-sweep-fail-fast", "all-evals"),
    )  # fmt: skip


def _comments() -> tuple[Comment, ...]:
    def by_owner(number: int, body: str) -> Comment:
        return Comment(
            id=str(number), author="seungrokj", association="COLLABORATOR", body=body,
            created_at=f"2026-10-08T0{number}:00:00Z",
        )  # fmt: skip

    template = load_rules().signoff
    items = "\n".join(f"- [x] {item.text}" for item in template.items)
    signed = f"{template.opening} (template version {template.version}):\n\n{items}\n"
    return by_owner(1, f"/reuse-sweep-run {RUN}"), by_owner(2, signed)


def _atom(image: str) -> Entry:
    new = image == NEW
    return Entry(
        key=KEY, framework="atom", model_prefix="minimaxm3", precision="fp4", hardware="mi355x",
        image=image, image_digest=DIGEST if new else "", scenarios=("agentic",),
        version="0.1.7.dev60+g7fc0926c6" if new else "0.1.7.dev43+gaa0c5c3a1",
        files=(CONFIG, RECIPE),
    )  # fmt: skip


def _vllm() -> Entry:
    return Entry(
        key=VLLM, framework="vllm", model_prefix="minimaxm3", precision="fp4", hardware="mi355x",
        image="vllm/vllm-openai-rocm:v0.27.1", scenarios=("agentic",), files=(CONFIG,),
    )  # fmt: skip


def _draft() -> Draft:
    names = ("embed_tokens", "fc", "qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head")
    layers = tuple(DraftLayer(name=name, stored="bf16", effective="bf16") for name in names)
    return Draft(model=DRAFT, stored="bf16", layers=layers, where="the draft's config.json")


def _run() -> Run:
    names = [f"tp{tp}-c{conc}" for tp, conc, _ in (*FRONTIER, *BEATEN)]
    checks = [
        CheckRun(name=f"agentic / {n}", kind="throughput", conclusion="success") for n in names
    ]
    checks += [
        CheckRun(name=f"agentic eval / {n}", kind="evaluation", conclusion="success") for n in names
    ]
    return Run(
        run_id=RUN, repository=REPOSITORY, pull_request=NUMBER, head_sha=SWEPT, attempt=1,
        conclusion="success", checks=tuple(checks),
    )  # fmt: skip


def _planned(point: Point, image: str) -> PlannedPoint:
    identity = point.point_id if image == NEW else content_id([image, point.point_id])
    series = content_id([KEY, image])
    return PlannedPoint(
        entry=KEY, name=point.name, point_id=identity, series_id=series, image=image,
        scenario="agentic-coding",
    )  # fmt: skip


def _arm(tp: int, conc: int, offload: str, acceptance: Acceptance) -> Arm:
    backend = "lmcache" if offload == "dram" else "auto"
    return Arm(
        framework="atom", image=NEW, image_digest=DIGEST, recipe="minimaxm3-mi355x-atom",
        model=Model(
            name="amd/MiniMax-M3-MXFP4", prefix="minimaxm3", precision="fp4",
            weights="hf:amd/MiniMax-M3-MXFP4", revision="9" * 40,
        ),
        cluster="mi355x", hardware="mi355x", acceptance=acceptance, method="eagle3", draft=DRAFT,
        axes=Axes(
            conc=0, tp=tp, k=3, max_num_seqs=2 * conc, kv_cache_dtype="fp8",
            index_cache_dtype="fp8", mono="on" if tp == 4 else "off", kv_offload=offload,
            kv_offload_backend=backend,
        ),
        options={"online-quant-config": "ptpc_fp8"},
    )  # fmt: skip


def _point(place: tuple[int, int, str], workload: Workload, acceptance: Acceptance) -> Point:
    tp, conc, offload = place
    arm = _arm(tp, conc, offload, acceptance)
    kind = "" if isinstance(workload, Agentic) else f"{workload.kind}-"
    made = Point(
        point_id="", series_id=content_id([KEY, NEW]),
        curve_id=content_id([arm.identity(), workload]), entry=KEY, conc=conc, queueing=False,
        mode="throughput" if isinstance(workload, Agentic) else "evaluation",
        name=f"{kind}tp{tp}-c{conc}", arm=arm, workload=workload,
    )  # fmt: skip
    return replace(made, point_id=content_id(identity(made)))


def _record(point: Point, **told: object) -> PointRecord:
    server = Atom().launch(point.arm, "127.0.0.1", 8000, Path("/run"))
    client = ("aiperf", "profile", "--endpoint-type", "chat", "--apply-chat-template")
    return PointRecord(
        point=point, status=OK, attempt=Attempt(run_id=RUN, job_id=point.arm.arm_id, number=1),
        provenance=Provenance(server_argv=server.argv, env=server.env, client_argv=client),
        **told,  # type: ignore[arg-type]
    )  # fmt: skip


def _throughput() -> list[PointRecord]:
    golden = Acceptance("synthetic", 2.78, "min-variance", GOLDEN, "on", 3)
    workload = Agentic(trace="semianalysis_cc_traces_weka_062126", use_chat_template=True)
    counters = EngineCounters(acceptance_length=2.7812, verify_steps=41_000)
    return [
        _record(
            _point(place, workload, golden), counters=counters, measurement=_figures(number),
            artifacts={"submission": "tp4-c1/srt-single-node-submission.json"}
            if place == (4, 1, "none") else {},
        )
        for number, place in enumerate((*FRONTIER, *BEATEN))
    ]  # fmt: skip


def _figures(number: int) -> Measurement:
    """Along the frontier more throughput costs latency; the rest is beaten by its first point."""
    beaten = number >= len(FRONTIER)
    found = measurement(4, 10.0 + (0 if beaten else number), 500.0 + (30 * number if beaten else 0))
    return replace(found, tput_tok_s_gpu=900.0 - number if beaten else 1000.0 + 200 * number)


def _evaluations() -> list[PointRecord]:
    whole = Accuracy(task="minimax_m3_full", source="hub", max_tokens=16384)
    asked = [(place, whole) for place in (*FRONTIER, *BEATEN)]
    found = [
        _record(
            _point(place, task, Acceptance(k=3)),
            score=_score(task.task, 1000, 0.97 + n * 0.02 / 18),
        )
        for n, (place, task) in enumerate(asked)
    ]
    gsm8k = _point((4, 48, "dram"), Accuracy(task="gsm8k", source="hub"), Acceptance(k=3))
    gsm8k = replace(gsm8k, name="gsm8k-tp4-c48")
    return [*found, _record(gsm8k, score=_score("gsm8k", 1319, 0.969))]


def _score(task: str, questions: int, score: float) -> Score:
    stderr = (score * (1 - score) / questions) ** 0.5
    names = ("strict-match", "flexible-extract") if task == "gsm8k" else ("score",)
    return Score(
        task=task, questions=questions, limit=None, shots=5, questions_hash=content_id(task),
        filters={name: FilterScore(score=score, stderr=stderr) for name in names},
    )  # fmt: skip
