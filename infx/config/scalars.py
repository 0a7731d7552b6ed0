"""What a plain YAML scalar means, and which ones infx refuses to guess about.

The core schema of YAML 1.2 less its doubtful corners: only ``true`` and ``false`` are booleans,
only ``null`` and nothing are null, numbers are decimal. Whatever YAML 1.1 or another 1.2 reader
takes for something else is refused, so that a file means the same to every tool that reads it.
``on`` and ``off`` are words of infx's own vocabularies and stay strings.
"""

from __future__ import annotations

import re

__all__ = ["LARGEST", "beyond", "doubt", "resolve"]

LARGEST = 2**53
"""The largest number: whole numbers up to it are exact for every reader of YAML and JSON."""

_LONGEST = 20

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"([-+]?(0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?")
_SUSPECT = frozenset("-+.0123456789~=yYnNtTfFoO")

_DOUBTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (r"y|Y|yes|Yes|YES|True|TRUE", "write true, or quote it"),
        (r"n|N|no|No|NO|False|FALSE", "write false, or quote it"),
        (r"On|ON|Off|OFF", "write on or off in small letters, or quote it"),
        (r"~|Null|NULL", "write null, or quote it"),
        (r"=", "quote it"),
        (r"[-+]?0[0-9_]+", "write a decimal number without leading zeros, or quote it"),
        (r"[-+]?0[0-9_]+\.[0-9_]*", "write a decimal number without leading zeros, or quote it"),
        (r"[-+]?0[oxb][0-9a-fA-F_]+", "write a decimal number, or quote it"),
        (r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", "quote it: YAML 1.1 reads base 60"),
        (r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?", "write it without underscores, or quote it"),
        (
            r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)[eE][-+]?[0-9]+",
            "write it out, or with a dot and a signed exponent (1.0e+3), or quote it",
        ),
        (r"[-+]\.[0-9_]+", "write a zero before the dot, or quote it"),
        (r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "write a finite number, or quote it"),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?", "quote it: YAML 1.1 reads a date"),
    )
)


def doubt(text: str) -> str | None:
    """Return what to write instead when readers of YAML differ on plain ``text``, else None."""
    if text[:1] not in _SUSPECT or _INT.fullmatch(text) or _FLOAT.fullmatch(text):
        return None
    return next((hint for pattern, hint in _DOUBTS if pattern.fullmatch(text)), None)


def beyond(text: str) -> bool:
    """Return True for a plain number above LARGEST, or of more digits than a number needs."""
    if _INT.fullmatch(text):
        return len(text) > _LONGEST or abs(int(text)) > LARGEST
    return _FLOAT.fullmatch(text) is not None and abs(float(text)) > LARGEST


def resolve(text: str) -> str | int | float | bool | None:
    """Return the value of plain ``text``, which is free of `doubt` and not `beyond`."""
    if text in ("", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
