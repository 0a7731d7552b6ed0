"""From which states a run's folder comes: what was pushed from here, or pulled to here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from infx.domain.errors import ConfigError
from infx.domain.serial import decode, encode

__all__ = ["keep_lineage", "lineage_of"]

FILE = "exchange.json"


@dataclass(frozen=True, slots=True)
class _Lineage:
    states: tuple[str, ...]


def lineage_of(folder: Path) -> tuple[str, ...]:
    """Return the digests of the states that a run's folder is known to come from."""
    try:
        return decode((folder / FILE).read_bytes(), _Lineage).states
    except (OSError, ConfigError):  # it is a hint: without it attempts and results are compared
        return ()


def keep_lineage(folder: Path, states: tuple[str, ...]) -> None:
    """Write them down, whole or not at all."""
    if states == lineage_of(folder):
        return
    part = folder / f"{FILE}.part"
    part.write_bytes(encode(_Lineage(states)))
    part.replace(folder / FILE)
