"""A run as one file that travels: what the store knows of it, then its folder, as a .tar.gz.

The first member, ``parcel.json``, holds a `Header`; the others are the run's files under
``files/``. Bytes are the same for the same content, and a file that was cut or damaged does not
unpack.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO

from infx.domain.errors import ConfigError, InfraError
from infx.domain.findings import Finding, Where
from infx.domain.serial import decode, encode
from infx.store.exchange.state import State, checked

__all__ = ["Carried", "Entry", "Header", "Progress", "files_of", "pack", "read_header", "unpack"]

SCHEMA = "1"
HEADER, FILES = "parcel.json", "files/"
LOCAL = frozenset({"driver.lock", "exchange.json", "cancel"})
"""Files of a run's folder that are about this machine: who drives it here, and is asked to stop."""

_BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError)
_RUN_ID = re.compile(r"[A-Za-z0-9][\w.-]*")
_CHUNK = 1 << 20
_LATEST_S = 1 << 40
"""Later than any time of a file, and early enough for every file system's call."""

Progress = Callable[[str, int, int], None]
"""Told what is done, the bytes done so far, and all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a parcel says of itself: the run's state, and the size of each file below its folder.

    ``left`` are files, with their sizes, that a light parcel does without.
    """

    schema_version: str = SCHEMA
    state: State
    files: Mapping[str, int]
    left: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file to pack: its name below the run's folder, and where its bytes are."""

    name: str
    size: int
    mtime_s: int
    content: Path | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Files that are taken over from another parcel of the run."""

    parcel: Path
    sizes: Mapping[str, int]


def files_of(folder: Path) -> Iterator[Entry]:
    """Yield the files of a run, by name: no links, nothing that is half written or of this machine
    alone."""
    for root, names, files in os.walk(folder):
        names.sort()
        for name in sorted(files):
            path = Path(root) / name
            shown = path.relative_to(folder).as_posix()
            known = _known_file(path)
            if known and shown not in LOCAL and not name.endswith((".part", ".tmp")):
                size, changed_s = known.st_size, int(known.st_mtime)
                yield Entry(name=shown, size=size, mtime_s=changed_s, content=path)


def _known_file(path: Path) -> os.stat_result | None:
    """Return what is known of a plain file; None of a link, or of what vanished meanwhile."""
    try:
        known = path.lstat()
    except FileNotFoundError:
        return None
    return known if stat.S_ISREG(known.st_mode) else None


def pack(
    path: Path,
    header: Header,
    entries: Sequence[Entry],
    carried: Carried | None = None,
    progress: Progress = lambda *_: None,
) -> None:
    """Write a parcel to ``path``: ``entries``, then those ``carried`` over.

    A file that grows meanwhile is packed as long as it was. One that vanished is not announced
    either. Raises InfraError ``transfer-failed`` for one that is cut while it is read.
    """
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as zipped:
        gone = _fill(zipped, header, entries, carried, progress)
    if gone:  # the header, which stands first, tells of them
        files = {name: size for name, size in header.files.items() if name not in gone}
        there = [entry for entry in entries if entry.name not in gone]
        pack(path, replace(header, files=files), there, carried, progress)
        return
    with path.open("rb") as packed:
        os.fsync(packed.fileno())


def _fill(
    into: gzip.GzipFile,
    header: Header,
    entries: Sequence[Entry],
    carried: Carried | None,
    progress: Progress,
) -> set[str]:
    """Return the names of entries that have vanished."""
    more, said = _meter("packed", header, progress), encode(header)
    form = tarfile.PAX_FORMAT
    with tarfile.TarFile(fileobj=into, mode="w", format=form, copybufsize=_CHUNK) as tar:
        _add(tar, HEADER, 0, io.BytesIO(said), len(said))
        gone = {entry.name for entry in entries if not _pack_entry(tar, entry, more)}
        if carried:
            _carry(tar, carried, more)
    return gone


def _meter(what: str, header: Header, progress: Progress) -> Callable[[int], None]:
    """Return what is to be told of each more bytes."""
    whole, done = sum(header.files.values()), 0

    def more(size: int) -> None:
        nonlocal done
        done += size
        progress(what, min(done, whole), whole)

    return more


class _Told:
    """Content that tells what was read of it."""

    def __init__(self, content: IO[bytes], more: Callable[[int], None]) -> None:
        self._content, self._more = content, more

    def read(self, size: int = -1) -> bytes:
        data = self._content.read(size)
        self._more(len(data))
        return data


def _pack_entry(tar: tarfile.TarFile, entry: Entry, more: Callable[[int], None]) -> bool:
    """Return False where the file has vanished."""
    name, changed_s = FILES + entry.name, entry.mtime_s
    if isinstance(entry.content, bytes):
        _add(tar, name, changed_s, _Told(io.BytesIO(entry.content), more), entry.size)
        return True
    try:
        handle = entry.content.open("rb")
    except FileNotFoundError:
        return False
    with handle:
        size = min(entry.size, os.fstat(handle.fileno()).st_size)
        try:
            _add(tar, name, changed_s, _Told(handle, more), size)
        except OSError as error:
            if error.errno:
                raise
            text = f"{entry.content} was cut while it was packed"
            raise InfraError("transfer-failed", text, hint="push again") from error
    return True


def _carry(tar: tarfile.TarFile, carried: Carried, more: Callable[[int], None]) -> None:
    with _opened(carried.parcel) as members:
        for member, content in members:
            if member.name.removeprefix(FILES) in carried.sizes:
                _add(tar, member.name, int(member.mtime), _Told(content, more), member.size)


def _add(
    tar: tarfile.TarFile, name: str, mtime_s: int, content: _Told | IO[bytes], size: int
) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, mtime_s, 0o644
    tar.addfile(member, content)


def read_header(path: Path) -> Header:
    """Return what a parcel says of itself, without reading the rest of it. Errors: see `unpack`."""
    with _opened(path) as members:
        for member, content in members:
            if member.name == HEADER:
                return _header(path, content.read())
            break
        raise _bad(path, f"its first file is not {HEADER}")


def _header(path: Path, data: bytes) -> Header:
    version = decode(data, _Version, source=str(path)).schema_version
    if version != SCHEMA:
        raise _bad(path, f"it is of schema {version}; this infx reads schema {SCHEMA}")
    header = decode(data, Header, source=str(path))
    if not _RUN_ID.fullmatch(header.state.run_id):
        raise _bad(path, f"no run can be called {header.state.run_id!r}")
    if odd := [name for name in (*header.files, *header.left) if not _inside(name)]:
        raise _bad(path, f"{odd[0]!r} leads out of the run's folder")
    checked(header.state, str(path))
    return header


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    schema_version: str


def unpack(
    path: Path,
    folder: Path,
    wanted: Callable[[str], bool] = lambda _: True,
    progress: Progress = lambda *_: None,
) -> Header:
    """Write the files of a parcel below ``folder``; those alone that are ``wanted``.

    Raises ConfigError ``bad-parcel`` for what is no parcel or has a file that would land elsewhere,
    InfraError ``parcel-broken`` for one that is cut or damaged.
    """
    header = read_header(path)
    more = _meter("unpacked", header, progress)
    with _opened(path) as members:
        for member, content in members:
            name = _known(path, member, header)
            if name and wanted(name):
                _write(_Told(content, more), folder / name, member.mtime)
            elif name:
                more(member.size)
    return header


def _known(path: Path, member: tarfile.TarInfo, header: Header) -> str:
    name = member.name.removeprefix(FILES)
    if member.name == HEADER:
        return ""
    if name not in header.files or name == member.name:
        raise _bad(path, f"it holds {member.name}, of which its {HEADER} does not know")
    if member.size > header.files[name]:
        raise _bad(path, f"{member.name} is larger than its {HEADER} says")
    return name


def _write(content: _Told, target: Path, mtime_s: float) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as handle:
        shutil.copyfileobj(content, handle, _CHUNK)
    os.utime(target, (mtime_s, mtime_s))


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, IO[bytes]]]]:
    """Give the files of a parcel, which is closed with the block, whatever ends it."""
    with _translated(path), closing(_members(path)) as members:
        yield members


def _members(path: Path) -> Generator[tuple[tarfile.TarInfo, IO[bytes]], None, None]:
    """Yield the files of a parcel in turn, and read it to its end: what is cut shows there."""
    with gzip.open(path) as zipped:
        with tarfile.open(fileobj=zipped, mode="r|") as tar:
            for member in tar:
                plain = member.isreg() and not member.issparse()
                content = tar.extractfile(member) if plain else None
                if content is None:
                    raise _bad(path, f"{member.name} is no plain file")
                if not 0 <= member.mtime < _LATEST_S:
                    raise _bad(path, f"{member.name} changed at no time that a file can have")
                yield member, content
        while zipped.read(_CHUNK):
            pass


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn what damaged bytes do into InfraError ``parcel-broken``, whatever else they seem to say:
    what is damaged shows at the end of the file."""
    try:
        try:
            yield
        except ConfigError:
            _read_through(path)
            raise
    except _BROKEN as error:
        hint = "copy it again, or remove it and push the run again"
        text = f"{path} is cut or damaged: {error}"
        raise InfraError("parcel-broken", text, hint=hint) from error


def _read_through(path: Path) -> None:
    with gzip.open(path) as zipped:
        while zipped.read(_CHUNK):
            pass


def _bad(path: Path, sentence: str) -> ConfigError:
    hint = "it is not what infx store push wrote: remove it, then push the run again"
    return ConfigError([Finding("bad-parcel", "error", sentence, Where(str(path)), hint)])


def _inside(name: str) -> bool:
    """Return True for a name that stays below the folder that it is put into."""
    path = PurePosixPath(name)
    plain = not path.is_absolute() and ".." not in path.parts and "\0" not in name
    return plain and str(path) == name and name not in (".", *LOCAL)
