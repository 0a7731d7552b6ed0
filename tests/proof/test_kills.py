"""Ten kills and resumes of a real sweep: nothing lost, measured twice or left over."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
KILLS = 10
pytestmark = pytest.mark.proof

MATRIX = """
smollm2-135m-q4-cpu-llamacpp:
  model-prefix: smollm2
  precision: q4
  framework: llamacpp
  image: pypi:xllamacpp==2026.10.11549
  recipe: smollm2-135m-q4-cpu-llamacpp
  cluster: local
  scenarios:
    - workload: {isl: 32, osl: 8, requests: 4, warmup-requests: 1}
      axes: {conc: [1, 2], max-num-seqs: 2}
minimaxm3-mini-cpu-infx:
  model-prefix: minimaxm3
  precision: fp32
  framework: infx
  image: pypi:infx
  recipe: minimaxm3-mini-cpu-infx
  cluster: local
  speculation: {method: eagle3, golden: minimaxm3_eagle3_gqa, thinking: on}
  scenarios:
    - workload: {isl: 32, osl: 16, requests: 4*conc, warmup-requests: 1}
      axes: {conc: [1, 2, 4], k: 3, max-num-seqs: 2*conc}
  evaluations:
    - {task: gsm_mini, limit: 8, conc: 4, max-tokens: 32}
"""


def infx(*argv: str | Path, wait: bool = True) -> Any:
    command = [sys.executable, "-m", "infx", *map(str, argv)]
    if not wait:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=ROOT, stdin=quiet, stdout=quiet, stderr=quiet)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def working_in(results: Path) -> list[str]:
    """Command lines of the processes that name the results or work in them."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(results) in line or str(results) in str(process.info["cwd"]):
            found.append(line)
    return found


def records(results: Path) -> list[tuple[str, str]]:
    """(point, state) of every point.json, over all attempts."""
    found = [json.loads(path.read_text()) for path in results.rglob("point.json")]
    return [(r["point"]["name"], r["status"]["state"]) for r in found]


def test_ten_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    matrix, results = tmp_path / "matrix.yaml", tmp_path / "results"
    matrix.write_text(MATRIX)
    dice, moments = random.Random(20261129), []
    for number in range(KILLS):
        argv = ("resume",) if number else ("sweep", matrix)
        process = infx(*argv, "--results", results, wait=False)
        moment = dice.uniform(1, 18)
        time.sleep(moment)
        assert process.poll() is None, f"it ended before kill {number + 1}"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        moments.append((round(moment, 1), len(records(results))))
    print("killed after (s), records then:", moments)
    done = infx("resume", "--results", results)
    print(done.stderr[-2000:])
    status = json.loads(infx("status", "last", "--json", "--results", results).stdout)
    states = Counter(point["status"]["state"] for point in status["data"]["points"])
    assert states == {"ok": 6}, status
    measured = Counter(name for name, state in records(results) if state == "measured")
    assert len(measured) == 6
    assert set(measured.values()) == {1}, f"measured twice: {measured}"
    deadline = time.monotonic() + 15
    while (left := working_in(results)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left
