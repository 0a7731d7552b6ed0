"""A stand-in for nvidia-smi and amd-smi: writes what they write, or breaks as told.

``smi_stub.py FAULT TOOL ARGUMENTS…``; a fault is one of none, never-prints, no-devices, not-a-row,
gap, dies, ignores-term.
"""

from __future__ import annotations

import os
import signal
import sys
import time

NVIDIA = "timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks_event_reasons.active"
AMD = "timestamp,gpu,socket_power,gfx_voltage"
TICK_S = 0.2
"""Faster than asked, so that tests are short."""


def gpus(tool: str, words: list[str]) -> list[str]:
    if tool == "nvidia-smi":
        return words[words.index("-i") + 1].split(",")
    rest = words[words.index("-g") + 1 :]
    return rest[: rest.index("-w")]


def row(tool: str, gpu: str) -> str:
    now = time.time()
    if tool == "amd-smi":
        return f"{int(now)},{gpu},250,N/A"
    at = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(now))
    return f"{at}.{int(now * 1000) % 1000:03}, {gpu}, 250.00 W, 1980 MHz, 0x0000000000000000"


def main(fault: str, tool: str, words: list[str]) -> None:
    if fault == "never-prints":
        time.sleep(600)
    if fault == "no-devices":
        print("No devices were found")
        raise SystemExit(6)
    if fault == "ignores-term":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    listed = gpus(tool, words)
    print(NVIDIA if tool == "nvidia-smi" else "'CTRL' + 'C' to stop watching output:")
    for tick in range(10**9):
        if tool == "amd-smi":
            print(AMD)
        print("\n".join(row(tool, gpu) for gpu in listed))
        if fault == "not-a-row":
            print("Unable to determine the device handle: Unknown Error")
        if fault == "dies" and tick == 3:
            print("2026/11/30 11:4", end="")
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if tool == "nvidia-smi":  # amd-smi is a Python program, and buffers as one
            sys.stdout.flush()
        time.sleep(4.0 if fault == "gap" and tick == 3 else TICK_S)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
