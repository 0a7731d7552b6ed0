"""What a running job says of itself: events.jsonl, read as it grows. A view, never the truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

__all__ = ["FILE", "Event", "Tail"]

FILE = "events.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line. ``t`` is seconds since the epoch; ``point`` a point's label; ``expected_s`` how
    long the phase that begins is expected to take."""

    t: float
    event: str
    point: str | None = None
    phase: str | None = None
    status: str | None = None
    sentence: str | None = None
    expected_s: float | None = None


class Tail:
    """Reads the lines that were added since the last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[Event]:
        """Return the new complete lines; one that is still being written is read next time."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [event for line in whole.splitlines() if (event := _event(line))]


def _event(line: bytes) -> Event | None:
    try:
        return msgspec.json.decode(line, type=Event)
    except msgspec.DecodeError:  # torn by a crash of the machine
        return None
