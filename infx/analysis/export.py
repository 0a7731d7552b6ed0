"""What one artifact folder of aiperf 0.13.0 says, read once and typed.

An aiperf run leaves three witnesses that must agree: the summary (`profile_export_aiperf.json`),
one line a request (`profile_export.jsonl`), and the log, which alone tells how many requests were
cut in flight at the end of a timed run. aiperf's exit code proves nothing: nothing here uses it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from infx.domain.artifacts import LOG, RECORDS, SUMMARY
from infx.domain.errors import UsageError
from infx.domain.findings import Finding, Where

__all__ = [
    "Export",
    "Failure",
    "Metadata",
    "Metrics",
    "Row",
    "Summary",
    "artifact_folders",
    "read_export",
]

_CELL = re.compile(r"(concurrency|trial)_\d+")
"""Names of the folders that a sweep of aiperf makes for its cells."""

_PHASE_END = re.compile(
    r"Phase \S+ \(profiling\) complete \| completed=([\d,]*\d), cancelled=([\d,]*\d)"
)


class Metadata(msgspec.Struct, frozen=True):
    """When a request ran (ns since the epoch), in which phase, the name of its prompt, and of the
    replayed session that it belongs to."""

    request_start_ns: int
    request_end_ns: int
    benchmark_phase: str = "profiling"
    x_request_id: str = ""
    conversation_id: str = ""
    root_correlation_id: str = ""


class Value(msgspec.Struct, frozen=True):
    """A number as aiperf writes it; ``null`` is how its encoder spells NaN and infinity."""

    value: float | None = None


class Total(msgspec.Struct, frozen=True):
    """A metric of the whole run, which the summary holds as an average."""

    avg: float | None = None


class Metrics(msgspec.Struct, frozen=True):
    """The metrics of one request that a verdict needs (latencies in ms); the rest is skipped."""

    request_latency: Value | None = None
    time_to_first_token: Value | None = None
    input_sequence_length: Value | None = None
    output_sequence_length: Value | None = None
    usage_prompt_tokens: Value | None = None
    usage_completion_tokens: Value | None = None
    osl_mismatch_diff_pct: Value | None = None


class Failure(msgspec.Struct, frozen=True):
    """Why a request failed."""

    type: str | None = None
    code: int | str | None = None

    @property
    def category(self) -> str:
        """Return ``ClientPayloadError``, or type and HTTP status."""
        return " ".join(str(part) for part in (self.type, self.code) if part) or "unknown"


class Row(msgspec.Struct, frozen=True):
    """One line of profile_export.jsonl: one request."""

    metadata: Metadata
    metrics: Metrics = Metrics()
    error: Failure | None = None

    @property
    def warmup(self) -> bool:
        """True for a request that was sent before the measured window."""
        return self.metadata.benchmark_phase != "profiling"


class Summary(msgspec.Struct, frozen=True):
    """The part of profile_export_aiperf.json that says how the run ended."""

    was_cancelled: bool = False
    is_complete: bool = True
    incomplete_reason: str = ""
    completed_request_count: Total | None = None
    theoretical_prefix_cache_hit: Total | None = None
    skipped_context_overflow_count: Total | None = None
    input_config: Any = None
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One artifact folder as read.

    ``cancelled`` is None when the log does not tell. ``findings`` lists what could not be read, in
    the order of the files.
    """

    folder: Path
    summary: Summary | None
    rows: tuple[Row, ...]
    cancelled: int | None
    findings: tuple[Finding, ...] = field(default=())

    @property
    def profiled(self) -> list[Row]:
        """The requests of the measured window, failed ones too."""
        return [row for row in self.rows if not row.warmup]


def artifact_folders(folder: Path) -> list[Path]:
    """Return the runs of aiperf at or under ``folder``, sorted: a sweep holds one a cell.

    A run holds an export, or at least the log of one that left none: a cell of a sweep that failed
    must be seen. A folder with runs below it is the sweep itself, and counts for its own export
    only; the parts that an export keeps for each phase (``phases/warmup``) are no runs.
    """
    exports = {path.parent for name in (SUMMARY, RECORDS) for path in folder.rglob(name)}
    exports -= {path for path in exports if _is_phase(path)}
    begun = {path.parent.parent for path in folder.rglob(LOG)}
    begun |= {path.parent for path in folder.rglob("logs") if _CELL.fullmatch(path.parent.name)}
    inner = {parent for path in exports | begun for parent in path.parents}
    return sorted(exports | (begun - inner))


