"""A bench's figures and lines, from results that are written here."""

from __future__ import annotations

from typing import Any

import pytest

from infx.engine.mono.cuda.floor import layer_bytes
from infx.engine.mono.cuda.report import (
    faults_of,
    figures,
    lines,
    ratios,
    setting_of,
    spread,
    step_ms,
)
from infx.engine.mono.cuda.setting import Setting
from tests.engine.mono.cuda.bench_results import checked, found, result


def test_figures_follow_from_bytes_and_copy() -> None:
    one = result(1, 80.0, 50.0, 40.0)
    made = figures(one, Setting(), 4.0)
    assert one["bytes"] == layer_bytes(Setting(), 1, 4.0, 16)
    assert made["floor_us"] == pytest.approx(one["bytes"] / 4e6)
    assert made["share_of_floor"]["mono"] == pytest.approx(made["floor_us"] / 40)
    assert made["targets_us"] == (45, 30)
    assert (made["union"], made["uniform_union"]) == (4, pytest.approx(4))
    assert figures(result(16, 90, 60, 50), Setting(pads=7), 4.0)["uniform_union"] == pytest.approx(
        128 * (1 - (124 / 128) ** 9)
    )
    assert figures(one, Setting(context=100), 4.0)["targets_us"] is None


def test_a_line_a_width() -> None:
    *_, copy, header, first, last = lines(found([result(1, 80, 50, 40), result(16, 90, 60, 50)]))
    assert copy == "copy 4.00 TB/s"
    assert header.startswith("rows union    MB  floor")
    assert first.split()[:4] == ["1", "4.0", "69.1", "17.3"]
    assert "(45, 30) | 2.000, 1.316" in first
    assert last.split()[0] == "16"


def test_all_layers_in_one_graph_stand_beside_the_sum() -> None:
    one = result(4, 80, 50, 40) | {"group": {"layers": 8} | result(4, 90, 60, 50)}
    steps = step_ms(one, 57)
    assert steps is not None
    assert steps["mono"] == pytest.approx((57 * 0.040, 57 * 0.050))
    assert step_ms(result(4, 80, 50, 40), 57) is None
    whole = found([one]) | {"layers": 57}
    assert any("57 layers in one graph" in line and "mono 2.280" in line for line in lines(whole))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"faults": ["up"], "errors": {"up": 0.5}}, "up 5.0e-01"),
        ({"mono_differs": ["keys"]}, "mono's keys"),
        ({"replayed_differs": ["out"]}, "replayed out"),
        ({"gave_up": [1, 2, 3, 4]}, "a wait gave up"),
    ],
)
def test_faults_of_checks_are_told_with_where_they_are(fault: dict[str, Any], words: str) -> None:
    assert not faults_of(found([result(2, 80, 50, 40)]))
    wrong = result(2, 80, 50, 40) | {"check": checked() | fault}
    assert faults_of(found([wrong])) == [f"2 rows: {words}"]
    assert faults_of(found([]) | {"mixed": checked() | fault}) == [f"mixed requests: {words}"]


def test_faults_of_widths() -> None:
    spoiled = {"rows_that_differ_alone": [3], "chain_differs": ["mono_pdl"], "finite": False}
    assert faults_of(found([result(2, 80, 50, 40) | spoiled])) == [
        "2 rows: row 3 in other company",
        "2 rows: layers in a chain: mono_pdl",
        "2 rows: a stream that is not finite",
    ]


def test_a_setting_is_read_back() -> None:
    assert setting_of(found([])) == Setting()


def test_a_spread_leaves_out_the_least_and_the_greatest() -> None:
    assert spread([9, 1, 2, 3, 100]) == {"us": 3, "low": 2, "high": 9}


def test_a_ratio_is_that_of_each_round() -> None:
    slowed = [1.0, 1.1, 1.2, 1.3, 9.0]
    rounds = {"unfused": [60 * s for s in slowed], "mono": [40 * s for s in slowed]}
    rounds |= {"unfused_pdl": [50.0] * 5, "mono_pdl": [40.0, 50.0, 50.0, 50.0, 100.0]}
    made = ratios(rounds)
    assert made["unfused/mono"] == pytest.approx({"ratio": 1.5, "low": 1.5, "high": 1.5})
    assert made["pdl/pdl"] == pytest.approx({"ratio": 1.0, "low": 1.0, "high": 1.0})
