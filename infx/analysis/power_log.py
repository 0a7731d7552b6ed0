"""A log of accelerators' power: what nvidia-smi and amd-smi print as CSV, sample by sample.

    nvidia-smi --query-gpu=timestamp,index,power.draw,… --format=csv -l 1
        timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks_event_reasons.active
        2026/11/30 11:40:53.041, 0, 80.09 W, 345 MHz, 0x0000000000000001
    amd-smi metric -p -w 1 --csv
        timestamp,gpu,socket_power,gfx_voltage,…      again before every tick
        1796038853,0,238,N/A,…                        whole seconds of the epoch

nvidia-smi's times are the local ones of the machine, without a zone: they mean nothing unless the
log says how far they are from UTC. The job's own logs say it in a line before the header::

    # power log: tool=nvidia-smi gpus=0,1 utc-offset-s=0
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

__all__ = ["OFFSET", "PowerLog", "Sample", "read_power_log"]

OFFSET = "utc-offset-s"

_STATED = re.compile(rf"^#.*\b{OFFSET}=(-?\d{{1,9}})\b")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?: ?W)?")
_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?")
_TOOLS = {"power.draw": ("nvidia-smi", "index"), "socket_power": ("amd-smi", "gpu")}
"""Of each tool the columns of power and of the device."""

_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")


@dataclass(frozen=True, slots=True)
class Sample:
    """The power of one accelerator at ``at_s`` (seconds since the epoch, UTC), ``watts`` None where
    the tool had no number. ``slowed`` holds NVML's bits for why its clocks are low."""

    at_s: float
    gpu: str
    watts: float | None
    line: int
    slowed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLog:
    """What a log holds. ``timeless`` counts samples in local time of an unknown zone, ``first`` is
    the first line that is neither sample nor header: where there is no sample, the reason."""

    source: str
    samples: tuple[Sample, ...]
    timeless: int = 0
    first: str = ""


@dataclass(slots=True)
class _Columns:
    """Where a row has what, and the zone that its naive times are in."""

    tool: str
    power: int
    gpu: int
    time: int
    slowed: int | None
    count: int
    zone: timezone | None


def read_power_log(text: str) -> PowerLog:
    """Return the samples of ``text``, in its order.

    A line that is no row of the last header is no sample: what it stands in the place of shows as a
    gap. So is a last line without its end, at which the tool was killed.
    """
    samples, timeless, first, source = [], 0, "", ""
    columns: _Columns | None = None
    zone: timezone | None = None
    for number, cells in _lines(text):
        if stated := _STATED.match(cells[0]):
            zone = _zone(int(stated[1]))
        elif header := _columns(cells, zone):
            columns, source = header, header.tool
        elif columns and len(cells) == columns.count and _looks_timed(cells[columns.time]):
            sample = _sample(cells, columns, number)
            samples += [sample] if sample else []
            timeless += sample is None
        else:
            first = first or ", ".join(cells)
    return PowerLog(source=source, samples=tuple(samples), timeless=timeless, first=first)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    whole, _, _ = text.rpartition("\n")
    for number, line in enumerate(whole.split("\n"), 1):
        if line.strip():
            yield number, [line] if line[0] == "#" else [cell.strip() for cell in line.split(",")]


def _zone(offset_s: int) -> timezone | None:
    """Return the zone that far from UTC; None where there can be none: a day or more."""
    return timezone(timedelta(seconds=offset_s)) if abs(offset_s) < 86_400 else None


def _columns(cells: Sequence[str], zone: timezone | None) -> _Columns | None:
    names = [cell.partition(" [")[0] for cell in cells]
    for power, (tool, gpu) in _TOOLS.items():
        if {power, gpu, "timestamp"} <= set(names):
            reasons = next((names.index(name) for name in _REASONS if name in names), None)
            return _Columns(
                tool=tool,
                power=names.index(power),
                gpu=names.index(gpu),
                time=names.index("timestamp"),
                slowed=reasons,
                count=len(names),
                zone=zone,
            )
    return None


def _sample(cells: Sequence[str], columns: _Columns, number: int) -> Sample | None:
    at_s = _time(cells[columns.time], columns.zone)
    if at_s is None:
        return None
    watts, slowed = cells[columns.power], cells[columns.slowed] if columns.slowed else ""
    return Sample(at_s, cells[columns.gpu], _watts(watts), number, _bits(slowed))


def _looks_timed(cell: str) -> bool:
    return bool(_EPOCH.fullmatch(cell)) or _moment(cell) is not None


def _time(cell: str, zone: timezone | None) -> float | None:
    """Return seconds since the epoch; None for a local time whose zone is not known."""
    if _EPOCH.fullmatch(cell):
        return float(cell)
    moment = _moment(cell)
    if moment and moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return moment.timestamp() if moment and moment.tzinfo else None


def _moment(cell: str) -> datetime | None:
    try:
        return datetime.fromisoformat(cell.replace("/", "-", 2))
    except ValueError:
        return None


def _watts(cell: str) -> float | None:
    found = _NUMBER.fullmatch(cell)
    watts = float(found[1]) if found else math.inf
    return watts if math.isfinite(watts) else None


def _bits(cell: str) -> int:
    return int(cell, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", cell) else 0
