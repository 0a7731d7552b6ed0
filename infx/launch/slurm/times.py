"""Slurm's durations and times of day."""

from __future__ import annotations

import re
from datetime import UTC, datetime

__all__ = ["duration_s", "moment"]

_DURATION = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})(?:\.\d+)?")


def duration_s(text: str) -> int | None:
    """Return seconds of ``1-02:03:04``, ``10:00``, ``90`` (minutes) or ``1-12`` (days, hours).

    None for what has no length: ``UNLIMITED``, ``N/A``, ``Partition_Limit``, ``NOT_SET``, garbage.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    parts = [int(part) for part in match["parts"].split(":")]
    if match["days"]:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return ((int(match["days"]) * 24 + hours) * 60 + minutes) * 60 + seconds
    if len(parts) == 3:
        return (parts[0] * 60 + parts[1]) * 60 + parts[2]
    return parts[0] * 60 + (parts[1] if len(parts) == 2 else 0)


def moment(text: str) -> float | None:
    """Return epoch seconds of ``2026-11-29T20:45:16``, read as UTC, or of bare epoch seconds.

    None for ``N/A``, ``Unknown``, ``None`` and anything else that is no time.
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]{9,11}", text):
        return float(text)
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text, re.ASCII):
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
