"""What the accelerators of a point drew, from the log of their power.

Each accelerator's power is integrated over the window by the trapezoid rule, linear between samples
and at the window's edges. A log that does not cover the window gives no figure, only the reason: it
never makes the point invalid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from infx.analysis.power_log import OFFSET, PowerLog, Sample, read_power_log
from infx.domain.findings import Finding, Where
from infx.domain.record import Energy, Measurement

__all__ = ["energy_of", "metered"]

LONGEST_GAP_S = 3.0
"""Between two samples of an accelerator, at one a second: what lies between is not known."""

_SLOWED = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""NVML's reasons for low clocks that a sound machine does not have. Its power cap (0x04) is none:
accelerators under load are meant to reach it."""

_SLOWED_SHARE = 0.05
"""One sample of twenty: less is a spike."""

Window = tuple[float, float]
"""From and to, in seconds since the epoch, UTC."""

_Curves = Mapping[str, Sequence[Sample]]
"""By accelerator its samples, from the last before the window to the first after it."""


@dataclass(frozen=True, slots=True)
class _Fault:
    code: str
    sentence: str


def energy_of(log: str, window: Window, gpus: int) -> Energy:
    """Return what ``gpus`` accelerators drew over ``window``, from the text of a log; without
    figures, and with the codes of the reasons, where it does not tell."""
    read = read_power_log(log)
    return _energy(read, _curves(read.samples, window), window, gpus)[0]


def metered(
    log: Path, window: Window, measurement: Measurement, gpus: int
) -> tuple[Energy, tuple[Finding, ...]]:
    """Return a point's energy with its joules a token, and a warning for each thing that is wrong
    with the log, or with the clocks that it shows."""
    try:
        read = read_power_log(log.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        read = PowerLog(source="", samples=(), first=f"it cannot be read: {error.strerror}")
    curves, where = _curves(read.samples, window), Where(str(log))
    energy, faults = _energy(read, curves, window, gpus)
    told = (*faults, *_slowed(curves))
    findings = tuple(Finding(one.code, "warning", one.sentence, where) for one in told)
    return _a_token(energy, measurement), findings


def _energy(
    log: PowerLog, curves: _Curves, window: Window, gpus: int
) -> tuple[Energy, tuple[_Fault, ...]]:
    faults = tuple(_faults(log, curves, window, gpus))
    seconds = window[1] - window[0]
    reasons = tuple(dict.fromkeys(fault.code for fault in faults))
    nothing = Energy(source=log.source, gpus=gpus, window_s=seconds, reasons=reasons)
    if faults:
        return nothing, faults
    joules = math.fsum(_integral(curve, window) for curve in curves.values())
    return replace(nothing, energy_j=joules, avg_power_w=joules / seconds), ()


def _a_token(energy: Energy, measurement: Measurement) -> Energy:
    if energy.energy_j is None:
        return energy
    seconds = measurement.window_s * energy.gpus
    return replace(
        energy,
        j_per_output_token=energy.energy_j / (measurement.output_tput_tok_s_gpu * seconds),
        j_per_total_token=energy.energy_j / (measurement.tput_tok_s_gpu * seconds),
    )


def _curves(samples: Sequence[Sample], window: Window) -> _Curves:
    by_gpu: dict[str, list[Sample]] = {}
    # Equal times (amd-smi's whole seconds) in an order that the log's has no part in.
    for sample in sorted(samples, key=lambda one: (one.at_s, one.watts or 0.0)):
        by_gpu.setdefault(sample.gpu, []).append(sample)
    return {gpu: _around(curve, window) for gpu, curve in sorted(by_gpu.items())}


def _around(curve: Sequence[Sample], window: Window) -> Sequence[Sample]:
    before = sum(sample.at_s <= window[0] for sample in curve)
    until = sum(sample.at_s < window[1] for sample in curve)
    return curve[max(before - 1, 0) : until + 1]


def _faults(log: PowerLog, curves: _Curves, window: Window, gpus: int) -> Iterator[_Fault]:
    if log.timeless:
        sentence = f"{log.timeless} samples are in local time, and no line states its {OFFSET}"
        yield _Fault("power-local-time", sentence)
    if not log.samples and not log.timeless:
        yield _Fault("power-unreadable", f"the log holds no sample: {log.first or 'it is empty'}")
    if log.samples and len(curves) != gpus:
        told = f"{len(curves)} accelerators in the log ({', '.join(curves)})"
        yield _Fault("power-gpus", f"{told}; the point has {gpus}")
    for gpu, curve in curves.items():
        yield from _holes(gpu, curve, window)


def _holes(gpu: str, curve: Sequence[Sample], window: Window) -> Iterator[_Fault]:
    start, end = window
    if not curve or curve[0].at_s > start or curve[-1].at_s < end:
        span = f"{curve[0].at_s - start:+.1f} s to {curve[-1].at_s - end:+.1f} s" if curve else "-"
        sentence = f"samples of accelerator {gpu} do not enclose the window: its edges {span}"
        yield _Fault("power-not-bracketed", sentence)
    gaps = ((after.at_s - before.at_s, before.at_s) for before, after in pairwise(curve))
    longest, at_s = max(gaps, default=(0.0, 0.0))
    if longest > LONGEST_GAP_S:
        sentence = f"no sample of accelerator {gpu} for {longest:.1f} s, {at_s - start:.1f} s"
        yield _Fault("power-gap", f"{sentence} into the window; at most {LONGEST_GAP_S:g} s may be")
    if bad := [sample.line for sample in curve if sample.watts is None]:
        sentence = f"{len(bad)} samples of accelerator {gpu} have no power, first on line {bad[0]}"
        yield _Fault("power-bad-sample", sentence)


def _slowed(curves: _Curves) -> Iterator[_Fault]:
    for gpu, curve in curves.items():
        for bit, reason in _SLOWED.items():
            share = sum(bool(sample.slowed & bit) for sample in curve) / max(len(curve), 1)
            if share > _SLOWED_SHARE:
                sentence = f"accelerator {gpu} ran at lower clocks in {share:.0%} of the samples"
                yield _Fault("gpu-slowed", f"{sentence}: {reason}")


def _integral(curve: Sequence[Sample], window: Window) -> float:
    """Return joules: exact where power is linear between samples."""
    start, end = window
    pieces = (
        _piece(before, after, max(before.at_s, start), min(after.at_s, end))
        for before, after in pairwise(curve)
        if after.at_s > before.at_s
    )
    return math.fsum(pieces)


def _piece(before: Sample, after: Sample, start: float, end: float) -> float:
    assert before.watts is not None
    assert after.watts is not None
    slope = (after.watts - before.watts) / (after.at_s - before.at_s)
    middle = (start + end) / 2 - before.at_s
    return (before.watts + slope * middle) * (end - start)
