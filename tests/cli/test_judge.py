"""What `infx judge` says to people."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

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


def test_runs_that_aiperf_repeated_are_told_as_one_too(tmp_path: Path) -> None:
    for run, latency_ms in enumerate((100, 110, 121), 1):
        for conc in (1, 2):
            place = tmp_path / f"profile_runs/trial_{run:04d}/concurrency_{conc}"
            write_run(place, closed_loop(conc, 20, latency_ms), conc=conc)
    write_run(tmp_path / "profile_runs/trial_0004/concurrency_2", [], requests=40)
    done = here("judge", tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path}/concurrency_1: 3 valid of 3 runs, as one\n" in done.stdout
    assert f"{tmp_path}/concurrency_2: 3 valid of 4 runs, as one\n" in done.stdout
    [first, _] = [line for line in done.stdout.splitlines() if line.startswith("P50 E2EL, s")]
    assert first.split()[3:] == ["0.11", "0.09", "…", "0.14"]
    data = as_json(here("judge", tmp_path, "--json"))["data"]
    told = {f["metric"]: f for f in data["repeated"][1]["figures"]}["e2el_p50"]
    assert (data["repeated"][1]["runs"], round(told["value"], 6)) == (3, 0.11)  # geometric
    reach = 4.3027 * math.log(1.1) / math.sqrt(3)  # Student's t of three runs, on logarithms
    assert told["low"] == pytest.approx(0.11 * math.exp(-reach), rel=1e-5)
    assert told["high"] == pytest.approx(0.11 * math.exp(reach), rel=1e-5)


@pytest.mark.parametrize(
    "place", ["profile_runs/run_0001", "concurrency_4/profile_runs/trial_0001"]
)
def test_one_run_of_aiperfs_repeats_does_not_tell(tmp_path: Path, place: str) -> None:
    write_run(tmp_path / place, closed_loop(2, 20))
    told = here("judge", tmp_path).stdout
    assert ": 1 valid of 1 runs, as one" in told
    assert "one run does not tell" in told


def test_the_json_holds_all_of_it(tmp_path: Path) -> None:
    (told,) = as_json(here("judge", write(tmp_path), "--json"))["data"]["folders"]
    found = told["measurement"]
    assert found["tpot_ms"] == found["itl_ms"]
    assert found["steady_s"] == 2.9
    assert found["context"]["mean"] == 24
    assert found["cached_input"]["p99"] == 4
    assert found["error_bounds"]["ttft_ms"]["p99"] == [38.0, None]
    assert set(found["error_bounds"]) == {"ttft_ms", "itl_ms", "tpot_ms", "e2el_ms"}
