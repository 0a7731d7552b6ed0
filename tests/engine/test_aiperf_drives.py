"""The field's client drives the engine unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infx.engine.tokenizer import write_tokenizer
from tests.engine.running_engine import running

pytestmark = pytest.mark.slow

FLAGS = (
    *("--served-model-name", "tiny", "--max-num-seqs", "8", "--capture-sizes", "4,8,12,16"),
    *("--speculative-method", "eagle3", "--num-speculative-tokens", "3"),
    *("--synthetic-acceptance-length", "2.78", "--num-blocks", "512"),
)


def profile(url: str, folder: Path) -> dict:
    """Run aiperf with the base command of the benchmark; return its summary."""
    command = [
        str(Path(sys.executable).parent / "aiperf"),
        *("profile", "-m", "tiny", "-u", url, "--endpoint-type", "chat", "--streaming"),
        *("--tokenizer", str(write_tokenizer(folder / "tok")), "--prompt-corpus", "random"),
        *("--isl", "64", "--osl", "32", "--random-seed", "7", "--concurrency", "4"),
        *("--request-count", "24", "--warmup-request-count", "4", "--use-server-token-count"),
        *("--extra-inputs", "ignore_eos:true", "--extra-inputs", "temperature:0"),
        *("--wait-for-model-timeout", "60", "--wait-for-model-mode", "both"),
        *("--request-timeout-seconds", "120", "--no-gpu-telemetry"),
        *("--server-metrics-formats", "json", "--export-level", "records"),
        *("--ui", "none", "--output-artifact-dir", str(folder / "out")),
    ]
    env = {k: v for k, v in os.environ.items() if not k.endswith("_OFFLINE")}
    with (folder / "log").open("w") as log:
        subprocess.run(command, stdout=log, stderr=log, env=env, timeout=240, check=True)
    return json.loads((folder / "out" / "profile_export_aiperf.json").read_text())


def test_aiperf_measures_every_request_and_the_length_is_the_golden_one(tmp_path):
    with running(*FLAGS) as server:
        summary = profile(server.url, tmp_path)
        steps = server.metric("spec_verify_steps_total")
        length = server.metric("spec_acceptance_length")
        widths = server.metric("padded_rows_total")
    assert summary["request_count"]["avg"] == 24
    assert "error_request_count" not in summary
    assert summary["osl_mismatch_count"]["avg"] == 0
    assert summary["usage_completion_tokens"]["min"] == 32
    assert length == pytest.approx(2.78, abs=max(0.0278, 4 * (0.78 * 0.22 / steps) ** 0.5))
    assert widths == 0
    told = json.loads((tmp_path / "out" / "server_metrics_export.json").read_text())["metrics"]
    assert "infx:num_requests_running" in told
