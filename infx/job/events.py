"""events.jsonl: what the job says while it runs. A view for people, never the truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from infx.domain.serial import encode

__all__ = ["FILE", "Event", "Events"]

FILE = "events.jsonl"

Event = Literal[
    "job-started",
    "server-starting",
    "server-ready",
    "point-started",
    "phase",
    "point-ended",
    "job-ended",
]


class Events:
    """Adds lines to the file in ``folder``; a full disk silences it, it stops nothing."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = folder / FILE, clock

    def tell(
        self,
        event: Event,
        *,
        point: str | None = None,
        phase: str | None = None,
        status: str | None = None,
        sentence: str | None = None,
        expected_s: float | None = None,
    ) -> None:
        """Write one line with the fields that are given."""
        line = {
            "t": self._clock(),
            "event": event,
            "point": point,
            "phase": phase,
            "status": status,
            "sentence": sentence,
            "expected_s": expected_s,
        }
        kept = {name: value for name, value in line.items() if value is not None}
        with suppress(OSError), self._path.open("ab") as file:
            file.write(encode(kept) + b"\n")
