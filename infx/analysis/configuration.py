"""Does the running server report the axes that the plan asked for?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infx.domain.axes import AXES, is_load, snake
from infx.domain.record import PointRecord

__all__ = ["Setting", "compared", "differences"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An axis, its value as planned and as the server reports it."""

    axis: str
    planned: object
    running: object

    @property
    def differs(self) -> bool:
        """True when the server does not run what was planned."""
        return self.planned != self.running


def differences(record: PointRecord) -> tuple[Setting, ...]:
    """Return the axes of the server, in the order of the vocabulary, on which plan and server both
    speak and contradict each other."""
    return tuple(setting for setting in compared(record) if setting.differs)


def compared(record: PointRecord) -> tuple[Setting, ...]:
    """Return the axes of the server on which plan and server both speak, equal or not. ``auto`` and
    an empty value say nothing."""
    server = {snake(name): value for name, value in record.provenance.server.items()}
    pairs = ((name, getattr(record.point.arm.axes, name), server.get(name)) for name in AXES)
    return tuple(
        Setting(axis=name, planned=_plain(planned), running=_plain(running))
        for name, planned, running in pairs
        if not is_load(name) and not _silent(planned) and not _silent(running)
    )


def _silent(value: object) -> bool:
    return value is None or value in ("", "auto", "unknown") or value == () or value == []


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
