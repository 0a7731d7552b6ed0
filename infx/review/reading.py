"""A bundle read from a folder or an archive; whatever is not whole is refused, never passed."""

from __future__ import annotations

import hashlib
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where
from infx.domain.identity import content_id
from infx.domain.record import PointRecord
from infx.domain.serial import decode, to_plain
from infx.review.bundle import (
    Addition,
    Bundle,
    Comment,
    Draft,
    Entries,
    Manifest,
    PlannedPoints,
    PullRequest,
    Run,
    UpstreamRecipe,
)
from infx.review.coherence import contradictions, foreign

__all__ = ["LARGEST_BYTES", "MANIFEST", "PARTS", "bundle_of", "read_bundle", "sealed"]

T = TypeVar("T")

MANIFEST = "bundle.json"
LARGEST_BYTES = 512 * 2**20
"""An archive that unpacks to more is refused: evidence of a pull request takes a few MiB."""

PARTS: Mapping[str, object] = {
    "pull-request.json": PullRequest,
    "comments.json": tuple[Comment, ...],
    "entries.json": Entries,
    "points.json": PlannedPoints,
    "changelog.json": tuple[Addition, ...],
    "runs.json": tuple[Run, ...],
    "records.json": tuple[PointRecord, ...],
    "drafts.json": tuple[Draft, ...],
    "upstream.json": tuple[UpstreamRecipe, ...],
}
"""The typed files of a bundle, which all stand in every one."""

_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError),
    *(RuntimeError, NotImplementedError, ValueError),
)
"""What the readers of archives raise on bytes that are none, or that are encrypted."""

_TEXTS = ("diff.patch", "CODEOWNERS")

Files = Mapping[str, bytes]


def read_bundle(path: Path) -> Bundle:
    """Return the bundle at ``path``.

    Raises ConfigError: ``file-not-found``; ``bad-bundle`` when it is truncated, not
    whole, or contradicts itself;
    ``bad-record`` when a file is not what it must be; ``foreign-run`` for a run of another
    repository or pull request.
    """
    if not path.exists():
        raise ConfigError([_finding("file-not-found", f"there is no bundle {path}", str(path))])
    return bundle_of(_files(path), str(path))


def bundle_of(files: Files, name: str) -> Bundle:
    """Return the bundle that ``files`` (path -> bytes) are; ``name`` is what errors call it."""
    manifest = _manifest(files, name)
    _check([*_incomplete(manifest, files, name), *_unlisted(manifest, files, name)])
    bundle = _typed(manifest, files, name)
    _check([*foreign(bundle, name), *contradictions(bundle, name)])
    return bundle


def _check(findings: list[Finding]) -> None:
    if findings:
        raise ConfigError(findings)


def _finding(code: str, sentence: str, file: str) -> Finding:
    return Finding(code, "error", sentence, Where(file))


def _files(path: Path) -> Files:
    if path.is_dir():
        return dict(_found(path))
    try:
        return _stripped(dict(_zipped(path) if zipfile.is_zipfile(path) else _tarred(path)))
    except _BROKEN as error:
        told = str(error).partition(":\n")[0]  # tarfile lists what it tried, a line each
        sentence = f"{path} is no whole archive: {told}"
        raise ConfigError([_finding("bad-bundle", sentence, str(path))]) from error


