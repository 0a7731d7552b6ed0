"""What `infx judge` says to people."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.made_exports import closed_loop, row, write_run
from tests.cli.commands import as_json, here

FAILED = {"type": "ServerError", "code": 503}


def write(folder: Path) -> Path:
    """An export of 58 requests that went well and one that failed, in two lanes."""
    rows = [
        row(100 * wave, 100, ttft_ms=10 + wave, usage_prompt_cache_read_tokens=4)
        for wave in range(29)
        for _ in range(2)
    ]
    warm = row(-500, 100, phase="warmup")
    return write_run(folder, [warm, *rows, row(2900, 50, error=FAILED)])


def test_one_folder_is_told_whole(tmp_path: Path) -> None:
    done = here("judge", write(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = {line.split("  ")[0].strip(): line.split() for line in done.stdout.splitlines()}
    text = done.stdout
    assert "60 in all, 1 of them warm-up; 59 profiled: 58 ok, 1 failed" in text
    assert "1 failed (1 ServerError 503); 0 cut in flight" in text
    assert "window: 2.95 s, 2.9 s with all lanes open" in text
    assert "prefix cache: 25 % of the input tokens" in text
    assert "warning: errors: 1 of 59 requests failed" in text
    assert lines["TTFT"][2:] == ["24.00", "8.37", "24.00", "31.00", "35.30", "37.00", "38.00"]
    assert "[24.00, 24.00]" in text  # p50, whatever the failed one would have measured
    assert lines["context"][2:4] == ["24.00", "0.00"]


def test_errors_stand_beside_latencies_in_the_row_of_a_folder(tmp_path: Path) -> None:
    good = write_run(tmp_path / "b", closed_loop(2, 20))
    header, first, second = here("judge", write(tmp_path / "a"), good).stdout.splitlines()
    assert header.split()[:6] == ["FOLDER", "STATUS", "OK", "ERRORS", "STEADY", "S"]
    assert first.split()[1:5] == ["ok", "58", "1", "2.9"]
    assert "35.30 [35.20, 36.00]" in first
    assert second.split()[1:5] == ["ok", "40", "0", "1.9"]
    assert "[" not in second


def test_the_json_holds_all_of_it(tmp_path: Path) -> None:
    (told,) = as_json(here("judge", write(tmp_path), "--json"))["data"]["folders"]
    found = told["measurement"]
    assert found["tpot_ms"] == found["itl_ms"]
    assert found["steady_s"] == 2.9
    assert found["context"]["mean"] == 24
    assert found["cached_input"]["p99"] == 4
    assert found["error_bounds"]["ttft_ms"]["p99"] == [38.0, None]
    assert set(found["error_bounds"]) == {"ttft_ms", "itl_ms", "tpot_ms", "e2el_ms"}
