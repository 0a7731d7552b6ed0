"""Recorded agentic sessions on disk: Weka traces, a JSON file a session, as aiperf replays them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

__all__ = ["MalformedTraceError", "Trace", "read_trace"]

SUFFIX = ".json"


class MalformedTraceError(ValueError):
    """A file that aiperf cannot replay, or a folder without one; the text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a folder of sessions holds.

    ``content`` is the sha256 (64 hex digits) of the files' digests in the order of their names,
    ``longest`` the tokens (in and out) of the longest request, ``digests`` the sha256 of each file.
    """

    content: str
    longest: int
    digests: Mapping[Path, str]


class _Request(msgspec.Struct, frozen=True):
    """A request, or a subagent with requests of its own."""

    tokens_in: int = msgspec.field(name="in", default=0)
    tokens_out: int = msgspec.field(name="out", default=0)
    requests: tuple[_Request, ...] = ()

    def longest(self) -> int:
        return max(self.tokens_in + self.tokens_out, _longest(self.requests))


class _Session(msgspec.Struct, frozen=True):
    id: str
    block_size: int
    requests: tuple[_Request, ...]


def read_trace(path: Path) -> Trace:
    """Return what ``path``, a folder with ``*.json`` or one such file, holds.

    Raises OSError when it cannot be read, and MalformedTraceError.
    """
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not files:
        raise MalformedTraceError(f"{path} holds no {SUFFIX} file")
    digests, longest = {}, 0
    for file in files:
        data = file.read_bytes()
        digests[file] = hashlib.sha256(data).hexdigest()
        longest = max(longest, _longest(_session(file, data).requests))
    content = hashlib.sha256("\n".join(digests.values()).encode()).hexdigest()
    return Trace(content=content, longest=longest, digests=digests)


def _session(file: Path, data: bytes) -> _Session:
    try:
        session = msgspec.json.decode(data, type=_Session)
    except msgspec.DecodeError as error:
        raise MalformedTraceError(f"{file.name} is no Weka trace: {error}") from error
    if not _longest(session.requests):
        raise MalformedTraceError(f"{file.name} holds no request with tokens")
    return session


def _longest(requests: Iterable[_Request]) -> int:
    return max((request.longest() for request in requests), default=0)
