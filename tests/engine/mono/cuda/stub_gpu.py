"""A GPU that is described, not there: stand-ins for NVIDIA's libraries, asked through ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infx.engine.mono.cuda import driver, nvml

UUID = bytes(range(16))
_CUDA = """
#include <stddef.h>
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int* device, int number) { *device = number; return number ? 101 : 0; }
int cuGetErrorString(int error, const char** text) { *text = "invalid device ordinal"; return 0; }
int cuDeviceGetName(char* name, int size, int device) {
    strncpy(name, "NVIDIA H200", size);
    return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = 150000000000ull; return 0; }
int cuDeviceGetAttribute(int* value, int which, int device) {
    *value = which == 16 ? %(sms)d : which == 75 ? 9 : which == 76 ? 0 : which == 97 ? 232448 : -1;
    return 0;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
    for (int i = 0; i < 16; i++) uuid[i] = i;
    return 0;
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
    *flags = 0, *active = %(context)d;
    return 0;
}
"""
# As nvml.h declares them, of release 11 and later.
_NVML = """
#include <string.h>
#include <unistd.h>
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } Process;
int nvmlInit_v2(void) { return %(broken)d; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
    *handle = (void*)7;
    return strcmp(uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f") ? 6 : 0;
}
int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
    memory->total = 150000000000ull, memory->free = %(free)dull, memory->used = 0;
    return handle == (void*)7 ? 0 : 2;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, Process* found) {
    static const int pids[] = {%(pids)s 0};
    unsigned there = sizeof(pids) / sizeof(pids[0]) - 1;
    if (*count < there) return 7;
    *count = there;
    for (unsigned i = 0; i < there; i++) {
        found[i].pid = pids[i] ? pids[i] : getpid();
        found[i].used = 1, found[i].instance = found[i].compute = ~0u;
    }
    return 0;
}
"""


@dataclass(frozen=True, slots=True)
class Stub:
    """What the libraries say; a pid of 0 is this process's own."""

    sms: int = 132
    context: bool = False
    free: int = 140_000_000_000
    pids: tuple[int, ...] = ()
    broken: bool = False

    def install(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        """Let the driver's and NVML's calls go to these."""
        numbers = {
            "sms": self.sms,
            "context": int(self.context),
            "free": self.free,
            "pids": "".join(f"{pid}, " for pid in self.pids),
            "broken": int(self.broken),
        }
        cuda, own = (_library(folder, n, t % numbers) for n, t in (("cuda", _CUDA), ("ml", _NVML)))
        patch.setattr(driver, "_library", lambda: ctypes.CDLL(str(cuda)))
        patch.setattr(nvml, "_LIBRARY", str(own))


def _library(folder: Path, name: str, text: str) -> Path:
    source, made = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text)
    command: list[Any] = ["gcc", "-shared", "-fPIC", "-w", "-o", made, source]
    subprocess.run(command, check=True)
    return made


def has_driver() -> bool:
    """Return whether this machine has NVIDIA's driver."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
