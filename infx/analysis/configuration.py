"""Does the running server report the axes that the plan asked for?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infx.domain.axes import AXES, is_load, snake
from infx.domain.record import PointRecord

__all__ = ["Difference", "differences"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An axis whose value differs between plan and server."""

    axis: str
    planned: object
    running: object


def differences(record: PointRecord) -> tuple[Difference, ...]:
    """Return the axes of the server, in the order of the vocabulary, on which plan and server both
    speak and contradict each other. ``auto`` and an empty value say nothing."""
    server = {snake(name): value for name, value in record.provenance.server.items()}
    pairs = ((name, getattr(record.point.arm.axes, name), server.get(name)) for name in AXES)
    return tuple(
        Difference(axis=name, planned=_plain(planned), running=_plain(running))
        for name, planned, running in pairs
        if not is_load(name) and not _silent(planned) and not _silent(running)
        if _plain(planned) != _plain(running)
    )


def _silent(value: object) -> bool:
    return value is None or value in ("", "auto", "unknown") or value == () or value == []


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
