"""JSON for the records: dataclasses out, the same dataclasses back, unknown fields ignored.

Files written by an older infx miss new fields (which have defaults); files written by a newer one
hold fields that are not known here. Both load; a wrong type does not.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar, get_args

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


def decode(data: bytes | str, kind: type[T], *, source: str = "<json>", hint: str = "") -> T:
    """Return ``data`` read as ``kind``.

    Raises ConfigError (code ``bad-record``) naming ``source`` and the path of the fault; ``hint``
    is what to do then ("": that of the code).
    """
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_tagged)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        listed = [of.__name__ for of in get_args(kind) if isinstance(of, type)]
        what = f"list of {listed[0]}" if listed and kind.__name__ == "tuple" else kind.__name__
        sentence = f"not a {what}: {error}"
        finding = Finding("bad-record", "error", sentence, Where(source), hint)
        raise ConfigError([finding]) from error


def _tagged(base: Any, value: Any) -> Any:
    """Read ``value`` as the class that ``base.kinds()`` names for its ``kind``."""
    kinds = base.kinds()
    if not isinstance(value, dict) or value.get("kind") not in kinds:
        raise ValueError(f"expected an object whose kind is one of {', '.join(kinds)}")
    return msgspec.convert(value, kinds[value["kind"]], dec_hook=_tagged)
