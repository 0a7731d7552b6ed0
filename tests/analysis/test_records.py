from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.analysis import records as reading
from infx.analysis.records import Records, Row, read_records, records_of
from infx.domain.errors import MeasurementError
from infx.domain.findings import Finding
from tests.analysis.made_exports import closed_loop, row

FAILED = {"type": "ServerError", "code": 500}


def written(folder: Path, data: bytes) -> Path:
    path = folder / "profile_export.jsonl"
    path.write_bytes(data)
    return path


def lines(rows: list[Any]) -> bytes:
    return b"".join(json.dumps(made).encode() + b"\n" for made in rows)


def read(path: Path) -> tuple[Records, list[tuple[str, int]]]:
    findings: list[Finding] = []
    records = read_records(path, findings)
    return records, [(f.code, f.where.line if f.where else 0) for f in findings]


ROWS = [row(-50, 5, phase="warmup"), *closed_loop(2, 3), row(7, 9, error=FAILED)]


@pytest.mark.parametrize("block", [1, 300, 700, 1 << 20])
@pytest.mark.parametrize("ending", [b"\n", b""])
def test_blocks_of_any_size_hold_the_same_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, ending: bytes
) -> None:
    monkeypatch.setattr(reading, "_BLOCK_BYTES", block)
    seen, findings = read(written(tmp_path, lines(ROWS).rstrip(b"\n") + ending))
    assert findings == []
    assert seen == records_of(msgspec.convert(made, Row) for made in ROWS)
    assert (seen.warmup, len(seen), len(seen.succeeded())) == (1, 7, 6)


@pytest.mark.parametrize("block", [1, 700, 1 << 20])
def test_what_cannot_be_read_is_named_by_its_line_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(reading, "_BLOCK_BYTES", block)
    made = lines(closed_loop(2, 5)).splitlines(keepends=True)
    made[1] = made[1].replace(b"100.0", b"NaN")
    made[4] = made[4][:-30] + b"\n"
    made[6] = made[6].replace(b'"r300"', b'"r\xff"')
    made[8] = b"\n"
    seen, findings = read(written(tmp_path, b"".join(made)[:-20]))
    assert findings == [
        ("not-a-number", 2), ("truncated-export", 5), ("unreadable-export", 7),
        ("truncated-export", 10),
    ]  # fmt: skip
    assert len(seen) == 5


def test_a_missing_file_says_what_makes_one(tmp_path: Path) -> None:
    findings: list[Finding] = []
    assert len(read_records(tmp_path / "profile_export.jsonl", findings)) == 0
    assert [f.code for f in findings] == ["no-export"]
    assert "--export-level records" in findings[0].sentence


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        (..., "metric-missing", "request r100 succeeded without request_latency"),
        (None, "not-a-number", "request r100 has no finite request_latency"),
        (-4.0, "not-a-number", "request r100 has a request_latency of -4"),
    ],
)
def test_a_request_without_a_number_is_named(value: Any, code: str, words: str) -> None:
    made = closed_loop(1, 3)
    held = made[1]["metrics"]
    held["request_latency"]["value"] = value
    if value is ...:
        del held["request_latency"]
    records = records_of(msgspec.convert(one, Row) for one in made)
    with pytest.raises(MeasurementError, match=words) as caught:
        records.numbers("request_latency")
    assert caught.value.code == code


def test_a_failed_request_needs_no_metrics() -> None:
    records = records_of(msgspec.convert(made, Row) for made in ROWS)
    assert not records.told_by_all("request_latency")
    good = records.succeeded()
    assert good.numbers("request_latency") == [100.0] * 6
    assert {len(column) for column in (good.ids, good.start_ns, good.sessions)} == {6}


@given(st.lists(st.tuples(st.sampled_from(["warmup", "profiling"]), st.booleans()), max_size=30))
def test_every_request_is_counted_once(kinds: list[tuple[str, bool]]) -> None:
    made = [row(0, 5, phase=phase, error=FAILED if bad else None) for phase, bad in kinds]
    records = records_of(msgspec.convert(one, Row) for one in made)
    profiled = [bad for phase, bad in kinds if phase == "profiling"]
    assert (records.warmup, len(records)) == (len(kinds) - len(profiled), len(profiled))
    assert len(records.succeeded()) == profiled.count(False)
