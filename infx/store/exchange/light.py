"""A light parcel: heavy files stay behind, and the verdicts that were found with them go along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from infx.domain.record import PointRecord
from infx.domain.serial import encode
from infx.store.exchange.parcel import Entry
from infx.store.judged import Judged
from infx.store.layout import JUDGED, POINT

__all__ = ["HEAVY_BYTES", "lightened"]

HEAVY_BYTES = 256 * 1024
"""Of a quickstart's run only tokenizers and an evaluation's samples are larger: 11 of 12 MB."""


def lightened(
    entries: Sequence[Entry], judged: Mapping[str, PointRecord]
) -> tuple[list[Entry], dict[str, int]]:
    """Return the entries of a light parcel, and the sizes of those left behind.

    ``judged`` maps the names of point.json files to their records as they stand.
    """
    left = {entry.name: entry.size for entry in entries if _heavy(entry)}
    kept = {entry.name: entry for entry in entries if entry.name not in left}
    kept |= {entry.name: entry for entry in _verdicts([*kept.values()], judged, left)}
    return [kept[name] for name in sorted(kept)], left


def _heavy(entry: Entry) -> bool:
    return entry.size > HEAVY_BYTES and entry.name.startswith("jobs/") and not _ours(entry.name)


def _ours(name: str) -> bool:
    """Return True for what infx itself reads of an attempt to know how it went."""
    return PurePosixPath(name).name in (POINT, JUDGED, "job.json", "result.json", "events.jsonl")


def _verdicts(
    kept: Sequence[Entry], judged: Mapping[str, PointRecord], left: Mapping[str, int]
) -> Iterator[Entry]:
    for entry in kept:
        record = judged.get(entry.name)
        gone = tuple(_evidence(record, left)) if record else ()
        if record and gone:
            name = str(PurePosixPath(entry.name).with_name(JUDGED))
            data = encode(Judged(record=record, left=gone))
            yield Entry(name=name, size=len(data), mtime_s=entry.mtime_s, content=data)


def _evidence(record: PointRecord, left: Mapping[str, int]) -> Iterator[str]:
    """Yield what was left of the files that the record names as its evidence."""
    places = tuple(record.artifacts.values())
    for name in left:
        if any(name == place or name.startswith(f"{place}/") for place in places):
            yield name
