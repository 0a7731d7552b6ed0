"""JSON for the records: dataclasses out, the same dataclasses back, unknown fields ignored.

Files written by an older infx miss new fields (which have defaults); files written by a newer one
hold fields that are not known here. Both load; a wrong type does not.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = ["decode", "encode", "encode_pretty", "to_plain"]

T = TypeVar("T")


def encode(value: object) -> bytes:
    """Return ``value`` as one line of JSON with sorted keys (bytes, no newline)."""
    return msgspec.json.encode(value, order="sorted")


def encode_pretty(value: object) -> str:
    """Return ``value`` as indented JSON with fields in the order of their dataclass."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def to_plain(value: object) -> Any:
    """Return ``value`` as dicts, lists, strings and numbers."""
    return json.loads(msgspec.json.encode(value))


def decode(data: bytes | str, kind: type[T], *, source: str = "<json>") -> T:
    """Return ``data`` read as ``kind``.

    Raises ConfigError (code ``bad-record``) naming ``source`` and the path of the fault.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        finding = Finding("bad-record", "error", f"not a {kind.__name__}: {error}", Where(source))
        raise ConfigError([finding]) from error
