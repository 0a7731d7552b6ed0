"""Bytes and floor of a layer, against the table that they were agreed on with."""

from __future__ import annotations

import pytest

from infx.engine.mono.cuda import floor
from infx.engine.mono.cuda.setting import Setting

ASSUMED_TB_S = 4.3


def chosen_blocks(setting: Setting, width: int) -> int:
    """Return how many blocks a step's rows choose where no two rows choose the same one."""
    visible = -(-setting.context // floor.SHAPE.block)
    return (width - setting.pads) * min(floor.SHAPE.topk_blocks, visible)


def floor_us(setting: Setting, width: int) -> float:
    blocks = chosen_blocks(setting, width)
    read = floor.layer_bytes(setting, width, floor.expected_union(width), blocks)
    return read / ASSUMED_TB_S / 1e6


@pytest.mark.parametrize(
    ("rows", "union", "megabytes", "us"),
    [
        (1, 4.0, 69, 16.1),
        (2, 7.9, 100, 23.3),
        (4, 15.3, 159, 37.0),
        (8, 28.7, 267, 62.0),
        (16, 51.0, 448, 104.1),
    ],
)
def test_8k_in_fp8_with_a_row_a_request(
    rows: int, union: float, megabytes: float, us: float
) -> None:
    # The table's last digit is that of its rounded parts.
    assert floor.expected_union(rows) == pytest.approx(union, abs=0.05)
    read = floor.layer_bytes(Setting(), rows, union, chosen_blocks(Setting(), rows))
    assert read / 1e6 == pytest.approx(megabytes, rel=0.005)
    assert floor_us(Setting(), rows) == pytest.approx(us, rel=0.005)


@pytest.mark.parametrize(
    ("kind", "us"),
    [
        ("fp8", (18.8, 25.8, 39.0, 66.0, 112.0)),
        ("mxfp4", (17.4, 24.2, 37.3, 62.8, 105.6)),
    ],
)
def test_100k_with_four_rows_a_request(kind: str, us: tuple[float, ...]) -> None:
    setting = Setting(context=100_000, kv=kind, index=kind, rows_per_request=4)
    found = [floor_us(setting, width) for width in (1, 2, 4, 8, 16)]
    assert found == pytest.approx(us, rel=0.005)


def test_a_block_that_two_rows_chose_is_read_once() -> None:
    setting = Setting(context=8192, rows_per_request=4)
    twice = floor.layer_bytes(setting, 4, 15, chosen_blocks(setting, 4))
    once = floor.layer_bytes(setting, 4, 15, 16)
    # 48 blocks of 128 keys and values, fp8 with a float32 scale.
    assert twice - once == 48 * 128 * 2 * 132


def test_what_lies_behind_a_requests_last_token_is_not_read() -> None:
    whole = floor.layer_bytes(Setting(context=256), 1, 4, 2)
    less = floor.layer_bytes(Setting(context=200), 1, 4, 2)
    assert whole - less == 56 * (2 * 132 + 128)


def test_pads_read_nothing() -> None:
    padded, nine = Setting(pads=7), Setting()
    assert chosen_blocks(padded, 16) == chosen_blocks(nine, 9)
    blocks = chosen_blocks(nine, 9)
    assert floor.layer_bytes(padded, 16, 30, blocks) == floor.layer_bytes(nine, 9, 30, blocks)


def test_bars_are_those_of_one_setting() -> None:
    assert floor.targets_us(Setting(), 16) == (129, 120)
    assert floor.targets_us(Setting(), 3) is None
    for other in (Setting(context=100_000), Setting(kv="mxfp4"), Setting(pads=1)):
        assert floor.targets_us(other, 16) is None


def test_57_layers_fit_an_h200_with_every_cache_of_8k_and_of_fp8_at_100k() -> None:
    h200 = 139 << 30
    for setting in (Setting(kv="bf16", index="bf16"), Setting(context=100_000)):
        assert 57e9 < floor.held_bytes(setting, 57) < h200
