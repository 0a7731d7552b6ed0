"""Identity is content: two things with the same allow-listed content are the same thing."""

from __future__ import annotations

import hashlib

from infx.domain.serial import encode

__all__ = ["content_id"]


def content_id(value: object) -> str:
    """Return the sha256 (64 hex digits) of the canonical JSON of ``value``."""
    return hashlib.sha256(encode(value)).hexdigest()
