"""result.json: the job's last act. Who it was, how it ended, and what evidence it leaves.

Where it is missing the job did not come to its end. The manifest tells a file that a copy or a late
view of a shared disk has not (whole) yet.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infx.domain.serial import decode, encode_pretty
from infx.job import claim, events
from infx.job.record import write_whole

__all__ = ["FILE", "Evidence", "Result", "damage", "evidence", "read_result", "write_result"]

FILE = "result.json"

CONTROL = frozenset({FILE, claim.FILE, events.FILE, "infx.log", "job.json", "alive.lock"})
"""Files of an attempt's folder that steer the job, or still grow when the result is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A file: its path relative to the attempt's folder, its size, its sha256 in hex."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How an attempt ended: ``status`` is ``ended`` (every point has its record), ``cancelled`` or
    ``failed:<code>``; ``points`` maps the label of each point with a record to its status."""

    schema_version: str = "1"
    run_id: str
    job_id: str
    attempt: int
    unique_name: str
    scheduler_id: str = ""
    node: str = ""
    started_s: float
    ended_s: float
    status: str
    sentence: str = ""
    points: Mapping[str, str] = field(default_factory=dict)
    manifest: tuple[Evidence, ...] = ()


def write_result(result: Result, folder: Path) -> None:
    """Write result.json, whole. Raises InfraError as `write_whole` does."""
    write_whole(folder / FILE, encode_pretty(result).encode())


def read_result(folder: Path) -> Result | None:
    """Return the result in ``folder``; None when there is none.

    Raises ConfigError (``bad-record``) for a file that is none, which no crash leaves.
    """
    path = folder / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return decode(data, Result, source=str(path))


def evidence(folder: Path) -> tuple[Evidence, ...]:
    """Return the attempt's evidence on disk, sorted by path; links are not followed."""
    files = (path for path in _files(folder) if path.parent != folder or path.name not in CONTROL)
    return tuple(sorted((_told(path, folder) for path in files), key=lambda told: told.path))


def damage(folder: Path, result: Result) -> list[str]:
    """Return a sentence for each file of the manifest that ``folder`` lacks or holds otherwise."""
    return [fault for told in result.manifest if (fault := _fault(folder, told))]


def _fault(folder: Path, told: Evidence) -> str:
    path = folder / told.path
    try:
        if path.is_symlink() or not path.is_file():
            return f"{told.path} is missing"
        size = path.stat().st_size
        if size != told.bytes:
            return f"{told.path} has {size} bytes, expected {told.bytes}"
        return "" if _digest(path) == told.sha256 else f"{told.path} has other content"
    except OSError as error:
        return f"{told.path} cannot be read: {error.strerror}"


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink() and not name.endswith(".part"):
                yield path


def _told(path: Path, folder: Path) -> Evidence:
    size, name = path.stat().st_size, path.relative_to(folder).as_posix()
    return Evidence(path=name, bytes=size, sha256=_digest(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
