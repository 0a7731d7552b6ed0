"""Ranges, filters and rows: by property, and field by field on a small file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.config.inferencex.expand import doubled
from infx.config.inferencex.select import Selection
from infx.domain.errors import UsageError
from tests.config.inferencex.sample import FIXED, WHOLE, edited, masters, rows

SIZES = st.integers(1, 5000)
STEPS = st.integers(2, 9)
BOUND = st.none() | SIZES


@given(start=SIZES, end=SIZES, step=STEPS)
def test_a_range_begins_and_ends_where_it_says(start: int, end: int, step: int) -> None:
    values = doubled(start, end, step)
    assert (values == []) == (start > end)
    if values:
        assert (values[0], values[-1]) == (start, end)
        assert values == sorted(set(values))
        assert all(b == a * step for a, b in pairwise(values[:-1]))
        assert len(values) == 1 or values[-1] <= values[-2] * step


def test_the_range_of_the_reference() -> None:
    assert doubled(4, 48) == [4, 8, 16, 32, 48]
    assert doubled(7, 7) == [7]
    assert len(doubled(1, 10**400)) == 1330


@given(concs=st.lists(SIZES, min_size=1), low=BOUND, high=BOUND)
def test_lists_keep_what_fits_or_the_largest_wanted(
    concs: list[int], low: int | None, high: int | None
) -> None:
    chosen = Selection(min_conc=low, max_conc=high)
    fixed, agentic = chosen.fixed_concs(concs), chosen.agentic_concs(concs)
    fitting = [c for c in concs if c >= (low or 1) and (high is None or c <= high)]
    assert agentic == fitting
    above = [c for c in concs if c >= (low or 1)]
    assert fixed == (fitting or ([high] if above else []))


@given(start=SIZES, more=st.integers(0, 5000), low=BOUND, high=BOUND, step=STEPS)
def test_a_cut_range_stays_in_its_bounds(
    start: int, more: int, low: int | None, high: int | None, step: int
) -> None:
    first, last = Selection(min_conc=low, max_conc=high).fixed_range(start, start + more)
    values = doubled(first, last, step)
    assert all(high is None or value <= high for value in values)
    assert (values == []) == (low is not None and start + more < low)
    if values and not (high is not None and max(start, low or 1) > high):
        assert values[0] == max(start, low or 1)
        assert values[-1] == (start + more if high is None else min(start + more, high))


@pytest.mark.parametrize("bound", [{"min_conc": 0}, {"max_conc": 0}, {"min_conc": -4}])
def test_a_bound_below_one_drops_fixed_rows(tmp_path: Path, bound: dict[str, int]) -> None:
    assert rows(masters(tmp_path, FIXED), **bound) == []


def test_rows_of_one_node(tmp_path: Path) -> None:
    first, *_, last = rows(masters(tmp_path, FIXED))
    assert list(first.items()) == [
        ("image", "vllm/vllm-openai:v1"),
        ("model", "org/Model"),
        ("model-prefix", "dsv4"),
        ("precision", "fp8"),
        ("framework", "vllm"),
        ("runner", "h200"),
        ("isl", 8192),
        ("osl", 1024),
        ("tp", 8),
        ("pp", 1),
        ("dcp-size", 1),
        ("pcp-size", 1),
        ("conc", 4),
        ("max-model-len", 9472),
        ("ep", 1),
        ("dp-attn", False),
        ("spec-decoding", "none"),
        ("exp-name", "dsv4_8k1k"),
        ("disagg", False),
        ("run-eval", False),
    ]
    assert (last["conc"], last["ep"], last["dp-attn"], last["spec-decoding"]) == (
        *(16, 4),
        *(True, "mtp"),
    )


def test_rows_of_workers_hold_their_concurrencies(tmp_path: Path) -> None:
    multi = rows(masters(tmp_path, WHOLE))[-1]
    assert multi["conc"] == [8, 32]
    assert list(multi)[8:] == [
        *("spec-decoding", "prefill", "decode", "conc", "max-model-len", "exp-name"),
        *("disagg", "run-eval", "kv-p2p-transfer"),
    ]
    assert list(multi["decode"]) == [
        *("num-worker", "tp", "ep", "dp-attn", "additional-settings"),
        *("pp", "dcp-size", "pcp-size"),
    ]


def test_agentic_rows_have_their_host_memory(tmp_path: Path) -> None:
    made = [row for row in rows(masters(tmp_path, WHOLE)) if "duration" in row]
    # half of a node's 1,000,000 MiB, of which four of eight accelerators have half
    share = 1_000_000 * 2**20 // 4 // 10**9
    assert [row["total-cpu-dram-gb"] for row in made] == [0, 0, share]
    assert [row["exp-name"] for row in made] == [
        *("dsv4_tp8_conc1_kvnone", "dsv4_tp8_conc20_kvnone", "dsv4_tp4_conc8_kvdram-hicache"),
    ]
    assert [row["duration"] for row in made] == [3600] * 3


def test_other_lengths_are_written_out(tmp_path: Path) -> None:
    text = edited("isl: 8192", "isl: 2048", FIXED)
    assert rows(masters(tmp_path, text))[0]["exp-name"] == "dsv4_2048_1024"


def test_a_router_of_the_entry_is_that_of_its_rows(tmp_path: Path) -> None:
    router = "router: { name: r, version: '1' }"
    text = edited("multinode: false", f"multinode: false\n  {router}", FIXED)
    assert rows(masters(tmp_path, text))[0]["router"] == {"name": "r", "version": "1"}


FILTERS: list[tuple[dict[str, Any], list[int | list[int]]]] = [
    ({}, [4, 8, 16, 32, 48, 64, 16, 1, 20, 8, [8, 32]]),
    ({"framework": ("sglang",)}, [1, 20, 8]),
    ({"precision": ("fp4",)}, []),
    ({"model_prefix": ("dsv4-fp8-h200-v",)}, [4, 8, 16, 32, 48, 64, 16]),
    ({"runner": ("cluster:h200-x",)}, [1, 20, 8]),
    ({"seq_lens": ("1k1k",)}, [1, 20, 8]),  # lengths do not touch agentic rows
    ({"scenario_type": ("fixed-seq-len",), "single_node": False}, [[8, 32]]),
    ({"multi_node": False, "scenario_type": ("agentic-coding",)}, [1, 20, 8]),
    ({"min_conc": 20}, [20, 40, 48, 64, 20, [32]]),
    ({"max_conc": 8}, [4, 8, 8, 1, 8, [8]]),
    ({"max_conc": 2}, [2, 2, 1, [2]]),  # fixed rows are clamped, agentic ones fall away
    ({"max_tp": 4, "multi_node": False}, [64, 16, 1, 20, 8]),
    ({"step_size": 4, "framework": ("vllm",)}, [4, 16, 48, 64, 16]),
    ({"config_keys": ("*-agentic", "dsv4-fp8-h200-vllm")}, [1, 20, 8, 4, 8, 16, 32, 48, 64, 16]),
    ({"config_keys": ("*",), "conc": (8, 16)}, [8, 16, 16, 8, [8]]),
]


@pytest.mark.parametrize(("chosen", "concs"), FILTERS)
def test_filters(tmp_path: Path, chosen: dict[str, Any], concs: list[int]) -> None:
    assert [row["conc"] for row in rows(masters(tmp_path, WHOLE), **chosen)] == concs


def test_the_largest_ep_clamps_rows_that_say_one(tmp_path: Path) -> None:
    made = rows(masters(tmp_path, FIXED), max_ep=2)
    assert {row["ep"] for row in made} == {1, 2}


def test_a_row_for_each_machine(tmp_path: Path) -> None:
    read = masters(tmp_path, WHOLE)
    swept = rows(read, runner_node="h200-x", framework=("vllm",), max_conc=4, scenario_type=())
    assert [row["runner"] for row in swept] == ["h200-x_0", "h200-x_1"] * 2
    keyed = rows(read, runner_node="h200-x", config_keys=("*-agentic",), conc=(1,))
    assert [row["runner"] for row in keyed] == ["cluster:h200-x", "h200-x_0"]
    assert rows(read, runner_node="nobody") == []
    with pytest.raises(UsageError, match="needs the machines"):
        rows(masters(tmp_path, FIXED, runners=None), runner_node="h200")


WRONG = [
    ({"config_keys": ("dsv5*",)}, "--config-keys dsv5* fits no entry"),
    ({"config_keys": ("dsv4-fp8-h200-vlm",)}, "fits no entry"),
    ({"step_size": 1}, "--step-size is 1"),
    ({"min_conc": 9, "max_conc": 8}, "--min-conc 9 is above"),
    ({"seq_lens": ("8k",)}, "--seq-lens 8k"),
    ({"scenario_type": ("agentic",)}, "--scenario-type agentic"),
    ({"runner": ("h2000",)}, "--runner h2000"),
]


@pytest.mark.parametrize(("chosen", "word"), WRONG)
def test_a_choice_that_fits_nothing(tmp_path: Path, chosen: dict[str, Any], word: str) -> None:
    read = masters(tmp_path, WHOLE)
    with pytest.raises(UsageError, match=word.replace("*", r"\*")) as raised:
        rows(read, **chosen)
    assert raised.value.code == "bad-option"
    assert raised.value.hint


@pytest.mark.slow
def test_fifty_thousand_concurrencies(tmp_path: Path) -> None:
    listed = ", ".join(map(str, range(1, 50_001)))
    text = edited("conc-start: 4, conc-end: 48", f"conc-list: [{listed}]", FIXED)
    assert len(rows(masters(tmp_path, text))) == 50_002
