"""ATOM's recipe with one thing wrong at a time: left out at its line, by its rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.load import load_matrix
from infx.config.project import Project
from infx.domain.plan import Plan
from infx.plan.make import make_plan

ROOT = Path(__file__).resolve().parents[2]
NAME = "minimaxm3-mi355x-atom"
RECIPE, MATRIX = f"recipes/{NAME}.yaml", f"configs/{NAME}.yaml"
ALWAYS = ('("on" if tp == 4 else "off")', "on")
RESIDENT, DRAM, TP2 = 10, 2, 4


def edited(root: Path, *edits: tuple[str, str]) -> Plan:
    """Return the plan of the public matrix with its recipe edited."""
    text = (ROOT / RECIPE).read_text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    for name, content in ((RECIPE, text), (MATRIX, (ROOT / MATRIX).read_text())):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return make_plan(load_matrix([root / MATRIX], Project(root.resolve(), ROOT)))


def mono_line() -> tuple[str, int, int]:
    lines = (ROOT / RECIPE).read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if line.startswith("  mono: "))
    return RECIPE, number, 9


@pytest.mark.parametrize(
    ("code", "edit"),
    [
        ("mono-kv-cache", ("kv-cache-dtype: fp8", "kv-cache-dtype: bf16")),
        ("mono-index-cache", ("index-cache-dtype: fp8", "index-cache-dtype: bf16")),
        ("mono-block-size", ("block-size: 128", "block-size: 64")),
        ("mono-projections", ('"global_quant_config":"ptpc_fp8"', '"global_quant_config":"mxfp4"')),
        ("mono-shared-expert", ("shared-into-mxfp4: true", "shared-into-mxfp4: false")),
    ],
)
def test_a_broken_precondition_leaves_every_tp4_point_out(
    tmp_path: Path, code: str, edit: tuple[str, str]
) -> None:
    plan = edited(tmp_path, edit)
    refused = [row for row in plan.ledger if row.disposition == "excluded"]
    assert len(refused) == RESIDENT + DRAM
    assert {row.rule.split(":")[0] for row in refused} == {code}
    assert {(w.file, w.line, w.col) for row in refused if (w := row.where)} == {mono_line()}
    assert plan.counts["excluded"] == RESIDENT + DRAM
    told = next(f for f in plan.findings if f.code == "mono-refused")
    assert "asks mono for 12 candidates and gets it for none" in told.sentence
    assert code in told.sentence


def test_mono_on_two_ranks_leaves_those_points_out(tmp_path: Path) -> None:
    plan = edited(tmp_path, ALWAYS)
    refused = [row for row in plan.ledger if row.disposition == "excluded"]
    assert len(refused) == TP2
    assert {row.rule.split(":")[0] for row in refused} == {"mono-tp"}
    assert "mono-refused" not in {f.code for f in plan.findings}, "TP4 gets it"


def test_an_option_that_an_axis_says_is_left_out_at_its_own_line(tmp_path: Path) -> None:
    plan = edited(tmp_path, ("  gpu-memory-utilization: 0.95", "  max-num-seqs: 8"))
    lines = (tmp_path / RECIPE).read_text().splitlines()
    number = lines.index("  max-num-seqs: 8") + 1
    refused = [row for row in plan.ledger if row.disposition == "excluded"]
    assert not plan.points
    assert {row.rule.split(":")[0] for row in refused} == {"option-conflict"}
    assert {row.where and (row.where.file, row.where.line) for row in refused} == {(RECIPE, number)}
