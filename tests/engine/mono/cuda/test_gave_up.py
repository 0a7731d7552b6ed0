"""The record of a wait that gave up, without a back end that keeps one."""

from __future__ import annotations

import re

from infx.engine.mono.cuda.gave_up import WAITS, GiveUpRecord
from infx.engine.mono.cuda.source import KERNELS


def test_waits_are_those_of_the_kernels() -> None:
    text = (KERNELS / "sync.cuh").read_text()
    found = re.search(r"enum Wait \{ (AFTER_QKV) = 1, (.*?) \};", text)
    assert found
    assert [found[1], *found[2].split(", ")] == list(WAITS)


def test_a_record_of_nothing_says_nothing() -> None:
    record = GiveUpRecord("cpu")
    record.watch()
    record.check()
    record.settle()
