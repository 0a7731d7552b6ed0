from __future__ import annotations

from pathlib import Path

from infx.domain.point import Point
from infx.job.client import arguments
from tests.job.jobs import arm, point


def words_of(point: Point, folder: Path) -> list[str]:
    prompts = folder / "prompts.jsonl"
    return arguments(point, "http://127.0.0.1:9", str(folder), prompts, folder / "out")


def value(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1]


def test_arguments_of_a_point(tmp_path: Path) -> None:
    words = words_of(
        point(arm(), conc=4, isl=128, osl=16, requests=40, warmup_requests=4), tmp_path
    )
    assert value(words, "--input-file") == str(tmp_path / "prompts.jsonl")
    assert value(words, "--dataset-sampling-strategy") == "sequential"
    assert value(words, "--osl") == "16"
    assert value(words, "--concurrency") == "4"
    assert value(words, "--request-count") == "40"
    assert value(words, "--warmup-request-count") == "4"
    assert value(words, "--output-artifact-dir") == str(tmp_path / "out")
    assert "--benchmark-duration" not in words
    assert {"--streaming", "--use-server-token-count", "--no-server-metrics"} <= set(words)


def test_a_timed_run_counts_no_requests(tmp_path: Path) -> None:
    words = words_of(point(arm(), duration_s=30, warmup_requests=0), tmp_path)
    assert value(words, "--benchmark-duration") == "30"
    assert "--request-count" not in words
    assert "--warmup-request-count" not in words
