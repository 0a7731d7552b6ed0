"""Machines that cannot run the kernels are refused, with a code and what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.errors import InfraError
from infx.engine.mono.cuda import arms, device, nvml, packing, scratch
from infx.engine.mono.cuda.device import DeviceFacts, cuda_refusal, device_facts, refuse_device
from infx.engine.mono.cuda.driver import call
from infx.engine.mono.cuda.source import KERNELS
from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import GPU_GRAIN
from tests.engine.mono.cuda.stub_gpu import UUID, Stub, has_driver

H200 = DeviceFacts("NVIDIA H200", (9, 0), 132, 232_448, 150_000_000_000)


def test_an_h200_serves() -> None:
    assert refuse_device(H200, 60_000_000_000) is None
    assert refuse_device(replace(H200, free_bytes=60_000_000_000, others=0), 60_000_000_000) is None


@pytest.mark.parametrize(
    ("facts", "code", "said"),
    [
        (replace(H200, name="A100", capability=(8, 0)), "mono-device", "A100.*8.0.*9.0"),
        (replace(H200, name="B200", capability=(10, 0)), "mono-device", "B200.*10.0"),
        (replace(H200, sms=114), "mono-residency", "114 SMs.*132 blocks"),
        (replace(H200, shared_bytes=166_912), "mono-residency", "166912 bytes"),
        (replace(H200, memory_bytes=24_000_000_000), "mono-residency", "24.0 GB.*60.0 more"),
        (replace(H200, free_bytes=59_900_000_000), "mono-residency", "59.9 GB.*150.0.*60.0"),
        (replace(H200, others=2), "mono-residency", "2 other processes.*132 blocks"),
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


@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver")
def test_a_machine_without_a_driver_is_refused() -> None:
    refusal = cuda_refusal()
    assert refusal is not None
    assert refusal.code == "mono-device"


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Return what installs a `Stub`; torch and compilers are as a GPU's machine has them."""
    monkeypatch.setattr(device, "_refuse_torch", lambda: None)
    monkeypatch.setattr(device, "refuse_compiler", lambda: None)
    return lambda stub: stub.install(tmp_path, monkeypatch)


def test_facts_are_the_drivers_and_nvmls(gpu: Callable[[Stub], None]) -> None:
    gpu(Stub(free=99_000_000_000, pids=(0, 4242)))
    assert device_facts() == replace(H200, free_bytes=99_000_000_000, others=1)
    with pytest.raises(InfraError, match="cuDeviceGet: CUDA error 101, invalid device"):
        device_facts(1)


@pytest.mark.parametrize(
    ("stub", "code"),
    [
        (Stub(), ""),
        (Stub(context=True, pids=(0,)), ""),
        (Stub(context=True, pids=(4242,)), ""),  # this process, by the number it has outside
        (Stub(broken=True), ""),
        (Stub(sms=114), "mono-residency"),
        (Stub(free=3_000_000_000), "mono-residency"),
        (Stub(pids=(4242,)), "mono-residency"),
        (Stub(context=True, pids=(0, 4242)), "mono-residency"),
    ],
)
def test_a_gpu_is_judged(gpu: Callable[[Stub], None], stub: Stub, code: str) -> None:
    gpu(stub)
    refusal = cuda_refusal(4_000_000_000)
    assert (refusal.code if refusal else "") == code


def test_a_driver_that_lacks_a_call_is_too_old(gpu: Callable[[Stub], None]) -> None:
    gpu(Stub())
    with pytest.raises(InfraError, match="no cuLaunchKernelEx: install a newer one") as raised:
        call("cuLaunchKernelEx")
    assert raised.value.code == "mono-bind-failed"


@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver")
def test_a_torch_that_finds_no_gpu_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Stub().install(tmp_path, monkeypatch)
    refusal = cuda_refusal()
    assert refusal is not None
    assert refusal.code == "mono-device"
    assert "finds no CUDA device: install a build of torch" in refusal.sentence


def test_torch_and_compilers_are_judged_last(
    gpu: Callable[[Stub], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu(Stub())
    missing = Refusal("mono-no-compiler", "none: install one")
    monkeypatch.setattr(device, "refuse_compiler", lambda: missing)
    assert cuda_refusal() == missing
    assert cuda_refusal(compiled=True) is None


def test_what_nvml_cannot_tell_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_LIBRARY", "libnothing.so.1")
    assert nvml.look(UUID) == nvml.Seen(None, None)
    Stub(pids=(1, 4242)).install(tmp_path, monkeypatch)
    assert nvml.look(bytes(16)) == nvml.Seen(None, None)
    assert nvml.look(UUID) == nvml.Seen(140_000_000_000, (1, 4242))


def test_a_crowd_on_the_gpu_is_counted(gpu: Callable[[Stub], None]) -> None:
    gpu(Stub(pids=tuple(range(1, 201))))
    assert device_facts().others == 200


@pytest.mark.parametrize(
    ("processes", "has_context", "wanted"),
    [
        (None, True, None),
        ((), False, 0),
        ((), True, None),
        ((8,), False, 1),
        ((7,), True, 0),
        ((7, 8, 9), True, 2),
        ((8, 9), True, 1),
    ],
)
def test_others_are_counted(
    processes: tuple[int, ...] | None, has_context: bool, wanted: int | None
) -> None:
    assert nvml.others(processes, 7, has_context) == wanted


def test_python_and_kernels_agree_on_their_numbers() -> None:
    def number(file: str, name: str) -> int:
        text = (KERNELS / file).read_text()
        found = re.search(rf"\b{name}(?: =)? (\d+(?: \* \d+)?)", text)
        assert found, name
        first, _, second = found[1].partition(" * ")
        return int(first) * int(second or 1)

    assert number("stream.cuh", "SLOT_BYTES") == packing.SLOT_BYTES
    assert number("stream.cuh", "RING_SLOTS") == arms.RING_SLOTS
    assert number("stream.cuh", "PLACES_BYTES") == arms.PLACES_BYTES
    assert number("shape.cuh", "STAGE_BYTES") == arms.STAGE_BYTES
    assert number("shape.cuh", "BLOCKS") == arms.BLOCKS
    assert number("common.cuh", "MARKS") == scratch.MARKS
    assert number("shape.cuh", "REACH_PAGES") == scratch.SHAPE.pages
    assert number("attn_full.cuh", "GROUP") == GPU_GRAIN.merge_group
    assert number("output.cuh", "FOLDED_ROWS") == GPU_GRAIN.folded_rows
