"""What jobs need where there is no network: infx's wheel and its dependencies', by content.

In ``$XDG_CACHE_HOME/infx/bundles``, and the same below ``bundles`` in a site's folder:

    wheels/<16 hex of sha256>/<name>.whl     each file once, whichever bundles hold it
    dependencies/<key>.json                  (here only) the wheels of one lock file and target
    <id>/bundle.json                         a bundle, written last

Folders are filled under another name and renamed, so that whatever is there is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from infx.config.project import packaged
from infx.config.suggestions import did_you_mean
from infx.domain.errors import InfraError, UsageError
from infx.domain.serial import decode, encode, encode_pretty
from infx.launch.prepare.own_wheel import OwnWheel, write_wheel
from infx.launch.prepare.wheels import Needed, Target, build, download, resolve

__all__ = [
    "Bundle",
    "WheelFile",
    "bundle_id",
    "cache_folder",
    "check_extras",
    "constraints",
    "kept",
    "make_bundle",
    "own_wheel",
]

SCHEMA = 1
ID_LENGTH = 16
"""Hexadecimal digits: paths of a virtual environment stay short enough for a script's first line
(127 bytes on kernels before 5.1)."""

OLD_S = 86400.0
MAKING = ".making-"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WheelFile:
    """A wheel of a bundle; ``path`` is where it lies below a folder of bundles, here and there."""

    name: str
    bytes: int
    sha256: str

    @property
    def path(self) -> str:
        """``wheels/<digest>/<name>``."""
        return f"wheels/{self.sha256[:ID_LENGTH]}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """bundle.json: what is in it, and for which machines. The first of ``files`` is infx's own."""

    schema: int = SCHEMA
    id: str
    infx: str
    infx_digest: str
    constraints_digest: str
    python: str
    platform: str
    platform_tags: tuple[str, ...]
    extras: tuple[str, ...]
    files: tuple[WheelFile, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all wheels."""
        return sum(file.bytes for file in self.files)


def bundle_id(lock: str, extras: Sequence[str], infx_digest: str, target: Target) -> str:
    """Return 16 hexadecimal digits of the sha256 over all that decides what a bundle holds: the
    text of constraints.txt, the extras (a set), infx's content, Python and platform."""
    return _digest(lock, sorted(set(extras)), infx_digest, target.python, target.platform)


def cache_folder() -> Path:
    """Return where bundles are kept on this machine; XDG_CACHE_HOME is honoured."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "infx" / "bundles"


def constraints() -> Path:
    """Return the lock file of the infx that runs. Raises InfraError ``bundle-failed``."""
    path = packaged() / "constraints.txt"
    if path.is_file():
        return path
    hint = "install infx from its wheel or a checkout"
    raise InfraError("bundle-failed", f"this infx has no lock file: {path}", hint=hint)


def own_wheel(cache: Path) -> OwnWheel:
    """Return infx's wheel among those of ``cache``, made anew from what runs now."""
    _forget_old(cache)
    with TemporaryDirectory(prefix=MAKING, dir=cache) as made:
        return kept(write_wheel(Path(made)), cache)


def kept(own: OwnWheel, cache: Path) -> OwnWheel:
    """Return ``own`` moved to where wheels lie in ``cache``."""
    return replace(own, path=cache / _keep(own.path, cache).path)


def make_bundle(
    own: OwnWheel, extras: Sequence[str], target: Target, cache: Path, say: Say
) -> Bundle:
    """Return the bundle of ``own`` for ``target``, made in ``cache`` unless it is there.

    Raises InfraError ``bundle-failed``, UsageError ``bad-option`` for an extra that is none.
    """
    check_extras(extras, own)
    lock = constraints()
    name = bundle_id(lock.read_text(), extras, own.digest, target)
    path = cache / name / "bundle.json"
    if path.is_file():
        known = decode(path.read_bytes(), Bundle, source=str(path))
        if _all_there(known.files, cache):
            return known
    bundle = Bundle(
        id=name,
        infx=own.version,
        infx_digest=own.digest,
        constraints_digest=hashlib.sha256(lock.read_bytes()).hexdigest(),
        python=target.python,
        platform=target.platform,
        platform_tags=target.tags(),
        extras=tuple(sorted(set(extras))),
        files=(_described(own.path), *_dependencies(own, extras, target, cache, say)),
    )
    _write(path, encode_pretty(bundle).encode())
    return bundle


def check_extras(extras: Sequence[str], own: OwnWheel) -> None:
    """Raise UsageError ``bad-option`` for an extra that infx does not provide."""
    for extra in extras:
        if extra not in own.extras:
            hint = did_you_mean(extra, own.extras) or f"known: {', '.join(own.extras)}"
            raise UsageError("bad-option", f"--extras {extra}: infx has no such extra", hint=hint)


def _dependencies(
    own: OwnWheel, extras: Sequence[str], target: Target, cache: Path, say: Say
) -> tuple[WheelFile, ...]:
    """One more edit of infx's sources must not fetch everything again: kept by what decides it."""
    lock = constraints()
    key = bundle_id(lock.read_text(), extras, _digest(*own.requirements), target)
    path = cache / "dependencies" / f"{key}.json"
    if path.is_file():
        known = decode(path.read_bytes(), tuple[WheelFile, ...], source=str(path))
        if _all_there(known, cache):
            return known
    with TemporaryDirectory(prefix=MAKING, dir=cache) as work:
        fetched = _fetched(own, extras, target, Path(work), say)
        files = tuple(_keep(wheel, cache) for wheel in sorted(fetched.iterdir()))
    _write(path, encode(files))
    return files


def _fetched(own: OwnWheel, extras: Sequence[str], target: Target, work: Path, say: Say) -> Path:
    say(f"resolving infx[{','.join(extras)}] for Python {target.python} on {target.platform}")
    needed = resolve(own.path, extras, constraints(), work)
    wheels = work / "wheels"
    wheels.mkdir()
    sources: list[Needed] = [one for one in needed if one.source]
    if sources:
        say(f"building {', '.join(one.pin for one in sources)} (no wheels of them exist)")
        build(sources, wheels)
    say(f"fetching {len(needed) - len(sources)} wheels")
    download([one for one in needed if not one.source], target, wheels)
    return wheels


def _keep(wheel: Path, cache: Path) -> WheelFile:
    """Move a wheel to where its content says."""
    file = _described(wheel)
    target = cache / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    wheel.replace(target)
    return file


def _described(path: Path) -> WheelFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return WheelFile(path.name, path.stat().st_size, digest)


def _all_there(files: Sequence[WheelFile], cache: Path) -> bool:
    paths = [(cache / file.path, file.bytes) for file in files]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    passing = path.with_name(f"{MAKING}{os.getpid()}-{path.name}")
    passing.write_bytes(content)
    passing.replace(path)


def _forget_old(cache: Path) -> None:
    """Remove what a killed infx left half made, once nobody can be at it any more."""
    cache.mkdir(parents=True, exist_ok=True)
    for path in cache.glob(f"{MAKING}*"):
        if time.time() - path.stat().st_mtime > OLD_S:
            shutil.rmtree(path, ignore_errors=True)


def _digest(*parts: object) -> str:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]
