"""The requests of one export, column by column: profile_export.jsonl read once, block by block.

Only what a figure or a rule reads is decoded; the rest of a line (gaps between chunks, HTTP traces)
is skipped. A block's rows become numbers in columns and are dropped, so that an export of
gigabytes needs a hundred bytes a request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import msgspec

from infx.domain.artifacts import RECORDS
from infx.domain.errors import MeasurementError
from infx.domain.findings import Finding, Where

__all__ = [
    "Failure",
    "Metadata",
    "Metrics",
    "Records",
    "Row",
    "Value",
    "read_records",
    "records_of",
    "unreadable",
]

T = TypeVar("T")

_BLOCK_BYTES = 1 << 20
"""A block and its rows stay in a core's cache: of 256 KiB to 64 MiB the fastest, by a little."""

# gc=False: a row holds no cycle, and a collector that walks millions of them doubles the time.


class Metadata(msgspec.Struct, frozen=True, gc=False):
    """When a request was due and ran (ns since the epoch), its number in the order of sending, its
    phase, the name of its prompt, and of the replayed session that it belongs to."""

    request_start_ns: int
    request_end_ns: int
    credit_issued_ns: int | None = None
    session_num: int | None = None
    benchmark_phase: str = "profiling"
    x_request_id: str = ""
    conversation_id: str = ""
    root_correlation_id: str = ""


class Value(msgspec.Struct, frozen=True, gc=False):
    """A number as aiperf writes it; ``null`` is how its encoder spells NaN and infinity."""

    value: float | None = None


