"""Writing what must survive: a file is whole or it is not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from infx.domain.errors import InfraError
from infx.domain.record import PointRecord
from infx.domain.serial import encode_pretty

__all__ = ["fresh_folder", "publish", "sync_folder", "write_record", "write_whole", "writing"]

FILE = "point.json"

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_record(record: PointRecord, folder: Path) -> None:
    """Write ``record`` as point.json in ``folder``. Raises InfraError as `write_whole` does."""
    write_whole(folder / FILE, encode_pretty(record).encode())


def write_whole(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``, so that a crash leaves the old file or the new one.

    Raises InfraError: ``disk-full``, or ``results-unwritable`` for any other refusal.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(content)
            publish(part, path)
        except OSError:
            with suppress(OSError):
                part.unlink()
            raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError about ``path`` into the InfraError that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            message = f"no space to write {path}: {error.strerror}"
            raise InfraError("disk-full", message, hint="free space, then infx resume") from error
        message = f"cannot write {path}: {error.strerror}"
        raise InfraError("results-unwritable", message, hint="check its permissions") from error


def fresh_folder(path: Path) -> Path:
    """Return ``path`` as an empty folder; one that is there is moved to ``NAME.old<n>``, since an
    old export in it would pass for a new one."""
    with writing(path):
        if path.exists():
            number = 1
            while (old := path.with_name(f"{path.name}.old{number}")).exists():
                number += 1
            path.rename(old)
        path.mkdir(parents=True)
    return path


def publish(part: Path, path: Path) -> None:
    """Give the whole file ``part`` the name ``path`` beside it, on the disk too. Raises OSError."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the folder's names on the disk. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
