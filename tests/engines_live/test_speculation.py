"""Speculation of the real vLLM: what it tells of acceptance, and what its counters say."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from infx import frameworks
from infx.domain.acceptance import Acceptance
from infx.domain.errors import EngineError
from infx.job.agreement import check_acceptance
from infx.job.counters import Scraper
from infx.job.ports import free_port
from infx.job.server import Server
from tests.engines_live.conftest import VLLM
from tests.frameworks.arms import arm
from tests.job.jobs import point

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

LINE = "one two three four five six seven eight nine ten. "


def test_an_evaluation_is_kept_from_a_synthetic_server(vllm_folder: Path, tmp_path: Path) -> None:
    """Found by asking the server: what the plan or the recipe says of it does not count."""
    server = drafting(tmp_path, Acceptance("synthetic", 2.78, k=3))
    server.start(dict(os.environ))
    try:
        answers = answers_when_healthy(server)
    finally:
        server.stop()
    running = server.framework.acceptance(answers)
    assert running is not None
    assert (running.mode, running.law, running.k) == ("synthetic", "min-variance", 3)
    assert running.length == pytest.approx(2.78)
    assert server.framework.nonce(answers) == server.nonce
    laws = server.framework.laws
    check_acceptance(point(server.arm), running, laws)
    with pytest.raises(EngineError, match="evaluation needs acceptance real") as refused:
        check_acceptance(point(server.arm, mode="evaluation"), running, laws)
    assert refused.value.code == "acceptance-mode"


def test_the_acceptance_length_is_read_from_its_counters(vllm_folder: Path, tmp_path: Path) -> None:
    """Drafts of n-grams on a text that repeats itself: some are accepted, by comparison."""
    server = drafting(tmp_path, Acceptance(k=3))
    server.start(dict(os.environ))
    try:
        running = server.framework.acceptance(answers_when_healthy(server))
        scraper = Scraper(server, tmp_path)
        scraper.begin()
        generated = generate(server, LINE * 12, 48)
        counters = scraper.end()
    finally:
        server.stop()
    assert running == Acceptance(k=3)
    assert counters.acceptance_length is not None
    assert 1 < counters.acceptance_length <= 4
    # Steps without a match are no verify steps; the first token comes from the prompt.
    assert 0 < (counters.verify_steps or 0) < generated
    assert counters.preemptions == 0


def drafting(folder: Path, acceptance: Acceptance) -> Server:
    asked = arm(
        "vllm",
        "engines:SmolLM2-135M-Instruct",
        image=VLLM,
        axes={"k": 3, "max_num_seqs": 2, "max_model_len": 1024},
        method="ngram",
        acceptance=acceptance,
        options={
            "speculative-config": '{"prompt_lookup_max":4,"prompt_lookup_min":2}',
            "dtype": "float32",
            "enforce-eager": True,
            "gpu-memory-utilization": 0.1,
            "cpu-kvcache-space": 1,
        },
    )
    port = free_port("127.0.0.1", acceptance.mode)
    return Server(frameworks.get("vllm"), asked, folder, host="127.0.0.1", port=port)


def answers_when_healthy(server: Server, limit_s: float = 400) -> dict[str, Any]:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        server.check("server-exited")
        with suppress(OSError):
            if server.site.get(server.framework.paths.health).status == 200:
                return server.answers()
        time.sleep(0.5)
    raise AssertionError(f"not healthy in {limit_s} s: {server.since(0)}")


def generate(server: Server, prompt: str, tokens: int) -> int:
    body = {"model": server.arm.model.name, "prompt": prompt, "max_tokens": tokens}
    answer = server.site.post(
        "/v1/completions", {**body, "temperature": 0, "ignore_eos": True}, 120
    )
    assert answer.status == 200, answer.text
    return int(answer.body["usage"]["completion_tokens"])
