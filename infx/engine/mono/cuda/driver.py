"""The few calls of the CUDA driver that a launch needs, through ctypes: no package but the driver.

A context must be current in the calling thread (torch makes one at its first CUDA tensor).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from infx.domain.errors import InfraError

__all__ = ["Kernel", "Module", "call"]

_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_COOPERATIVE, _DEPENDENT = 2, 6  # CU_LAUNCH_ATTRIBUTE_...: cooperative, programmatic serialization


class _Attribute(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_uint),
        ("pad", ctypes.c_uint),
        ("value", ctypes.c_int),
        ("rest", ctypes.c_byte * 60),
    )


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise InfraError("mono-bind-failed", f"no CUDA driver: {error}") from error


def call(name: str, *arguments: object) -> None:
    """Call a function of the driver. Raises InfraError (``mono-bind-failed``) with its words."""
    function = getattr(_library(), name, None)
    if function is None:
        raise InfraError("mono-bind-failed", f"the CUDA driver has no {name}: install a newer one")
    if status := function(*arguments):
        text = ctypes.c_char_p()
        _library().cuGetErrorString(status, ctypes.byref(text))
        words = (text.value or b"?").decode()
        raise InfraError("mono-bind-failed", f"{name}: CUDA error {status}, {words}")


class Kernel:
    """A function of a module and its launch."""

    def __init__(self, handle: int, shared_bytes: int) -> None:
        self._handle, self._shared_bytes = ctypes.c_void_p(handle), shared_bytes
        if shared_bytes > 48 * 1024:
            call("cuFuncSetAttribute", self._handle, _SHARED_BYTES, shared_bytes)

    def launch(
        self,
        stream: int,
        blocks: int,
        threads: int,
        arguments: Sequence[ctypes.Structure | ctypes.Array[Any] | ctypes._SimpleCData[Any]],
        *,
        cooperative: bool = False,
        dependent: bool = False,
    ) -> None:
        """Launch on ``stream``; ``dependent``: before the kernel before it has ended (PDL).

        ``cooperative`` makes a grid that cannot be resident at once an error instead of a hang.
        """
        chosen = [_COOPERATIVE] * cooperative + [_DEPENDENT] * dependent
        attributes = (_Attribute * 2)(*(_Attribute(id=name, value=1) for name in chosen))
        config = _Config(
            grid=(blocks, 1, 1),
            block=(threads, 1, 1),
            shared_bytes=self._shared_bytes,
            stream=stream,
            attributes=attributes,
            count=len(chosen),
        )
        addresses = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        call("cuLaunchKernelEx", ctypes.byref(config), self._handle, addresses, None)


class Module:
    """Machine code on the current device."""

    def __init__(self, cubin: bytes) -> None:
        self._handle = ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(self._handle), cubin)

    def kernel(self, name: str, shared_bytes: int) -> Kernel:
        """Return the function ``name``, which gets ``shared_bytes`` of dynamic shared memory."""
        handle = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(handle), self._handle, name.encode())
        return Kernel(handle.value or 0, shared_bytes)
