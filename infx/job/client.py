"""aiperf 0.13.0 against the running server: one process a point, its exit code proves nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from infx.domain.artifacts import RECORDS, SUMMARY
from infx.domain.errors import MeasurementError
from infx.domain.point import FixedLengths, Point
from infx.job.counters import Scraper
from infx.job.harness import check_version
from infx.job.log_lines import useful_line
from infx.job.process import Program, exit_text
from infx.job.prompt_file import prompt_seed
from infx.job.record import fresh_folder
from infx.job.server import Server

__all__ = ["LOG", "arguments", "measure"]

LOG = "aiperf.log"

TICK_S = 0.1
STOP_S = 10.0
"""aiperf exports what it has within 1 to 3 s of SIGINT; before its first request it may hang on it.
After this it is killed."""

REQUEST_LIMIT_S = 600
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")

# Any revision will do: the name of a snapshot's folder in the Hugging Face cache.
REVISION = "0" * 40


def arguments(point: Point, url: str, tokenizer: str, prompts: Path, artifacts: Path) -> list[str]:
    """Return aiperf's arguments for a throughput point whose prompts are in a file.

    Token counts are the server's: aiperf counts nothing with the tokenizer, but does not start
    without one, and would tokenise a corpus that nothing is drawn from (``--prompt-corpus``). A
    connection is used once: a server that closes idle ones (llama.cpp after 5 s or 100 requests)
    resets requests otherwise.
    """
    load = point.workload
    assert isinstance(load, FixedLengths)
    words = ["profile", "--model", point.arm.model.name, "--url", url]
    words += ["--endpoint-type", "chat", "--streaming", "--use-server-token-count"]
    words += ["--tokenizer", tokenizer, "--prompt-corpus", "random"]
    words += ["--input-file", str(prompts), "--custom-dataset-type", "single_turn"]
    words += ["--dataset-sampling-strategy", "sequential", "--osl", str(load.osl)]
    words += ["--random-seed", str(prompt_seed(point)), "--concurrency", str(point.conc)]
    words += _length(load)
    words += ["--extra-inputs", "ignore_eos:true", "--extra-inputs", "temperature:0"]
    words += ["--request-timeout-seconds", str(REQUEST_LIMIT_S)]
    words += ["--connection-reuse-strategy", "never"]
    words += ["--no-gpu-telemetry", "--no-server-metrics", "--ui", "none"]
    return [*words, "--export-level", "records", "--output-artifact-dir", str(artifacts)]


def measure(
    words: list[str],
    server: Server,
    scraper: Scraper,
    *,
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
    with _private_env(tokenizer) as (env, name):
        told = [name if word == tokenizer else word for word in words]
        argv = [sys.executable, "-P", "-m", "infx.job.aiperf_main", *told]
        program = Program(argv, env=env, log=artifacts / LOG, folder=artifacts)
        try:
            _watch(program, server, scraper, limit_s)
        finally:
            program.stop(signal.SIGINT, STOP_S)
    _check(program.exit_code(), artifacts)


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
    return useful_line(artifacts / LOG)


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


@contextmanager
def _private_env(tokenizer: str) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the client's environment and the tokenizer's name in it.

    Its temporary folder is its own, since aiperf leaves aiperf_mmap_* and socket folders behind;
    and short, since those sockets have paths. A tokenizer's folder is shown to it as a cached hub
    repository: aiperf loads a path in one process more (2 s), and refuses it when offline.
    """
    with tempfile.TemporaryDirectory(prefix="infx-", ignore_cleanup_errors=True) as scratch:
        env = {key: value for key, value in os.environ.items() if key not in OFFLINE}
        env |= {"TMPDIR": scratch, "COLUMNS": "200"}
        if not Path(tokenizer).is_dir():
            yield env, tokenizer
            return
        _as_hub_cache(Path(tokenizer), Path(scratch) / "hub" / "models--infx--tokenizer")
        yield env | {"HF_HOME": scratch, "HF_HUB_OFFLINE": "1"}, "infx/tokenizer"


def _as_hub_cache(tokenizer: Path, repository: Path) -> None:
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    shutil.copytree(tokenizer, repository / "snapshots" / REVISION)
