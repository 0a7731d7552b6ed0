"""The structure that Python packs is the one that kernels read."""

from __future__ import annotations

import ctypes
import re

import pytest

from infx.engine.mono.cuda.arguments import FIELDS, NUMBERS, LayerArgs, layer_args
from infx.engine.mono.cuda.source import KERNELS

FIELD = re.compile(r"^    (?:const )?(long long|\w+)(\*?) (\w+);", re.MULTILINE)


def test_fields_stand_in_the_header_in_this_order() -> None:
    found = FIELD.findall((KERNELS / "args.cuh").read_text())
    assert [name for _, _, name in found] == list(FIELDS)
    assert {name for _, pointer, name in found if not pointer} == NUMBERS


def test_an_address_lies_where_the_compiler_looks_for_it() -> None:
    args = layer_args({"batch_ids": 0x1000, "page_stride": 64, FIELDS[-1]: 0x2000})
    raw = bytes(args)
    assert int.from_bytes(raw[:8], "little") == 0x1000
    assert int.from_bytes(raw[-8:], "little") == 0x2000
    assert LayerArgs.page_stride.offset % 8 == 0
    assert ctypes.sizeof(LayerArgs) == 8 * len(FIELDS)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(KeyError, match="batch_id"):
        layer_args({"batch_id": 1})
