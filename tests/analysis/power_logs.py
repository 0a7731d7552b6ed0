"""Logs of power in the two tools' own words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

START = 1796038800.0
"""2026-11-30 11:40:00 UTC."""

Tick = tuple[float, int, float | str]
"""Seconds after `START`, device, watts (or what the tool writes instead)."""

STATED = "# power log: tool={} gpus=0 utc-offset-s={}\n"
NVIDIA = "timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks_event_reasons.active\n"
AMD = (
    "timestamp,gpu,socket_power,gfx_voltage,soc_voltage,mem_voltage,throttle_status,"
    "power_management\n"
)
WATCHING = "'CTRL' + 'C' to stop watching output:\n"


def nvidia(ticks: Iterable[Tick], offset_s: int | None = 0, slowed: str = "0x0") -> str:
    """As nvidia-smi 580 writes it: local time to the millisecond, units, a space after commas."""
    zone = timezone(timedelta(seconds=offset_s or 0))
    lines = []
    for after_s, gpu, watts in ticks:
        at = datetime.fromtimestamp(START + after_s, zone).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        power = f"{watts:.2f} W" if isinstance(watts, float) else watts
        lines.append(f"{at}, {gpu}, {power}, 1980 MHz, {slowed}\n")
    stated = "" if offset_s is None else STATED.format("nvidia-smi", offset_s)
    return stated + NVIDIA + "".join(lines)


def amd(ticks: Iterable[Tick]) -> str:
    """As amd-smi writes it when it watches: whole seconds, the lines of Python's csv module, before
    every tick an empty one and the header again."""
    lines = [WATCHING]
    for after_s, gpu, watts in ticks:
        power = f"{watts:g}" if isinstance(watts, float) else watts
        row = f"{START + after_s:.0f},{gpu},{power},N/A,N/A,N/A,N/A,ENABLED\n"
        lines += ["\n", AMD, row] if gpu == 0 else [row]
    return "".join(lines).replace("\n", "\r\n")


def steady(seconds: int, watts: float = 500.0, gpus: int = 1, first: int = -1) -> list[Tick]:
    """A sample a second of each device."""
    return [(float(t), gpu, watts) for t in range(first, seconds) for gpu in range(gpus)]
