"""aiperf 0.13.0 against the running server: one process a point, its exit code proves nothing."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from infx.domain.artifacts import RECORDS, SUMMARY
from infx.domain.errors import MeasurementError
from infx.domain.point import Agentic, FixedLengths, Point, Workload
from infx.job.client_env import client_env
from infx.job.counters import Scraper
from infx.job.harness import check_version
from infx.job.log_lines import useful_line
from infx.job.process import Program, exit_text
from infx.job.prompt_file import prompt_seed
from infx.job.record import fresh_folder
from infx.job.server import Server
from infx.job.sessions import session_words

__all__ = ["LOG", "arguments", "measure"]

LOG = "aiperf.log"

TICK_S = 0.1
STOP_S = 10.0
"""aiperf exports what it has within 1 to 3 s of SIGINT; before its first request it may hang on it.
After this it is killed."""

_ABORTED = re.compile(r"Terminal warmup failure for trace [^;\s]+")

REQUEST_LIMIT_S = 600
SESSION_REQUEST_LIMIT_S = 1800
"""A turn of a session may have to compute a history of a million tokens behind others."""


def arguments(point: Point, url: str, tokenizer: str, prompts: Path, artifacts: Path) -> list[str]:
    """Return aiperf's arguments for a throughput point; its ``prompts`` of fixed lengths are in a
    file.

    Token counts are the server's. A connection is used once: a server that closes idle ones
    (llama.cpp after 5 s or 100 requests) resets requests otherwise.
    """
    load = point.workload
    words = ["profile", "--model", point.arm.model.name, "--url", url]
    words += ["--endpoint-type", "chat", "--streaming", "--use-server-token-count"]
    words += ["--tokenizer", tokenizer, "--concurrency", str(point.conc)]
    if isinstance(load, Agentic):
        words += [*session_words(load), "--request-timeout-seconds", str(SESSION_REQUEST_LIMIT_S)]
    else:
        words += [*_prompted(point, prompts), "--request-timeout-seconds", str(REQUEST_LIMIT_S)]
    words += ["--extra-inputs", "ignore_eos:true", "--extra-inputs", "temperature:0"]
    words += ["--connection-reuse-strategy", "never"]
    words += ["--no-gpu-telemetry", "--no-server-metrics", "--ui", "none"]
    return [*words, "--export-level", "records", "--output-artifact-dir", str(artifacts)]


def measure(
    words: list[str],
    server: Server,
    scraper: Scraper,
    *,
    load: Workload,
    tokenizer: str,
    artifacts: Path,
    version: str,
    limit_s: float,
) -> None:
    """Run aiperf with ``words``; its exports and its log go to ``artifacts``, made anew.

    Raises MeasurementError (``client-failed``, ``client-hung``), EngineError (``server-died``),
    and InfraError when aiperf is missing or not of ``version``.
    """
    check_version("aiperf", version)
    fresh_folder(artifacts)
    with client_env(load, tokenizer) as (env, name):
        told = [name if word == tokenizer else word for word in words]
        argv = [sys.executable, "-P", "-m", "infx.job.aiperf_main", *told]
        program = Program(argv, env=env, log=artifacts / LOG, folder=artifacts)
        try:
            _watch(program, server, scraper, limit_s)
        finally:
            program.stop(signal.SIGINT, STOP_S)
    _check(program.exit_code(), artifacts)


def _prompted(point: Point, prompts: Path) -> list[str]:
    """Return the arguments for a file of prompts.

    aiperf counts nothing with the tokenizer, but does not start without one, and would tokenise a
    corpus that nothing is drawn from (``--prompt-corpus``).
    """
    load = point.workload
    assert isinstance(load, FixedLengths)
    words = ["--prompt-corpus", "random"]
    words += ["--input-file", str(prompts), "--custom-dataset-type", "single_turn"]
    words += ["--dataset-sampling-strategy", "sequential", "--osl", str(load.osl)]
    return [*words, "--random-seed", str(prompt_seed(point)), *_length(load)]


def _length(load: FixedLengths) -> list[str]:
    words = ["--benchmark-duration", str(load.duration_s)]
    if load.duration_s is None:
        words = ["--request-count", str(load.requests)]
    if load.warmup_requests:
        words += ["--warmup-request-count", str(load.warmup_requests)]
    return words


def _watch(program: Program, server: Server, scraper: Scraper, limit_s: float) -> None:
    started, log_start = time.monotonic(), server.log_bytes
    while program.exit_code() is None:
        server.check("server-died", log_start)
        if time.monotonic() - started > limit_s:
            raise MeasurementError("client-hung", f"aiperf did not end within {limit_s:g} s")
        scraper.look()
        time.sleep(TICK_S)
    server.check("server-died", log_start)


def _check(code: int | None, artifacts: Path) -> None:
    if code == 0 and (artifacts / SUMMARY).exists():
        return
    problem = exit_text(code) if code else "exit code 0, but no summary"
    raise MeasurementError("client-failed", f"aiperf ended ({problem}): {_reason(artifacts)}")


def _reason(artifacts: Path) -> str:
    """Return the commonest error of the requests, or the log's useful line."""
    counts: dict[str, int] = {}
    for row in _rows(artifacts / RECORDS):
        error = row.get("error")
        text = "" if not error else _words(error)
        counts[text] = counts.get(text, 0) + 1
    failed = {text: count for text, count in counts.items() if text}
    if failed:
        worst = max(failed, key=lambda text: failed[text])
        return (
            f"{sum(failed.values())} of {sum(counts.values())} requests failed, most with {worst}"
        )
    return _aborted_warm_up(artifacts / LOG) or useful_line(artifacts / LOG)


def _aborted_warm_up(log: Path) -> str:
    """Return why aiperf gave up a replay before its window; "" when it did not. Requests that the
    server refuses as too long leave no record."""
    found = _ABORTED.search(log.read_text(errors="replace")) if log.exists() else None
    hint = "the server's log tells why; is its context as long as the trace's requests?"
    return f"{found[0]}: {hint}" if found else ""


def _words(error: Mapping[str, object]) -> str:
    kind = " ".join(str(error[name]) for name in ("type", "code") if error.get(name))
    return f"{kind}: {' '.join(str(error.get('message', '')).split())}"[:200]


def _rows(records: Path) -> Iterator[Mapping[str, Mapping[str, object]]]:
    if not records.exists():
        return
    for line in records.read_text(errors="replace").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue
