"""Machines that cannot run the kernels are refused, with a code and what is wrong."""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace

import pytest

from infx.domain.errors import InfraError
from infx.engine.mono.cuda import arms, packing
from infx.engine.mono.cuda.device import DeviceFacts, device_facts, refuse_device
from infx.engine.mono.cuda.source import KERNELS
from infx.engine.mono.shape import GPU_GRAIN

H200 = DeviceFacts("NVIDIA H200", (9, 0), 132, 232_448, 150_000_000_000)


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def test_an_h200_serves() -> None:
    assert refuse_device(H200, 60_000_000_000) is None


@pytest.mark.parametrize(
    ("facts", "code", "said"),
    [
        (replace(H200, name="A100", capability=(8, 0)), "mono-device", "A100.*8.0.*9.0"),
        (replace(H200, name="B200", capability=(10, 0)), "mono-device", "B200.*10.0"),
        (replace(H200, sms=114), "mono-residency", "114 SMs.*132 blocks"),
        (replace(H200, shared_bytes=166_912), "mono-residency", "166912 bytes"),
        (replace(H200, memory_bytes=24_000_000_000), "mono-residency", "24 GB.*60"),
        (InfraError("mono-bind-failed", "no CUDA driver: x"), "mono-device", "no CUDA driver"),
    ],
)
def test_a_machine_that_cannot_is_refused(
    facts: DeviceFacts | InfraError, code: str, said: str
) -> None:
    refusal = refuse_device(facts, 60_000_000_000)
    assert refusal is not None
    assert refusal.code == code
    assert re.search(said, refusal.sentence)


@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver")
def test_a_machine_without_a_driver_says_so() -> None:
    with pytest.raises(InfraError, match="no CUDA driver"):
        device_facts()


def test_python_and_kernels_agree_on_shared_memory() -> None:
    def number(file: str, name: str) -> int:
        text = (KERNELS / file).read_text()
        found = re.search(rf"\b{name}(?: =)? (\d+(?: \* \d+)?)", text)
        assert found, name
        first, _, second = found[1].partition(" * ")
        return int(first) * int(second or 1)

    assert number("stream.cuh", "SLOT_BYTES") == packing.SLOT_BYTES
    assert number("stream.cuh", "RING_SLOTS") == arms.RING_SLOTS
    assert number("shape.cuh", "STAGE_BYTES") == arms.STAGE_BYTES
    assert number("shape.cuh", "BLOCKS") == arms.BLOCKS
    assert number("attn_full.cuh", "GROUP") == GPU_GRAIN.merge_group