class Metrics(msgspec.Struct, frozen=True, gc=False):
    """The metrics of one request that a figure or a rule reads (latencies in ms)."""

    request_latency: Value | None = None
    time_to_first_token: Value | None = None
    input_sequence_length: Value | None = None
    output_sequence_length: Value | None = None
    usage_prompt_tokens: Value | None = None
    usage_completion_tokens: Value | None = None
    usage_prompt_cache_read_tokens: Value | None = None
    osl_mismatch_diff_pct: Value | None = None


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why a request failed."""

    type: str | None = None
    code: int | str | None = None

    @property
    def category(self) -> str:
        """Return ``ClientPayloadError``, or type and HTTP status."""
        return " ".join(str(part) for part in (self.type, self.code) if part) or "unknown"


class Row(msgspec.Struct, frozen=True, gc=False):
    """One line of profile_export.jsonl: one request."""

    metadata: Metadata
    metrics: Metrics = Metrics()
    error: Failure | None = None


def _no_metrics() -> dict[str, list[float | None]]:
    return {name: [] for name in Metrics.__struct_fields__}


@dataclass(slots=True, kw_only=True)
class Records:
    """The requests of the measured window, failed ones too, in the order of the file; ``warmup``
    counts those that were sent before it, which are in no column.

    Times are ns since the epoch. ``metrics`` holds for each metric None where a request has none,
    and NaN where it has no number.
    """

    warmup: int = 0
    start_ns: list[int] = field(default_factory=list)
    end_ns: list[int] = field(default_factory=list)
    due_ns: list[int | None] = field(default_factory=list)
    order: list[int | None] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    failures: list[Failure | None] = field(default_factory=list)
    metrics: dict[str, list[float | None]] = field(default_factory=_no_metrics)

    def __len__(self) -> int:
        return len(self.start_ns)

    def add(self, rows: Sequence[Row]) -> None:
        """Append ``rows``, those of the warm-up to their count alone."""
        kept = [row for row in rows if row.metadata.benchmark_phase == "profiling"]
        self.warmup += len(rows) - len(kept)
        self.failures += [row.error for row in kept]
        about = [row.metadata for row in kept]
        self.start_ns += [one.request_start_ns for one in about]
        self.end_ns += [one.request_end_ns for one in about]
        self.due_ns += [one.credit_issued_ns for one in about]
        self.order += [one.session_num for one in about]
        self.ids += [one.x_request_id for one in about]
        self.prompts += [one.conversation_id for one in about]
        self.sessions += [one.root_correlation_id for one in about]
        metrics = [row.metrics for row in kept]
        for name, column in self.metrics.items():
            column += [
                None if told is None else math.nan if told.value is None else told.value
                for told in map(attrgetter(name), metrics)
            ]

    def succeeded(self) -> Records:
        """Return the requests that did not fail."""
        if not any(self.failures):
            return self
        good = [failure is None for failure in self.failures]
        return Records(
            warmup=self.warmup,
            start_ns=_of(self.start_ns, good),
            end_ns=_of(self.end_ns, good),
            due_ns=_of(self.due_ns, good),
            order=_of(self.order, good),
            ids=_of(self.ids, good),
            prompts=_of(self.prompts, good),
            sessions=_of(self.sessions, good),
            failures=_of(self.failures, good),
            metrics={name: _of(column, good) for name, column in self.metrics.items()},
        )

    def told_by_all(self, name: str) -> bool:
        """Return True when every request has metric ``name``."""
        return None not in self.metrics[name]

    def numbers(self, name: str) -> list[float]:
        """Return metric ``name`` of every request.

        Raises MeasurementError: ``metric-missing`` when one has none, ``not-a-number`` when one is
        not finite or below 0.
        """
        if not self.told_by_all(name):
            request = self._request(self.metrics[name].index(None))
            raise MeasurementError("metric-missing", f"{request} succeeded without {name}")
        numbers = cast("list[float]", self.metrics[name])
        if not math.isfinite(sum(numbers)):
            at = next((at for at, n in enumerate(numbers) if not math.isfinite(n)), 0)
            raise MeasurementError("not-a-number", f"{self._request(at)} has no finite {name}")
        if min(numbers, default=0.0) < 0:
            at, least = min(enumerate(numbers), key=lambda pair: pair[1])
            raise MeasurementError("not-a-number", f"{self._request(at)} has a {name} of {least:g}")
        return numbers

    def _request(self, at: int) -> str:
        return f"request {self.ids[at] or '?'}"


def records_of(rows: Iterable[Row]) -> Records:
    """Return ``rows`` as columns."""
    records = Records()
    records.add(list(rows))
    return records


def read_records(path: Path, findings: list[Finding]) -> Records:
    """Return the requests of ``path``; a line that cannot be read is left out and becomes a finding
    with its number (``truncated-export``, ``not-a-number``, ``unreadable-export``)."""
    decoder = msgspec.json.Decoder(Row)
    try:
        with path.open("rb") as file:
            return _block_by_block(file, decoder)
    except msgspec.DecodeError:
        return _line_by_line(path, decoder, findings)
    except OSError as error:
        sentence = f"{RECORDS} cannot be read ({error.strerror}): needs --export-level records"
        findings.append(Finding("no-export", "error", sentence, Where(str(path))))
        return Records()


def unreadable(path: Path, number: int, data: bytes, reason: str) -> Finding:
    """Return what is wrong with ``data``, which is line ``number`` of ``path`` (0: all of it)."""
    place = f"line {number} of {path.name}" if number else path.name
    if _has_bare_nan(data):
        sentence = f"{place} holds NaN or Infinity where a number is expected"
        return Finding("not-a-number", "error", sentence, Where(str(path), number))
    code = "truncated-export" if "truncated" in reason else "unreadable-export"
    return Finding(code, "error", f"{place} cannot be read: {reason}", Where(str(path), number))


def _of(column: Sequence[T], good: Sequence[bool]) -> list[T]:
    return list(compress(column, good))


def _block_by_block(file: BinaryIO, decoder: msgspec.json.Decoder[Row]) -> Records:
    records = Records()
    while block := file.read(_BLOCK_BYTES):
        records.add(decoder.decode_lines(block + file.readline()))
    return records


def _line_by_line(
    path: Path, decoder: msgspec.json.Decoder[Row], findings: list[Finding]
) -> Records:
    """Read again, to keep what can be read and to name each line that cannot."""
    records = Records()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                records.add(decoder.decode_lines(line))
            except msgspec.DecodeError as error:
                cut = not line.endswith(b"\n")
                fault = _cut(path, number) if cut else unreadable(path, number, line, str(error))
                findings.append(fault)
    return records


def _cut(path: Path, number: int) -> Finding:
    sentence = f"line {number} of {path.name} ends in the middle of a record"
    return Finding("truncated-export", "error", sentence, Where(str(path), number))


def _has_bare_nan(data: bytes) -> bool:
    """Return True when it is JSON but for NaN and Infinity, which JSON does not know."""
    seen: list[str] = []
    try:
        json.loads(data, parse_constant=seen.append)
    except ValueError:
        return False
    return bool(seen)
