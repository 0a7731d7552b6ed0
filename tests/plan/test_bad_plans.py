"""A table of combinations that must not be run: each gives its code at its file:line:col."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.load import load_matrix
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Level, Where
from infx.domain.plan import Plan
from infx.plan.make import make_plan
from tests.config.sample_project import Edit, write_project

MATRIX, RECIPE = "configs/demo.yaml", "recipes/mini.yaml"
CLUSTERS, GOLDEN = "configs/clusters.yaml", "golden_al/curve.yaml"
FILES = {
    MATRIX: """\
demo:
  model-prefix: minimaxm3
  precision: fp32
  framework: infx
  image: pypi:infx
  recipe: mini
  cluster: box
  speculation: {method: eagle3, golden: curve, thinking: on}
  options: {num-blocks: 64}
  scenarios:
    - workload: {isl: 64, osl: 32, requests: 6*conc}
      axes:
        conc: [1, 2, 8]
        k: 3
      include:
        - {conc: 4}
""",
    CLUSTERS: "box: {executor: local, hardware: cpu, dram-gb-per-node: 100}\n",
    RECIPE: """\
framework: infx
model: {name: mini, weights: random:0, heads: 8, kv-heads: 2}
hardware: [cpu]
chat-template: true
axes:
  capture-sizes: range(k+1, 8*(k+1)+1, k+1)
  max-num-seqs: 2*conc
options:
  threads: 2
  dtype: float32
""",
    GOLDEN: """\
some-model:
  thinking_on: {1: 1.8, 2: 2.4, 3: 2.78}
