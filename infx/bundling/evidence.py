"""The files that records of a run name, as far as a limit allows: what a bundle carries of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.domain.findings import Finding
    from infx.domain.record import PointRecord

__all__ = ["LEFT_OUT", "Evidence", "gathered", "pointing"]

LEFT_OUT = ".left-out"
"""Ends the name of what stands in the place of a file that is too large."""


@dataclass(frozen=True, slots=True)
class _File:
    """``name`` is its place in a bundle (``RUN/PATH``); ``size`` None: it is not on this machine,
    where the run was pulled without its heavy files."""

    name: str
    path: Path
    size: int | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """``files`` (``RUN/PATH`` -> bytes), and the places of those that were ``left_out``, of which a
    note is among the files instead."""

    files: Mapping[str, bytes]
    left_out: tuple[str, ...]


def gathered(
    used: Mapping[str, Sequence[PointRecord]],
    folders: Mapping[str, Path],
    limit_bytes: int,
    tell: Callable[[int, int], None],
) -> Evidence:
    """Return what the records of each run name, the smallest files first until the limit is spent.

    ``folders`` are the runs'; ``tell`` hears of files done and of all. Raises ConfigError
    ``bad-bundle`` with everything that is named and is not there, or lies outside its run.
    """
    found = sorted(_all(used, folders), key=lambda file: (file.size or 0, file.name))
    files: dict[str, bytes] = {}
    left: list[str] = []
    room = limit_bytes
    for number, file in enumerate(found):
        if file.size is None or file.size > room:
            left.append(file.name)
            files[file.name + LEFT_OUT] = _note(file, limit_bytes)
        else:
            files[file.name] = _bytes(file)
            room -= file.size
        tell(number + 1, len(found))
    return Evidence(files, tuple(sorted(left)))


def pointing(records: Iterable[PointRecord], left_out: Sequence[str]) -> list[PointRecord]:
    """Return the records, each naming the note in the place of a file that was left out."""
    gone = set(left_out)
    return [
        replace(
            record,
            artifacts={
                what: path + (LEFT_OUT if f"{record.attempt.run_id}/{path}" in gone else "")
                for what, path in record.artifacts.items()
            },
        )
        for record in records
    ]


def _all(used: Mapping[str, Sequence[PointRecord]], folders: Mapping[str, Path]) -> Iterable[_File]:
    from infx.domain.errors import ConfigError

    found: dict[str, _File] = {}
    faults = []
    for run, records in used.items():
        elsewhere = _left_behind(folders[run]) if records else frozenset()
        for path, label in {
            p: r.point.label for r in records for p in r.artifacts.values()
        }.items():
            files = [*_below(run, folders[run], path), *_gone(run, folders[run], path, elsewhere)]
            found |= {file.name: file for file in files}
            faults += [] if files else [_missing(run, label, path)]
    if faults:
        raise ConfigError(faults)
    return found.values()


def _missing(run: str, label: str, path: str) -> Finding:
    from infx.domain.findings import Finding, Where

    sentence = f"{label} of run {run} names {path}, which is not in the run's folder"
    return Finding("bad-bundle", "error", sentence, Where(path), "fetch it: infx store pull")


def _left_behind(folder: Path) -> frozenset[str]:
    """Return the files that a light push of the run left where they were."""
    from infx.domain.serial import decode
    from infx.store.judged import Judged
    from infx.store.layout import JUDGED

    told = (
        decode(path.read_bytes(), Judged, source=str(path))
        for path in folder.glob(f"jobs/*/a*/points/*/{JUDGED}")
    )
    return frozenset(name for one in told for name in one.left)


def _below(run: str, folder: Path, path: str) -> Iterator[_File]:
    """Yield a file, or the files of a folder, that lie in the run's folder; links lead away."""
    root = folder.resolve()
    top = root / path
    if not top.resolve().is_relative_to(root):
        return
    for file in [top] if top.is_file() else sorted(top.rglob("*")):
        if file.is_file() and file.resolve().is_relative_to(root):
            name = file.relative_to(root).as_posix()
            yield _File(f"{run}/{name}", file, file.stat().st_size)


def _gone(run: str, folder: Path, path: str, elsewhere: Collection[str]) -> Iterator[_File]:
    for name in sorted(elsewhere):
        if (name == path or name.startswith(f"{path}/")) and not (folder / name).is_file():
            yield _File(f"{run}/{name}", folder / name, None)


def _bytes(file: _File) -> bytes:
    """Return the content. Raises ConfigError ``file-unreadable``."""
    from infx.domain.errors import ConfigError
    from infx.domain.findings import Finding, Where

    try:
        return file.path.read_bytes()
    except OSError as error:
        sentence = f"it cannot be read: {error.strerror}"
        found = Finding("file-unreadable", "error", sentence, Where(str(file.path)))
        raise ConfigError([found]) from error


def _note(file: _File, limit_bytes: int) -> bytes:
    if file.size is None:
        return b"left out: it is not on this machine; the run was pulled without its heavy files\n"
    with file.path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    limit = f"evidence is limited to {limit_bytes / 2**20:g} MiB, the smallest files first"
    return f"left out: {file.size} bytes, sha256 {digest}; {limit}\n".encode()
