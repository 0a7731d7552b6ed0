"""Files to a folder or an archive: the same files are the same bytes, wherever they are written."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["ENDINGS", "pack"]

Files = Mapping[str, bytes]

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip can say."""


def pack(files: Files, path: Path) -> Path:
    """Write ``files`` (path -> bytes) and return ``path``: an archive where it ends like one, else
    a folder, which is there whole or not at all.

    Raises UsageError ``bad-option`` for a folder with something in it already, and for what cannot
    be written.
    """
    from infx.domain.errors import UsageError

    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _check_free(path)
        if make := _archiver(path):
            part.write_bytes(make(files))
        else:
            _write_folder(files, part)
        part.replace(path)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}"
        hint = "name a new folder, or an archive (.tar.gz, .zip), where you may write"
        raise UsageError("bad-option", message, hint=hint) from error
    finally:
        _remove(part)
    return path


def _check_free(path: Path) -> None:
    from infx.domain.errors import UsageError

    if path.is_dir() and any(path.iterdir()):
        hint = "name a new folder, or an archive: .tar.gz or .zip"
        raise UsageError("bad-option", f"{path} is a folder with something in it", hint=hint)


def _archiver(path: Path) -> Callable[[Files], bytes] | None:
    return next((make for end, make in ENDINGS.items() if path.name.lower().endswith(end)), None)


def _tar(files: Files) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(files.items()):
            told = tarfile.TarInfo(name)
            told.size = len(data)
            archive.addfile(told, io.BytesIO(data))
    return out.getvalue()


def _tar_gz(files: Files) -> bytes:
    return gzip.compress(_tar(files), compresslevel=6, mtime=0)


def _zip(files: Files) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, data in sorted(files.items()):
            told = zipfile.ZipInfo(name, _EPOCH)
            told.compress_type = zipfile.ZIP_DEFLATED
            told.external_attr = 0o644 << 16
            archive.writestr(told, data)
    return out.getvalue()


ENDINGS: Mapping[str, Callable[[Files], bytes]] = {
    ".tar.gz": _tar_gz,
    ".tgz": _tar_gz,
    ".tar": _tar,
    ".zip": _zip,
}


def _write_folder(files: Files, folder: Path) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _remove(part: Path) -> None:
    import shutil

    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)
