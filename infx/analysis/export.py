"""What one artifact folder of aiperf 0.13.0 says, read once and typed.

An aiperf run leaves three witnesses that must agree: the summary (`profile_export_aiperf.json`),
one line a request (`profile_export.jsonl`, see `records`), and the log, which alone tells how many
requests were cut in flight at the end of a timed run. aiperf's exit code proves nothing: nothing
here uses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from infx.analysis.records import Records, read_records, unreadable
from infx.domain.artifacts import LOG, RECORDS, SUMMARY
from infx.domain.errors import UsageError
from infx.domain.findings import Finding, Where

__all__ = [
    "RUN_NAME",
    "Export",
    "Summary",
    "artifact_folders",
    "read_export",
]

RUN_NAME = re.compile(r"(run|trial)_\d+")
"""Names of the folders that aiperf makes for the runs that it repeats."""

_CELL = re.compile(rf"concurrency_\d+|{RUN_NAME.pattern}")
"""The same, and those that a sweep of it makes for its cells."""

_PHASE_END = re.compile(
    r"Phase \S+ \(profiling\) complete \| completed=([\d,]*\d), cancelled=([\d,]*\d)"
)


class Total(msgspec.Struct, frozen=True):
    """A metric of the whole run, which the summary holds as an average."""

    avg: float | None = None


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
    records: Records
    cancelled: int | None
    findings: tuple[Finding, ...] = field(default=())


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
    records = read_records(folder / RECORDS, findings)
    return Export(
        folder=folder,
        summary=summary,
        records=records,
        cancelled=_read_cancelled(folder / LOG),
        findings=tuple(findings),
    )


def _read_summary(path: Path, findings: list[Finding]) -> Summary | None:
    data = b""
    try:
        data = path.read_bytes()
        return msgspec.json.decode(data, type=Summary)
    except FileNotFoundError:
        sentence = f"{SUMMARY} is missing: aiperf ended without a result"
        findings.append(Finding("no-export", "error", sentence, Where(str(path))))
    except (msgspec.DecodeError, OSError) as error:
        findings.append(unreadable(path, 0, data, str(error)))
    return None


def _read_cancelled(path: Path) -> int | None:
    """Return how many profiled requests were cut in flight; None when the log does not tell."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    ends = _PHASE_END.findall(text)
    return sum(int(cancelled.replace(",", "")) for _, cancelled in ends) if ends else None
