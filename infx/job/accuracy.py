"""lm-eval 0.4.13 against the running server: one process an evaluation, its evidence in a folder.

lm-eval/  spec.json  lm-eval.log  progress.jsonl  samples.jsonl  results.json
          task/      the task's YAML, its callbacks and questions (unless the YAML is the user's)
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from infx.domain.errors import MeasurementError
from infx.domain.identity import content_id
from infx.domain.point import Accuracy, Point
from infx.domain.record import FilterScore, Score
from infx.domain.serial import encode_pretty
from infx.job.harness import check_version
from infx.job.lm_eval_run import PROGRESS, RESULTS, SAMPLES, LmEvalSpec
from infx.job.log_lines import useful_line
from infx.job.process import Program, exit_text
from infx.job.record import fresh_folder, write_whole
from infx.workloads.lm_eval_task import write_task

__all__ = ["LOG", "Watch", "evaluate", "progress", "read_score"]

LOG = "lm-eval.log"
SPEC = "spec.json"

Watch = Callable[[int, int], None]
"""Told how many requests are answered, and of how many (0 before that is known); may raise."""

TICK_S = 0.2
STOP_S = 2.0
REQUEST_LIMIT_S = 600
ATTEMPTS = 3
"""One request that fails this often costs lm-eval the whole run."""

_REFUSED = re.compile(r"API request failed.*")


def evaluate(
    point: Point,
    base_url: str,
    folder: Path,
    *,
    limit_s: float = 1800.0,
    watch: Watch | None = None,
) -> Score:
    """Ask the server at ``base_url`` (scheme, host, port) the questions of ``point``.

    Raises MeasurementError (``evaluation-failed``, ``evaluation-hung``), InfraError when lm-eval is
    missing or of another version than planned, ConfigError when the task does not exist, and
    what ``watch`` raises.
    """
    workload = point.workload
    assert isinstance(workload, Accuracy)
    check_version("lm-eval", point.harness.lm_eval)
    folder, started = fresh_folder(folder.resolve()), time.monotonic()
    task = write_task(folder / "task", workload)
    spec = _spec(point, workload, folder, task, base_url)
    write_whole(folder / SPEC, encode_pretty(spec).encode())
    _run(folder, task, _environment(base_url, online=workload.source == "hub"), limit_s, watch)
    return read_score(folder, workload, time.monotonic() - started)


def progress(folder: Path) -> tuple[int, int]:
    """Return the requests answered and asked so far by the evaluation in ``folder``."""
    try:
        text = (folder / PROGRESS).read_text(encoding="utf-8")
    except OSError:
        return 0, 0
    seen: dict[str, int] = {}
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            seen |= json.loads(line)
    return seen.get("answered", 0), seen.get("total", 0)


def read_score(folder: Path, workload: Accuracy, wall_s: float = 0.0) -> Score:
    """Return the score that an evaluation left in ``folder``.

    A filter is called by its name, or ``metric,filter`` where the task has several metrics. Raises
    MeasurementError when no answer has text, when a bar's filter is not among them, or when the
    file holds more than one task.
    """
    results = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    task, *more = results["results"]
    if more:
        raise _failed(f"the task's file holds {len(more) + 1} tasks; name one by its own YAML file")
    rows = _questions(folder / SAMPLES)
    empty = sum(not any(map(str.strip, row["resps"][0])) for row in rows)
    if rows and empty == len(rows):
        raise _failed(
            f"all {empty} answers are empty: the server generated nothing, or put its text "
            "elsewhere than in message.content (reasoning_content)"
        )
    filters = _filters(results["results"][task], len(rows), workload.bars)
    return Score(
        task=task,
        questions=len(rows),
        limit=workload.limit,
        shots=results["n-shot"][task],
        filters=filters,
        questions_hash=content_id([row["arguments"] for row in rows]),
        empty=empty,
        cut=results.get("cut", 0),
        max_tokens=workload.max_tokens,
        wall_s=round(wall_s, 3),
    )


def _spec(point: Point, workload: Accuracy, folder: Path, task: Path, base_url: str) -> LmEvalSpec:
    return LmEvalSpec(
        folder=str(folder),
        task=str(task),
        url=f"{base_url.rstrip('/')}/v1/chat/completions",
        model=point.arm.model.name,
        conc=point.conc,
        shots=workload.shots,
        limit=workload.limit,
        seed=workload.seed,
        max_tokens=workload.max_tokens,
        attempts=ATTEMPTS,
        request_limit_s=REQUEST_LIMIT_S,
    )


def _environment(base_url: str, *, online: bool) -> dict[str, str]:
    """Return ours without lm-eval's own variables, which change what it computes."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("LMEVAL_")}
    host = urlsplit(base_url).hostname or ""
    proxied = ",".join(filter(None, (env.get("NO_PROXY") or env.get("no_proxy"), host)))
    env |= {"NO_PROXY": proxied, "no_proxy": proxied}
    return env if online else env | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def _run(
    folder: Path, task: Path, env: Mapping[str, str], limit_s: float, watch: Watch | None
) -> None:
    # -P: a module beside the user's task must not hide one of Python's.
    argv = [sys.executable, "-P", "-m", "infx.job.lm_eval_run", str(folder / SPEC)]
    program = Program(argv, env=env, log=folder / LOG, folder=task.parent)
    try:
        _wait(program, folder, limit_s, watch)
    finally:
        program.stop(signal.SIGTERM, STOP_S)
    if program.exit_code() or not (folder / RESULTS).exists():
        ended = exit_text(program.exit_code())
        raise _failed(f"lm-eval ended without a score ({ended}): {_reason(folder / LOG)}")


