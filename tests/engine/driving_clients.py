"""Runs the field's clients against an engine, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infx.engine.tokenizer import write_tokenizer

BIN = Path(sys.executable).parent


def profile(url: str, folder: Path, *flags: str) -> dict[str, Any]:
    """Run aiperf with the benchmark's base command and ``flags``; return its summary."""
    command = [
        str(BIN / "aiperf"),
        *("profile", "-m", "tiny", "-u", url, "--endpoint-type", "chat", "--streaming"),
        *("--tokenizer", str(write_tokenizer(folder / "tok")), "--random-seed", "7"),
        *("--request-timeout-seconds", "120", "--no-gpu-telemetry", "--use-server-token-count"),
        *("--ui", "none", "--output-artifact-dir", str(folder / "out"), *flags),
    ]
    env = {name: value for name, value in os.environ.items() if not name.endswith("_OFFLINE")}
    log = folder / "log"
    with log.open("w") as file:
        done = subprocess.run(command, stdout=file, stderr=file, env=env, timeout=240, check=False)
    assert done.returncode == 0, log.read_text()[-3000:]
    return dict(json.loads((folder / "out" / "profile_export_aiperf.json").read_text()))


def records(folder: Path) -> list[dict[str, Any]]:
    """aiperf's record of each request of `profile`."""
    lines = (folder / "out" / "profile_export.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def evaluate(folder: Path, *runs: tuple[str, str, Sequence[str]]) -> list[dict[str, Any]]:
    """Run lm-eval once for each (model, endpoint, tasks of ``folder``); return what it found."""
    common = {"model": "tiny", "num_concurrent": 4, "max_retries": 1, "max_length": 1024}
    told = [
        [model, common | {"base_url": url}, [str(folder / f"{task}.yaml") for task in tasks]]
        for model, url, tasks in runs
    ]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder)}
    script = str(Path(__file__).with_name("lm_eval_main.py"))
    command = [sys.executable, script, json.dumps(told)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return list(json.loads(done.stdout.splitlines()[-1]))
