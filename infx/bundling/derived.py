"""Figures derived again: what a record says is what the export that it names gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.domain.findings import Finding
    from infx.domain.record import Measurement, PointRecord

__all__ = ["check_derived"]

_EXACT = 1e-6
"""The same export gives the same figures, on another machine too."""


def check_derived(used: Mapping[str, Sequence[PointRecord]], folders: Mapping[str, Path]) -> None:
    """Raise ConfigError ``bad-bundle`` with each record whose figures the export in its run's
    folder does not give. Exports that are not on this machine say nothing."""
    from infx.domain.errors import ConfigError

    if found := [one for run, records in used.items() for one in _faults(records, folders[run])]:
        raise ConfigError(found)


def _faults(records: Sequence[PointRecord], folder: Path) -> Iterator[Finding]:
    from infx.domain.findings import Finding, Where

    for record in records:
        told, made = record.measurement, _derived(record, folder)
        if told and made and (differing := _differing(told, made)):
            sentence = f"{record.point.label} says {differing}"
            hint = "judge it anew: infx gather"
            yield Finding("bad-bundle", "error", sentence, Where(record.artifacts["aiperf"]), hint)


def _derived(record: PointRecord, folder: Path) -> Measurement | None:
    from infx.analysis.validity import judge
    from infx.domain.status import Status

    path = record.artifacts.get("aiperf")
    if record.measurement is None or path is None or not (folder / path).is_dir():
        return None
    return judge(replace(record, status=Status("measured"), measurement=None), folder).measurement


def _differing(told: Measurement, made: Measurement) -> str:
    """Return the first figure that is not the same: ``2000 tok/s/GPU, its export gives 1000``."""
    for name, one, other in (
        ("tok/s/GPU", told.tput_tok_s_gpu, made.tput_tok_s_gpu),
        ("ms P90 E2EL", told.e2el_ms.p90, made.e2el_ms.p90),
        ("ms P90 TTFT", told.ttft_ms.p90, made.ttft_ms.p90),
        ("ms P90 ITL", told.itl_ms.p90, made.itl_ms.p90),
    ):
        if not isclose(one, other, rel_tol=_EXACT):
            return f"{one:.6g} {name}, its export gives {other:.6g}"
    return ""