""",
}

Row = tuple[str, Edit, str]
AXIS = "        k: 3\n"
RANGE = "range(k+1, 8*(k+1)+1, k+1)"


def axis(line: str) -> Edit:
    """One more axis of the scenario."""
    return Edit(AXIS, f"{AXIS}        {line}\n")


ERRORS: list[Row] = [
    # Options, at their own lines
    ("option-unknown", Edit("  threads: 2", "  «thread: 2", RECIPE), "did you mean `threads`?"),
    ("option-unknown", Edit("num-blocks: 64", "«num-block: 64"), "did you mean `num-blocks`?"),
    ("option-unknown", Edit("  threads: 2", "  «max-num-seqs: 2", RECIPE), "is an axis"),
    ("option-unknown", Edit("  threads: 2", "  «zzz: 2", RECIPE), "known: dtype"),
    ("option-value", Edit("  threads: 2", "  «threads: two", RECIPE), ""),
    ("option-value", Edit("  threads: 2", "  «threads: 2.5", RECIPE), ""),
    ("option-value", Edit("num-blocks: 64", "«num-blocks: true"), ""),
    ("option-value", Edit("  dtype: float32", "  «dtype: conc", RECIPE), ""),
    ("out-of-range", Edit("  threads: 2", "  «threads: conc - 2", RECIPE), "exclude rule"),
    # An image without a version
    ("image-unpinned", Edit("pypi:infx", "pypi:infx=="), "pypi:infx==VERSION"),
    # K and acceptance lengths
    ("golden-k-missing", Edit("        k: 3", "        k: «conc"), "it holds K = 1, 2, 3"),
    ("golden-k-missing", Edit("        k: 3", "        k: «min(conc, 4)"), "never interpolated"),
    ("golden-k-missing", Edit("        k: 3", "        k: «4"), "it holds K = 1, 2, 3"),
    ("golden-k-missing", Edit("        k: 3", "        k: 3 if conc < 8 else «7"), "K = 1, 2, 3"),
    ("golden-k-missing", Edit("{conc: 4}", "{conc: 4, k: «5}"), "it holds K = 1, 2, 3"),
    ("golden-k-missing", Edit("{conc: 4}", "{conc: 4, k: «2*conc}"), "K = 1, 2, 3"),
    (
        "golden-k-missing",
        Edit("3: 2.78", "4: 2.9", GOLDEN),
        "it holds K = 1, 2, 4",
    ),
    ("out-of-range", Edit("3: 2.78", "3: «4.01", GOLDEN), "a step emits 1 to K+1 tokens"),
    ("out-of-range", Edit("3: 2.78", "3: «0.99", GOLDEN), "a step emits 1 to K+1 tokens"),
    # Capture sizes
    ("capture-gap", Edit(RANGE, "«[4, 8, 28]", RECIPE), "add a capture size of 32 or more"),
    ("capture-gap", Edit(RANGE, "«range(4, 29)", RECIPE), "add a capture size of 32 or more"),
    ("capture-gap", axis("capture-sizes: «[4, 8]"), "add a capture size of 32 or more"),
    # Offload
    ("offload-without-budget", axis("kv-offload: «dram"), "add kv-offload-gb"),
    ("budget-without-offload", axis("kv-offload-gb: «8"), "write kv-offload: dram"),
    ("budget-without-offload", axis("kv-offload-backend: «lmcache"), "write kv-offload: dram"),
    (
        "offload-without-budget",
        Edit("  max-num", "  kv-offload: «dram\n  max-num", RECIPE),
        "add kv-offload-gb",
    ),
]


def plan_of(root: Path, *edits: Edit) -> tuple[Plan | None, tuple[Finding, ...], Where]:
    """Return the plan, or the faults, of the sample with edits; and the marked place."""
    files, marked = dict(FILES), Where("")
    for edit in edits:
        text, place = edit.apply(files[edit.file])
        files[edit.file] = text
        if "«" in edit.new:
            marked = Where(edit.file, *place)
    project = write_project(root, files)
    try:
        plan = make_plan(load_matrix([project.root / MATRIX], project))
    except ConfigError as error:
        return None, tuple(error.findings), marked
    return plan, plan.findings, marked


def test_the_sample_has_no_fault(tmp_path: Path) -> None:
    plan, findings, _ = plan_of(tmp_path)
    assert plan
    assert plan.counts == {"run": 4}
    assert not findings


@pytest.mark.parametrize(("code", "edit", "hint"), ERRORS, ids=lambda v: getattr(v, "new", v))
def test_an_error_has_its_place(tmp_path: Path, code: str, edit: Edit, hint: str) -> None:
    plan, findings, marked = plan_of(tmp_path, edit)
    assert plan is None
    errors = [finding for finding in findings if finding.level == "error"]
    assert {finding.code for finding in errors} == {code}
    if marked.file:
        assert {finding.where for finding in errors} == {marked}
    assert all(f.where and f.where.line and f.where.col for f in errors)
    assert hint in errors[0].hint


def test_each_missing_k_is_told_in_one_pass(tmp_path: Path) -> None:
    edits = [Edit("        k: 3", "        k: 4*conc"), Edit("{conc: 4}", "{conc: 4, k: conc + 1}")]
    _, findings, _ = plan_of(tmp_path, *edits)
    missing = [(f.sentence.split(" with")[0], f.where and f.where.line) for f in findings]
    assert missing == [
        ("curve has no length for K=4", 14),
        ("curve has no length for K=8", 14),
        ("curve has no length for K=32", 14),
        ("curve has no length for K=5", 16),
    ]


@pytest.mark.parametrize(("tp", "gb", "limit"), [(1, 13, 12), (2, 26, 25), (8, 101, 100)])
def test_a_budget_over_the_share_of_the_accelerators(
    tmp_path: Path, tp: int, gb: int, limit: int
) -> None:
    cluster = Edit("cpu, dram", "cpu, gpus-per-node: 8, dram", CLUSTERS)
    heads = Edit("kv-heads: 2", "kv-heads: 8", RECIPE)
    more = f"{AXIS}        tp: {tp}\n        kv-offload: dram\n        kv-offload-gb: "
    _, findings, marked = plan_of(tmp_path, cluster, heads, Edit(AXIS, f"{more}«{gb}\n"))
    found = {(f.code, f.where, f.hint) for f in findings if f.level == "error"}
    assert found == {("offload-over-limit", marked, f"write {limit} or less")}
    _, findings, _ = plan_of(tmp_path / "b", cluster, heads, Edit(AXIS, f"{more}{limit}\n"))
    assert not [f for f in findings if f.level == "error"]


def test_yes_or_no_and_the_engine_s_own_may_follow_the_concurrency(tmp_path: Path) -> None:
    more = (
        "        chunked-prefill: conc > 2\n"
        "        kv-offload: \"'dram' if conc > 4 else 'none'\"\n"
        "        kv-offload-gb: 8 if conc > 4 else None\n"
    )
    own = Edit("  options: {num-blocks: 64}\n", "")
    plan, findings, _ = plan_of(tmp_path, Edit(AXIS, AXIS + more), *VLLM, DRAFT, own)
    assert plan, findings
    told = [(p.conc, p.arm.axes.chunked_prefill, p.arm.axes.kv_offload_gb) for p in plan.points]
    assert told == [(1, False, None), (2, False, None), (8, True, 8), (4, True, None)]


def test_an_unknown_amount_of_dram_is_not_checked(tmp_path: Path) -> None:
    more = f"{AXIS}        kv-offload: dram\n        kv-offload-gb: 999\n"
    unknown = Edit(", dram-gb-per-node: 100", "", CLUSTERS)
    _, findings, _ = plan_of(tmp_path, Edit(AXIS, more), unknown)
    assert not [f for f in findings if f.level == "error"]


@pytest.mark.parametrize(
    ("sizes", "level", "words"),
    [
        (
            "«[4, 8, 16, 32]",
            "warning",
            "at conc 8 a step of 5 requests has 20 rows and runs as 32: 12 are padding (38%), the "
            "most of any; no capture size fits 4 of 8 reachable batches",
        ),
        (
            "«[4, 8, 12, 16, 20, 24, 32]",
            "info",
            "at conc 8 a step of 7 requests has 28 rows and runs as 32: 4 are padding (12%), the "
            "most of any; no capture size fits 1 of 8 reachable batches",
        ),
    ],
)
def test_coarse_capture_sizes_are_told_at_their_line(
    tmp_path: Path, sizes: str, level: Level, words: str
) -> None:
    plan, findings, marked = plan_of(tmp_path, Edit(RANGE, sizes, RECIPE))
    assert plan
    assert [(f.code, f.level, f.where) for f in findings] == [("capture-padding", level, marked)]
    assert words in findings[0].sentence


def test_mono_that_is_refused_leaves_out_and_is_told(tmp_path: Path) -> None:
    dtype = Edit("  dtype: float32", "  dtype: float32\n  projection-dtype: fp8", RECIPE)
    rule = Edit("{conc: 4}", "{conc: 4, mono: on}")
    plan, findings, marked = plan_of(tmp_path, dtype, axis("mono: «[off, on]"), rule)
    assert plan
    refused = [row for row in plan.ledger if row.disposition == "excluded"]
    assert plan.counts == {"run": 3, "excluded": 4}
    assert {row.where for row in refused} == {marked, Where(MATRIX, 17, 27)}
    assert all(row.rule.startswith("mono-projections: ") for row in refused)
    warning = next(f for f in findings if f.code == "mono-refused")
    assert (warning.level, warning.where) == ("warning", marked)
    assert "asks mono for 4 candidates and gets it for none" in warning.sentence
    assert "mono-projections" in warning.sentence


VLLM = (
    Edit("framework: infx\n  image: pypi:infx", "framework: vllm\n  image: v/llm:1"),
    Edit(
        "infx\nmodel: {name: mini, weights: random:0",
        "vllm\nmodel: {name: m, weights: hf:a/b",
        RECIPE,
    ),
    Edit("  threads: 2\n", "", RECIPE),
)
DRAFT = Edit("method: eagle3", "method: eagle3, draft: a/d")


@pytest.mark.parametrize(
    ("code", "edits"),
    [
        ("draft-missing", [Edit("  speculation: {", "  speculation: «{")]),
        (
            "option-conflict",
            [Edit("  speculation: {method: eagle3", "  speculation: «{method: ngram, draft: a/d")],
        ),
        (
            "option-conflict",
            [DRAFT, Edit("  dtype: f", "  «speculative-config: '{bad'\n  dtype: f", RECIPE)],
        ),
        (
            "option-conflict",
            [
                DRAFT,
                Edit("  dtype: f", "  «speculative-config: '{\"model\": 1}'\n  dtype: f", RECIPE),
            ],
        ),
    ],
)
def test_what_the_engine_refuses_is_left_out_at_the_line_that_asks(
    tmp_path: Path, code: str, edits: list[Edit]
) -> None:
    own = Edit("  options: {num-blocks: 64}\n", "")
    plan, _, marked = plan_of(tmp_path, *VLLM, *edits, own)
    assert plan
    assert {row.rule.split(":")[0] for row in plan.ledger} == {code}
    assert {row.where for row in plan.ledger} == {marked}


def test_mono_that_one_candidate_gets_is_no_warning(tmp_path: Path) -> None:
    more = Edit(AXIS, f"{AXIS}        mono: on\n        tp: [1, 2]\n")
    plan, findings, _ = plan_of(tmp_path, more, Edit("{conc: 4}", "{conc: 4, tp: 1}"))
    assert plan
    assert plan.counts == {"run": 4, "excluded": 3}
    assert "mono-refused" not in {f.code for f in findings}