def _is_phase(folder: Path) -> bool:
    """Return True for ``<export>/phases/<phase>``."""
    return folder.parent.name == "phases" and _holds_export(folder.parent.parent)


def _holds_export(folder: Path) -> bool:
    return (folder / SUMMARY).exists() or (folder / RECORDS).exists()


def read_export(folder: Path) -> Export:
    """Return what ``folder`` holds; unreadable parts become findings.

    Raises UsageError (``not-artifacts``) when it holds neither a summary, nor records, nor logs.
    """
    if not _holds_export(folder) and not (folder / LOG).parent.is_dir():
        raise UsageError(
            "not-artifacts",
            f"{folder} holds neither {SUMMARY} nor {RECORDS} nor {LOG}",
            hint="name a folder that aiperf wrote with --output-artifact-dir",
        )
    findings: list[Finding] = []
    summary = _read_summary(folder / SUMMARY, findings)
    rows = _read_rows(folder / RECORDS, findings)
    return Export(
        folder=folder,
        summary=summary,
        rows=rows,
        cancelled=_read_cancelled(folder / LOG),
        findings=tuple(findings),
    )


def _read_summary(path: Path, findings: list[Finding]) -> Summary | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Summary)
    except FileNotFoundError:
        sentence = f"{SUMMARY} is missing: aiperf ended without a result"
        findings.append(Finding("no-export", "error", sentence, Where(str(path))))
    except (msgspec.DecodeError, OSError) as error:
        findings.append(_unreadable(path, 0, str(error)))
    return None


def _read_rows(path: Path, findings: list[Finding]) -> tuple[Row, ...]:
    try:
        data = path.read_bytes()
    except OSError as error:
        sentence = f"{RECORDS} cannot be read ({error.strerror}): needs --export-level records"
        findings.append(Finding("no-export", "error", sentence, Where(str(path))))
        return ()
    decoder = msgspec.json.Decoder(Row)
    try:
        return tuple(decoder.decode_lines(data))
    except msgspec.DecodeError:
        return _readable_rows(path, data, decoder, findings)


def _readable_rows(
    path: Path, data: bytes, decoder: msgspec.json.Decoder[Row], findings: list[Finding]
) -> tuple[Row, ...]:
    """Read line by line, to keep what can be read and to name each line that cannot."""
    rows = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            cut = number == len(lines)
            findings.append(_cut(path, number) if cut else _bad_line(path, number, line, error))
    return tuple(rows)


def _cut(path: Path, number: int) -> Finding:
    sentence = f"line {number} of {path.name} ends in the middle of a record"
    return Finding("truncated-export", "error", sentence, Where(str(path), number))


def _bad_line(path: Path, number: int, line: bytes, error: Exception) -> Finding:
    if not _has_bare_nan(line):
        return _unreadable(path, number, str(error))
    sentence = f"line {number} of {path.name} holds NaN or Infinity where a number is expected"
    return Finding("not-a-number", "error", sentence, Where(str(path), number))


def _has_bare_nan(line: bytes) -> bool:
    """Return True when the line is JSON but for NaN and Infinity, which JSON does not know."""
    seen: list[str] = []
    try:
        json.loads(line, parse_constant=seen.append)
    except ValueError:
        return False
    return bool(seen)


def _unreadable(path: Path, number: int, reason: str) -> Finding:
    code = "truncated-export" if "truncated" in reason else "unreadable-export"
    place = f"line {number} of {path.name}" if number else path.name
    return Finding(code, "error", f"{place} cannot be read: {reason}", Where(str(path), number))


def _read_cancelled(path: Path) -> int | None:
    """Return how many profiled requests were cut in flight; None when the log does not tell."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    ends = _PHASE_END.findall(text)
    return sum(int(cancelled.replace(",", "")) for _, cancelled in ends) if ends else None