def _wait(program: Program, folder: Path, limit_s: float, watch: Watch | None) -> None:
    until = time.monotonic() + limit_s
    while program.exit_code() is None:
        answered, asked = progress(folder)
        if watch:
            watch(answered, asked)
        if time.monotonic() > until:
            message = f"lm-eval did not end within {limit_s:g} s: {answered} of {asked} answered"
            raise MeasurementError("evaluation-hung", message)
        time.sleep(TICK_S)


def _reason(log: Path) -> str:
    """Return what the server answered where it refused, else the log's useful line."""
    refused = _REFUSED.search(log.read_text(encoding="utf-8", errors="replace"))
    return refused[0][:300] if refused else useful_line(log)


def _questions(samples: Path) -> list[Mapping[str, Any]]:
    """Return the rows of one filter: each question once, in the order of the task."""
    with samples.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row for row in rows if row["filter"] == rows[0]["filter"]]


def _filters(
    metrics: Mapping[str, Any], questions: int, bars: Mapping[str, float]
) -> dict[str, FilterScore]:
    """Return the score of each filter. Keys of ``metrics`` are ``exact_match,strict-match`` and
    ``exact_match_stderr,strict-match``."""
    numbers = [key for key, value in metrics.items() if isinstance(value, int | float)]
    pairs = [key.split(",", 1) for key in numbers if "," in key and "_stderr," not in key]
    if not pairs:
        raise _failed(f"the task reports no number: {json.dumps(metrics)[:200]}")
    single = len({metric for metric, _ in pairs}) == 1
    found = {}
    for metric, name in pairs:
        stderr = metrics.get(f"{metric}_stderr,{name}")
        label = name if single else f"{metric},{name}"
        found[label] = FilterScore(
            score=float(metrics[f"{metric},{name}"]),
            stderr=stderr if isinstance(stderr, float) else _widest(questions),
            bar=bars.get(label),
        )
    for label in bars:
        if label not in found:
            raise _failed(f"a bar is set for {label!r}, but the task reports {', '.join(found)}")
    return found


def _widest(questions: int) -> float:
    """The largest standard error that a share of so many questions can have: one question, or a
    metric without an estimate, tells nothing."""
    return float(0.5 / max(questions, 1) ** 0.5)


def _failed(message: str) -> MeasurementError:
    return MeasurementError("evaluation-failed", message)
