"""Where stores meet: a folder or an archive that holds a parcel a run, and the live curves.

Every place has the same files: ``live.json`` and ``runs/RUN.tar.gz``.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar

from infx.domain.errors import ConfigError, InfraError, UsageError
from infx.domain.findings import Finding, Where
from infx.store.live import LIVE
from infx.store.store import FILE
from infx.store.writing import writing

__all__ = [
    "ArchivePlace",
    "Box",
    "FolderBox",
    "FolderPlace",
    "Place",
    "locked",
    "parcel_name",
    "run_of",
]

T = TypeVar("T")

MEMBER = re.compile(r"live\.json|runs/[A-Za-z0-9][\w.-]*\.tar\.gz")
_SUFFIX = ".tar.gz"
_SCRATCH = ".infx-part"


class Box(Protocol):
    """An open place: files by name."""

    @property
    def scratch(self) -> Path:
        """A folder on the same disk, for what is about to be put."""

    def names(self) -> list[str]:
        """Return the names of all files."""

    def get(self, name: str) -> Path | None:
        """Return a file to read, or None where there is none of that name."""

    def put(self, name: str, path: Path) -> None:
        """Move ``path`` to ``name``, in the place of what is there."""


class Place(Protocol):
    """Somewhere that machines share. ``shown`` is what people call it."""

    @property
    def shown(self) -> str: ...

    def read(self, use: Callable[[Box], T]) -> T:
        """Return what ``use`` makes of the files. Raises UsageError for a place that is none."""

    def change(self, use: Callable[[Box], T]) -> T:
        """Return what ``use`` makes of the files, which it may put; nobody else does meanwhile, or
        ``use`` is called again with what they put. Raises InfraError."""


def parcel_name(run_id: str) -> str:
    """Return the name of a run's parcel in a place."""
    return f"runs/{run_id}{_SUFFIX}"


def run_of(name: str) -> str:
    """Return the run whose parcel is called so; empty for another file."""
    return name.removeprefix("runs/").removesuffix(_SUFFIX) if name.startswith("runs/") else ""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder: one process at a time, until it dies."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class FolderBox:
    """Files below a folder; each is put whole or not at all."""

    root: Path
    scratch: Path

    def names(self) -> list[str]:
        """See `Box`."""
        found = (path.relative_to(self.root).as_posix() for path in self.root.glob("runs/*"))
        known = [name for name in found if MEMBER.fullmatch(name)]
        return sorted([*known, *([LIVE] if (self.root / LIVE).is_file() else [])])

    def get(self, name: str) -> Path | None:
        """See `Box`."""
        path = self.root / name
        return path if path.is_file() else None

    def put(self, name: str, path: Path) -> None:
        """See `Box`."""
        target = self.root / name
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
        _to_disk(target.parent)


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder that machines share, or that is carried from one to the other."""

    path: Path

    @property
    def shown(self) -> str:
        """See `Place`."""
        return str(self.path)

    def read(self, use: Callable[[Box], T]) -> T:
        """See `Place`."""
        if not self.path.is_dir():
            raise UsageError("not-a-place", f"{self.path} is no folder", hint=_HINT)
        self._check()
        return use(FolderBox(self.path, self.path / _SCRATCH))

    def change(self, use: Callable[[Box], T]) -> T:
        """See `Place`."""
        self._check()
        scratch = self.path / _SCRATCH
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            with locked(self.path):
                shutil.rmtree(scratch, ignore_errors=True)  # of a push that was killed
                scratch.mkdir()
                try:
                    return use(FolderBox(self.path, scratch))
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)

    def _check(self) -> None:
        if (self.path / FILE).exists():
            text = f"{self.path} is a results folder, which holds runs as they are made"
            raise UsageError("not-a-place", text, hint="name another folder")


@dataclass(frozen=True, slots=True)
class ArchivePlace:
    """One .tar.gz with all of it, as CI keeps an artifact."""

    path: Path

    @property
    def shown(self) -> str:
        """See `Place`."""
        return str(self.path)

    def read(self, use: Callable[[Box], T]) -> T:
        """See `Place`."""
        if not self.path.is_file():
            raise UsageError("not-a-place", f"there is no file {self.path}", hint=_HINT)
        with TemporaryDirectory(prefix="infx-place-") as folder:
            self._unpack(Path(folder))
            return use(FolderBox(Path(folder), Path(folder) / _SCRATCH))

    def change(self, use: Callable[[Box], T]) -> T:
        """See `Place`."""
        home = self.path.absolute().parent
        with writing(home):
            home.mkdir(parents=True, exist_ok=True)
            with locked(home):
                for left in home.glob(f"{_SCRATCH}-*"):  # of a push that was killed
                    shutil.rmtree(left, ignore_errors=True)
                with TemporaryDirectory(prefix=f"{_SCRATCH}-", dir=home) as folder:
                    return self._changed(Path(folder), use)

    def _changed(self, folder: Path, use: Callable[[Box], T]) -> T:
        if self.path.exists():
            self._unpack(folder)
        before = _stamps(folder)
        (folder / _SCRATCH).mkdir()
        box = FolderBox(folder, folder / _SCRATCH)
        made = use(box)
        if _stamps(folder) != before or not self.path.exists():
            _archive(box, folder / "new")
            (folder / "new").replace(self.path)
            _to_disk(self.path.absolute().parent)
        return made

    def _unpack(self, folder: Path) -> None:
        try:
            with tarfile.open(self.path, "r:gz") as tar:
                for member in tar:
                    if not member.isreg() or not MEMBER.fullmatch(member.name):
                        raise _not_ours(self.path, member.name)
                    tar.extract(member, folder, filter="data")
        except (EOFError, OSError, zlib.error, tarfile.TarError) as error:
            if isinstance(error, OSError) and error.errno:
                raise
            text = f"{self.path} is cut or damaged: {error}"
            raise InfraError("parcel-broken", text, hint="copy it again") from error


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """What tells whether a file was put: it is another file then."""
    known = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {str(path): (of.st_ino, of.st_mtime_ns) for path, of in known.items()}


def _archive(box: FolderBox, target: Path) -> None:
    """Write all of a box as one file; parcels are compressed already."""
    with tarfile.open(target, "w:gz", compresslevel=1) as tar:
        for name in box.names():
            tar.add(box.root / name, name)
    with target.open("rb") as written:
        os.fsync(written.fileno())


def _not_ours(path: Path, name: str) -> ConfigError:
    sentence = f"it holds {name}, which is no run and no live curve"
    return ConfigError(
        [Finding("bad-parcel", "error", sentence, Where(str(path)), "name another file")]
    )


_HINT = "push a run there first: infx store push PLACE RUN"


def _to_disk(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
