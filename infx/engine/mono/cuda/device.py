"""Whether a GPU could run the kernels, by what its driver says: no compiler is needed to ask.

Asked by tests alone as long as no engine serves with the kernels.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from infx.domain.errors import InfraError
from infx.engine.mono.cuda.arms import BLOCKS, SHARED_BYTES
from infx.engine.mono.cuda.driver import call
from infx.engine.mono.refusal import Refusal

__all__ = ["CAPABILITY", "DeviceFacts", "device_facts", "refuse_device"]

CAPABILITY = (9, 0)  # Machine code of sm_90a runs on no other.
# CU_DEVICE_ATTRIBUTE_...
_SMS, _MAJOR, _MINOR, _SHARED_BYTES = 16, 75, 76, 97


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the driver says of a GPU; ``shared_bytes`` is the most that one block may ask for."""

    name: str
    capability: tuple[int, int]
    sms: int
    shared_bytes: int
    memory_bytes: int


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

    capability = (attribute(_MAJOR), attribute(_MINOR))
    sms, shared = attribute(_SMS), attribute(_SHARED_BYTES)
    return DeviceFacts(name.value.decode(), capability, sms, shared, memory.value)


def refuse_device(facts: DeviceFacts | InfraError, needed_bytes: int) -> Refusal | None:
    """Return why the GPU of ``facts`` (or none, the error says why) cannot serve, or None.

    ``needed_bytes`` are weights, caches and scratch together. A persistent kernel whose blocks are
    not all resident would wait for ever, so too few SMs are refused, not tried.
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
    if facts.sms < BLOCKS or facts.shared_bytes < SHARED_BYTES:
        return Refusal(
            "mono-residency",
            f"{facts.name} has {facts.sms} SMs of {facts.shared_bytes} bytes of shared memory:"
            f" mono's {BLOCKS} blocks of {SHARED_BYTES} must run at once; set mono: off",
        )
    if facts.memory_bytes < needed_bytes:
        return Refusal(
            "mono-residency",
            f"{facts.name} has {facts.memory_bytes / 1e9:.0f} GB of memory, weights and caches"
            f" take {needed_bytes / 1e9:.0f}: use more ranks, or a shorter context",
        )
    return None
