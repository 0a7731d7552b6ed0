"""Whether a GPU can run the kernels: its driver is asked, NVML, torch and who compiles.

Nothing here makes a context on the GPU, so it may be asked before anything is loaded.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from infx.domain.errors import InfraError
from infx.engine.mono.cuda.arms import BLOCKS, SHARED_BYTES
from infx.engine.mono.cuda.compiling import refuse_compiler
from infx.engine.mono.cuda.driver import call
from infx.engine.mono.cuda.nvml import look, others
from infx.engine.mono.refusal import Refusal

__all__ = ["CAPABILITY", "DeviceFacts", "cuda_refusal", "device_facts", "refuse_device"]

CAPABILITY = (9, 0)  # Machine code of sm_90a runs on no other.
# CU_DEVICE_ATTRIBUTE_...
_SMS, _MAJOR, _MINOR, _SHARED_BYTES = 16, 75, 76, 97


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What driver and NVML say of a GPU; ``shared_bytes`` is the most that one block may ask for.

    ``free_bytes`` and ``others`` (processes beside this one that compute on it) may be unknown.
    """

    name: str
    capability: tuple[int, int]
    sms: int
    shared_bytes: int
    memory_bytes: int
    free_bytes: int | None = None
    others: int | None = None


def cuda_refusal(
    needed_bytes: int = 0, number: int = 0, *, compiled: bool = False
) -> Refusal | None:
    """Return why GPU ``number`` of this machine cannot run the kernels now, or None.

    ``needed_bytes`` are those still to be taken: of weights, caches and scratch not yet made.
    ``compiled``: no build is missing on disk, so a machine without a compiler will do.
    """
    try:
        facts: DeviceFacts | InfraError = device_facts(number)
    except InfraError as error:
        facts = error
    refusal = refuse_device(facts, needed_bytes) or _refuse_torch()
    return refusal or (None if compiled else refuse_compiler())


def device_facts(number: int = 0) -> DeviceFacts:
    """Return the facts of GPU ``number``. Raises InfraError (``mono-bind-failed``) without one."""
    call("cuInit", 0)
    device, name, memory = ctypes.c_int(), ctypes.create_string_buffer(100), ctypes.c_size_t()
    call("cuDeviceGet", ctypes.byref(device), number)
    call("cuDeviceGetName", name, len(name), device)
    call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)

    def attribute(which: int) -> int:
        value = ctypes.c_int()
        call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
        return value.value

    seen = look(_uuid(device))
    return DeviceFacts(
        name=name.value.decode(),
        capability=(attribute(_MAJOR), attribute(_MINOR)),
        sms=attribute(_SMS),
        shared_bytes=attribute(_SHARED_BYTES),
        memory_bytes=memory.value,
        free_bytes=seen.free_bytes,
        others=others(seen.processes, os.getpid(), _has_context(device)),
    )


def _uuid(device: ctypes.c_int) -> bytes:
    found = (ctypes.c_ubyte * 16)()
    call("cuDeviceGetUuid_v2", found, device)
    return bytes(found)


def _has_context(device: ctypes.c_int) -> bool:
    """Return whether this process has the context that torch shares with others in it."""
    flags, active = ctypes.c_uint(), ctypes.c_int()
    call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
    return bool(active.value)


def refuse_device(facts: DeviceFacts | InfraError, needed_bytes: int) -> Refusal | None:
    """Return why the GPU of ``facts`` (or none, the error says why) cannot serve, or None.

    A persistent kernel whose blocks are not all resident would wait for ever, so too few SMs and
    other work on the GPU are refused, not tried. What is unknown is let pass: waits are bounded.
    """
    if isinstance(facts, InfraError):
        return Refusal("mono-device", f"no CUDA device: {facts}; set mono: off, or device: cpu")
    if facts.capability != CAPABILITY:
        own, wanted = (".".join(map(str, c)) for c in (facts.capability, CAPABILITY))
        return Refusal(
            "mono-device",
            f"{facts.name} has compute capability {own}: the kernels are built for {wanted}"
            " (H100, H200); set mono: off",
        )
    return _refuse_residency(facts) or _refuse_memory(facts, needed_bytes)


def _refuse_residency(facts: DeviceFacts) -> Refusal | None:
    if facts.sms < BLOCKS or facts.shared_bytes < SHARED_BYTES:
        return Refusal(
            "mono-residency",
            f"{facts.name} has {facts.sms} SMs of {facts.shared_bytes} bytes of shared memory:"
            f" mono's {BLOCKS} blocks of {SHARED_BYTES} must run at once; set mono: off",
        )
    if facts.others:
        return Refusal(
            "mono-residency",
            f"{facts.others} other processes compute on {facts.name}: mono's {BLOCKS} blocks must"
            " run at once; end them, take another GPU, or set mono: off",
        )
    return None


def _refuse_memory(facts: DeviceFacts, needed_bytes: int) -> Refusal | None:
    free = facts.memory_bytes if facts.free_bytes is None else facts.free_bytes
    if free >= needed_bytes:
        return None
    return Refusal(
        "mono-residency",
        f"{facts.name} has {free / 1e9:.1f} GB of memory free of {facts.memory_bytes / 1e9:.1f}:"
        f" weights, caches and scratch take {needed_bytes / 1e9:.1f} more; use fewer layers, more"
        " ranks, or a shorter context",
    )


def _refuse_torch() -> Refusal | None:
    import torch

    if torch.cuda.is_available():
        return None
    return Refusal(
        "mono-device",
        f"torch {torch.__version__} finds no CUDA device: install a build of torch with CUDA for"
        " this driver, or set mono: off",
    )
