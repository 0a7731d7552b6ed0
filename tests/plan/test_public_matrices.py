"""The matrices of MiniMax-M3: what each becomes, point by point.

Facts: the public entries and recipes that the files name as their sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infx import frameworks
from infx.config.load import load_matrix
from infx.config.project import Project
from infx.domain.plan import Plan
from infx.domain.point import Agentic, Point
from infx.plan.make import make_plan

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Project(ROOT, ROOT)

ATOM_CAPTURES = [*range(1, 19), *range(20, 37, 2), 40, 48, 56, 64]
"""Requests: the public recipe's --cudagraph-capture-sizes."""


@dataclass(frozen=True)
class Row:
    """One throughput point; ``captures`` are requests a step (rows, where the engine counts so)."""

    tp: int
    conc: int
    seqs: int
    captures: list[int] = field(default_factory=list)
    mono: str = "off"
    offload_gb: int | None = None


def atom(tp: int, concs: list[int], gb: int | None = None) -> list[Row]:
    mono = "on" if tp == 4 else "off"
    return [Row(tp, c, 2 * c, ATOM_CAPTURES, mono, gb) for c in concs]


def vllm_sizes(most: int) -> list[int]:
    """vLLM's own sizes from 4 up to ``most`` rows, every eighth."""
    return [4, *range(8, most + 1, 8)]


EXPECTED: dict[str, list[Row]] = {
    "minimaxm3-mi355x-atom": [
        *atom(4, [1, 2, 4, 5, 8, 12, 15, 20, 24, 28]),
        *atom(4, [40, 48], 1030),
        *atom(2, [1, 2, 4]),
        *atom(2, [25], 515),
    ],
    "minimaxm31-mi355x-atom": [
        Row(4, c, seqs, list(range(1, seqs + 1)), "on")
        for c, seqs in ((1, 1), (2, 2), (4, 8), (8, 16), (16, 32), (32, 64), (48, 96))
    ],
    "minimaxm3-mi355x-vllm": [
        *[Row(4, c, 2 * c) for c in (1, 2, 4, 5, 8, 10, 12, 15, 20, 24, 28, 32)],
        *[Row(4, c, 2 * c, offload_gb=299) for c in (32, 40)],
        *[Row(2, c, 2 * c) for c in (1, 2, 5)],
    ],
    "minimaxm3-h200-vllm": [Row(8, c, 2 * c, vllm_sizes(8 * c)) for c in (1, 2, 4, 6, 8, 10)],
    "minimaxm3-b200-sglang": [
        Row(8, c, 2 * c, list(range(1, 2 * c + 1))) for c in (1, 2, 4, 5, 8, 10, 15, 20)
    ],
}
EVALUATIONS = {"minimaxm3-mi355x-atom": (4, 2), "minimaxm3-mi355x-vllm": (2, 0)}
"""Evaluations that run, and those that repeat another; one that runs elsewhere."""


@cache
def plan_of(name: str) -> Plan:
    return make_plan(load_matrix([PROJECT.matrix_path(name)], PROJECT))


def throughput(name: str) -> list[Point]:
    return [p for p in plan_of(name).points if p.mode == "throughput"]


