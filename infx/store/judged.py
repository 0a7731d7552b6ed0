"""Verdicts that stand while the files that they were found with are elsewhere: judged.json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from infx.domain.record import PointRecord
from infx.domain.serial import decode
from infx.store.layout import JUDGED

__all__ = ["Judged", "standing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """judged.json, beside a point.json: the record as it was judged with files that were ``left``
    behind (paths below the run's folder)."""

    record: PointRecord
    left: tuple[str, ...]


def standing(point_file: Path, run_dir: Path) -> PointRecord | None:
    """Return the record that was judged while all its evidence was there; None where the evidence
    is there still. Raises ConfigError for a file that cannot be read."""
    path = point_file.with_name(JUDGED)
    if not path.is_file():
        return None
    told = decode(path.read_bytes(), Judged, source=str(path))
    lacking = any(not (run_dir / name).is_file() for name in told.left)
    return told.record if lacking else None