def _found(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            try:
                yield file.relative_to(folder).as_posix(), file.read_bytes()
            except OSError as error:
                sentence = f"{file} cannot be read: {error.strerror}"
                raise ConfigError([_finding("file-unreadable", sentence, str(file))]) from error


def _zipped(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        _bounded(sum(info.file_size for info in archive.infolist()), path)
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, archive.read(info)


def _tarred(path: Path) -> Iterator[tuple[str, bytes]]:
    taken = 0
    with tarfile.open(path) as archive:
        for info in archive:
            if info.isfile():
                taken += info.size
                _bounded(taken, path)
                content = archive.extractfile(info)
                yield info.name, content.read() if content else b""


def _bounded(size: int, path: Path) -> None:
    if size > LARGEST_BYTES:
        sentence = f"{path} unpacks to more than {LARGEST_BYTES // 2**20} MiB"
        raise ConfigError([_finding("bad-bundle", sentence, str(path))])


def _stripped(files: Files) -> Files:
    """Return the files without ``./`` and the one folder that an archive may wrap them in."""
    plain = {name.removeprefix("./"): data for name, data in files.items()}
    tops = {name.split("/", 1)[0] for name in plain}
    if MANIFEST in plain or len(tops) != 1:
        return plain
    return {name.split("/", 1)[1]: data for name, data in plain.items() if "/" in name}


def _manifest(files: Files, name: str) -> Manifest:
    if MANIFEST not in files:
        raise ConfigError([_finding("bad-bundle", f"{name} holds no {MANIFEST}", name)])
    where = f"{name}/{MANIFEST}"
    manifest = decode(files[MANIFEST], Manifest, source=where)
    if manifest.seal != _seal(decode(files[MANIFEST], dict[str, Any], source=where)):
        sentence = f"{MANIFEST} is not as infx bundle wrote it: its seal does not fit"
        raise ConfigError([_finding("bad-bundle", sentence, f"{name}/{MANIFEST}")])
    return manifest


def sealed(manifest: Manifest) -> Manifest:
    """Return the manifest with its seal."""
    return replace(manifest, seal=_seal(to_plain(manifest)))


def _seal(content: Mapping[str, Any]) -> str:
    return content_id({key: value for key, value in content.items() if key != "seal"})


def _incomplete(manifest: Manifest, files: Files, name: str) -> Iterator[Finding]:
    for part in (*PARTS, *_TEXTS):
        if part not in manifest.files:
            yield _finding("bad-bundle", f"{MANIFEST} does not list {part}", f"{name}/{MANIFEST}")
    for path, digest in manifest.files.items():
        where = f"{name}/{path}"
        if path not in files:
            yield _finding("bad-bundle", f"{path} is listed and not there", where)
        elif (found := hashlib.sha256(files[path]).hexdigest()) != digest:
            sentence = f"{path} has sha256 {found[:12]}…, {MANIFEST} says {digest[:12]}…"
            yield _finding("bad-bundle", sentence, where)


def _unlisted(manifest: Manifest, files: Files, name: str) -> Iterator[Finding]:
    for path in sorted(set(files) - set(manifest.files) - {MANIFEST}):
        sentence = f"{path} is not listed in {MANIFEST}, so nobody vouches for it"
        yield _finding("bad-bundle", sentence, f"{name}/{path}")


def _typed(manifest: Manifest, files: Files, name: str) -> Bundle:
    def part(file: str, kind: type[T]) -> T:
        return decode(files[file], kind, source=f"{name}/{file}")

    return Bundle(
        manifest=manifest,
        pull_request=part("pull-request.json", PullRequest),
        comments=part("comments.json", tuple[Comment, ...]),
        diff=_text(files, "diff.patch", name),
        codeowners=_text(files, "CODEOWNERS", name),
        entries=part("entries.json", Entries),
        points=part("points.json", PlannedPoints),
        changelog=part("changelog.json", tuple[Addition, ...]),
        runs=part("runs.json", tuple[Run, ...]),
        records=part("records.json", tuple[PointRecord, ...]),
        drafts=part("drafts.json", tuple[Draft, ...]),
        upstream=part("upstream.json", tuple[UpstreamRecipe, ...]),
        golden=_under("golden/", files, name, ".yaml"),
        head=_under("head/", files, name),
        rules=_under("rules/", files, name, ".yaml"),
        artifacts=tuple(p.removeprefix("artifacts/") for p in files if p.startswith("artifacts/")),
    )


def _under(folder: str, files: Files, name: str, ending: str = "") -> dict[str, str]:
    return {
        path.removeprefix(folder).removesuffix(ending): _text(files, path, name)
        for path in files
        if path.startswith(folder)
    }


def _text(files: Files, path: str, name: str) -> str:
    try:
        return files[path].decode()
    except UnicodeDecodeError as error:
        sentence = f"{path} is not UTF-8: {error.reason} at byte {error.start}"
        raise ConfigError([_finding("not-utf8", sentence, f"{name}/{path}")]) from error