def row(point: Point) -> Row:
    axes = point.arm.axes
    width = 1 if point.arm.framework == "vllm" else axes.k + 1
    captures = [size // width for size in axes.capture_sizes]
    assert all(size % width == 0 for size in axes.capture_sizes)
    assert axes.max_num_seqs
    gb = axes.kv_offload_gb
    return Row(axes.tp, point.conc, axes.max_num_seqs, captures, axes.mono, gb)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_ledger(name: str) -> None:
    plan, rows = plan_of(name), EXPECTED[name]
    assert [row(point) for point in throughput(name)] == rows
    run, repeated = EVALUATIONS.get(name, (1, 0))
    counts = {"run": len(rows) + run} | ({"duplicate": repeated} if repeated else {})
    assert plan.counts == counts
    assert not [f for f in plan.findings if f.level == "error"]
    assert len({point.name for point in throughput(name)}) == len(rows)
    assert {type(point.workload) for point in throughput(name)} == {Agentic}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_follows_the_concurrency_is_one_curve_for_each_way_to_serve(name: str) -> None:
    def way(point: Point) -> tuple[Any, ...]:
        return (point.arm.axes.tp, point.arm.axes.kv_offload)

    curves = {point.curve_id: way(point) for point in throughput(name)}
    assert sorted(curves.values()) == sorted({way(point) for point in throughput(name)})


def test_atoms_settings_are_those_of_the_public_entry() -> None:
    points = throughput("minimaxm3-mi355x-atom")
    assert len(points) == 16
    for point in points:
        arm = point.arm
        assert (arm.axes.kv_cache_dtype, arm.axes.index_cache_dtype) == ("fp8", "fp8")
        assert (arm.axes.k, arm.method, arm.draft) == (
            3,
            "eagle3",
            "Inferact/MiniMax-M3-EAGLE3-GQA",
        )
        assert (arm.acceptance.golden, arm.acceptance.thinking) == ("minimaxm3_eagle3_gqa", "on")
        assert '"global_quant_config":"ptpc_fp8"' in str(arm.options["online-quant-config"])
        dram, wide = arm.axes.kv_offload == "dram", arm.axes.tp == 4 and point.conc >= 15
        assert arm.options["atom-m3-indexer-cp"] is wide
        assert arm.options["atom-prefix-cache-policy"] == ("slru" if dram else "lru")
        told = _launch(point)
        assert told.env["ATOM_MONO_ENABLE"] == str(int(arm.axes.tp == 4))
        assert "--hf-overrides" not in told.argv


def test_m31_delays_prefills_up_to_16_and_keeps_mxfp4_caches() -> None:
    points = throughput("minimaxm31-mi355x-atom")
    delayed = {p.conc: p.arm.options["atom-enable-prefill-delayer"] for p in points}
    assert delayed == {c: c <= 16 for c in (1, 2, 4, 8, 16, 32, 48)}
    for point in points:
        axes = point.arm.axes
        assert (axes.kv_cache_dtype, axes.index_cache_dtype) == ("mxfp4", "mxfp4")
        assert (axes.k, point.arm.method) == (7, "dspark")
        assert "dspark-config" not in point.arm.options, "a fixed verify of all seven drafts"


def test_mono_is_refused_nowhere_and_its_steps_hold_no_padding() -> None:
    for name in ("minimaxm3-mi355x-atom", "minimaxm31-mi355x-atom"):
        for point in throughput(name):
            axes = point.arm.axes
            mono = range(axes.k + 1, 16 + 1, axes.k + 1)
            reachable = range(axes.k + 1, axes.max_num_seqs * (axes.k + 1) + 1, axes.k + 1)
            assert {*mono} & {*reachable} <= {*axes.capture_sizes}


def test_the_budgets_are_those_of_the_public_formula() -> None:
    """floor(min(DRAM, 2,861,022 MiB) x utilization x accelerators / 8), in GB, at 0.2 and TP4."""
    assert int(min(3_095_781, 2_861_022) * 2**20 * 0.2 * 4 / 8 / 1e9) == 299
    dram = {p.arm.axes.kv_offload_gb for p in throughput("minimaxm3-mi355x-vllm")}
    assert dram == {None, 299}


def test_infxs_own_engine_on_h200_is_refused_until_its_part_is_there() -> None:
    plan = plan_of("minimaxm3-h200-infx")
    assert plan.counts == {"excluded": 10}
    codes = {r.rule.split(":")[0]: r.where and r.where.file for r in plan.ledger}
    assert codes == {
        "unsupported-dtype": "recipes/minimaxm3-h200-infx.yaml",
        "mono-projections": "configs/minimaxm3-h200-infx.yaml",
    }
    assert "mono-refused" in {finding.code for finding in plan.findings}


def test_every_recipe_is_used_and_every_matrix_of_ours_plans() -> None:
    used = set()
    for name in PROJECT.matrices():
        matrix = load_matrix([PROJECT.matrix_path(name)], PROJECT)
        used |= {entry.recipe.name for entry in matrix.entries}
        assert not [f for f in make_plan(matrix).findings if f.level == "error"]
    assert used == set(PROJECT.recipes())


def _launch(point: Point) -> Any:
    engine = frameworks.get(point.arm.framework)
    return engine.launch(point.arm, "127.0.0.1", 8000, Path("unused"))
