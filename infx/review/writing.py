"""The files of a bundle, with the list that vouches for them; reading them gives it back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from infx.domain.serial import encode_pretty
from infx.review.bundle import Bundle
from infx.review.reading import MANIFEST, sealed

__all__ = ["bundle_files"]


def bundle_files(bundle: Bundle, artifacts: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return path -> bytes; ``artifacts`` are those under `artifacts/`. The manifest's own list of
    files is made anew."""
    files = {name: encode_pretty(part).encode() for name, part in _parts(bundle).items()}
    files |= {"diff.patch": bundle.diff.encode(), "CODEOWNERS": bundle.codeowners.encode()}
    for folder, texts, ending in (
        ("golden", bundle.golden, ".yaml"),
        ("head", bundle.head, ""),
        ("rules", bundle.rules, ".yaml"),
    ):
        files |= {f"{folder}/{name}{ending}": text.encode() for name, text in texts.items()}
    files |= {f"artifacts/{path}": data for path, data in artifacts.items()}
    digests = {path: hashlib.sha256(data).hexdigest() for path, data in sorted(files.items())}
    manifest = sealed(replace(bundle.manifest, files=digests))
    return {MANIFEST: encode_pretty(manifest).encode(), **files}


def _parts(bundle: Bundle) -> Mapping[str, object]:
    return {
        "pull-request.json": bundle.pull_request,
        "comments.json": bundle.comments,
        "entries.json": bundle.entries,
        "points.json": bundle.points,
        "changelog.json": bundle.changelog,
        "runs.json": bundle.runs,
        "records.json": bundle.records,
        "drafts.json": bundle.drafts,
        "upstream.json": bundle.upstream,
    }
