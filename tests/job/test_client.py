from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from infx.job.client import arguments, prompt_seed
from tests.job.jobs import arm, point


def value(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1]


def test_arguments_of_a_point(tmp_path: Path) -> None:
    asked = point(arm(), conc=4, isl=128, osl=16, requests=40, warmup_requests=4)
    words = arguments(asked, "http://127.0.0.1:9", str(tmp_path), tmp_path / "out")
    assert value(words, "--isl") == "128"
    assert value(words, "--osl") == "16"
    assert value(words, "--concurrency") == "4"
    assert value(words, "--request-count") == "40"
    assert value(words, "--warmup-request-count") == "4"
    assert value(words, "--output-artifact-dir") == str(tmp_path / "out")
    assert "--benchmark-duration" not in words
    assert {"--streaming", "--use-server-token-count", "--no-server-metrics"} <= set(words)


def test_a_timed_run_counts_no_requests(tmp_path: Path) -> None:
    asked = point(arm(), duration_s=30, warmup_requests=0)
    words = arguments(asked, "http://127.0.0.1:9", str(tmp_path), tmp_path / "out")
    assert value(words, "--benchmark-duration") == "30"
    assert "--request-count" not in words
    assert "--warmup-request-count" not in words


def test_the_chat_template_is_used_where_there_is_one(tmp_path: Path) -> None:
    asked, flag = point(arm()), "--apply-chat-template"

    def with_config(config: dict[str, str]) -> list[str]:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        return arguments(asked, "http://127.0.0.1:9", str(tmp_path), tmp_path / "out")

    assert flag in with_config({"chat_template": "{{ messages }}"})
    assert flag not in with_config({})
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    assert flag in with_config({})


def test_prompts_follow_workload_and_concurrency_alone() -> None:
    first = point(arm(), conc=1)
    newer = point(arm(image="pypi:engine==2"), conc=1)
    assert prompt_seed(first) == prompt_seed(newer)
    others = [point(arm(), conc=2), point(arm(), isl=65), point(arm(), seed=8)]
    assert len({prompt_seed(p) for p in (first, *others)}) == 4
    assert 0 <= prompt_seed(replace(first, conc=64)) < 1 << 28
