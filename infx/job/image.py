"""A container image on the site's shared disk: imported once by whichever job needs it first.

IMAGES/<key>.sqsh   whole, or not there; the key is the image's digest
IMAGES/<key>.lock   held (flock) by the job that imports
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from infx.domain.errors import InfraError
from infx.domain.identity import content_id
from infx.job.process import Program, exit_text
from infx.job.record import publish, writing

__all__ = ["LOG", "image_key", "imported", "reference", "whole"]

LOG = "image.log"
ENROOT = "enroot"

TICK_S = 0.2
STOP_S = 5.0

# Superblock of squashfs 4.0: the magic at its start, the bytes in use at 40, 96 bytes in all.
MAGIC, USED_AT, SUPERBLOCK = b"hsqs", 40, 96


def imported(
    image: str, digest: str, images: Path, folder: Path, tell: Callable[[str], None]
) -> Path:
    """Return the squashfs file of ``image`` (its ``digest`` ``sha256:…`` or "") in ``images``.

    ``tell`` is given the phase that begins: waiting for another job's import, or ours; enroot's
    output goes to image.log in ``folder``. Raises InfraError ``image-import``.
    """
    key = image_key(image, digest)
    target = images / f"{key}.sqsh"
    if whole(target):
        return target
    with writing(images):
        images.mkdir(parents=True, exist_ok=True)
        with _locked(images / f"{key}.lock", lambda: tell("waiting for the image's import")):
            if not whole(target):
                tell("importing the image")
                _import(f"docker://{reference(image, digest)}", target, folder / LOG)
    return target


def image_key(image: str, digest: str) -> str:
    """Return the digest's 64 hex digits; without a digest, the sha256 of the image's name."""
    return digest.rpartition(":")[2] or content_id(image)


def reference(image: str, digest: str = "") -> str:
    """Return an image's name as enroot and pyxis write it: ``REGISTRY#IMAGE:TAG``.

    A digest stands where a tag does (``IMAGE:sha256:…``): ``IMAGE@sha256:…`` would be read as a
    user's name.
    """
    name = image.removeprefix("docker://")
    first, slash, rest = name.partition("/")
    if slash and "#" not in name and ("." in first or ":" in first or first == "localhost"):
        name = f"{first}#{rest}"
    return f"{_untagged(name)}:{digest}" if digest else name


def whole(file: Path) -> bool:
    """Return True when ``file`` is a squashfs image with all the bytes that it says it has."""
    try:
        with file.open("rb") as opened:
            head = opened.read(SUPERBLOCK)
        size = file.stat().st_size
    except OSError:
        return False
    if len(head) < SUPERBLOCK or not head.startswith(MAGIC):
        return False
    used: int = struct.unpack_from("<Q", head, USED_AT)[0]
    return SUPERBLOCK <= used <= size


@contextmanager
def _locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock; it is let go with the process, however that ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not _try(handle):
            waiting()
            while not _try(handle):
                time.sleep(TICK_S)
        yield
    finally:
        os.close(handle)


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _import(uri: str, target: Path, log: Path) -> None:
    """Run enroot into a file beside ``target``; what killed imports left there goes first."""
    for stale in target.parent.glob(f".{target.name}.*.part"):
        stale.unlink()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        _enroot(uri, part, log)
        publish(part, target)
    finally:
        part.unlink(missing_ok=True)


def _enroot(uri: str, part: Path, log: Path) -> None:
    argv = (ENROOT, "import", "-o", str(part), uri)
    program = Program(argv, env=os.environ, log=log, folder=log.parent)
    try:
        while program.exit_code() is None:
            time.sleep(TICK_S)
    finally:
        program.stop(signal.SIGTERM, STOP_S)
    if program.exit_code() or not whole(part):
        ended = exit_text(program.exit_code()) if program.exit_code() else "no whole squashfs file"
        raise InfraError("image-import", f"enroot import {uri} failed ({ended}): {_last(log)}")


def _last(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "no output")


def _untagged(name: str) -> str:
    head, colon, tag = name.rpartition(":")
    return head if colon and not {"/", "#"} & set(tag) else name
