"""The client of an exported recipe: what srt-slurm's ``custom`` benchmark runs, as one bash text.

srtctl gives the text to ``bash -lc`` as it is and tells it where the server is by SRT_FRONTEND_HOST
and SRT_FRONTEND_PORT, the engine's own process by SRT_AGG_ENDPOINTS; the job's logs folder is /logs
in every container (docs/benchmarks.md and core/runtime.py of NVIDIA/srt-slurm, September 2026).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from infx.domain.point import Agentic, Arm, FixedLengths, Point
from infx.frameworks.base import PROCESS, Framework, Launch
from infx.job.client import REQUEST_LIMIT_S, SESSION_REQUEST_LIMIT_S
from infx.job.client_env import PATIENCE
from infx.job.prompt_file import prompt_seed
from infx.job.sessions import session_words

__all__ = ["EVIDENCE", "PAGES", "client_script"]

EVIDENCE = "infx"
"""Below /logs: a folder for each point, named by its label, with aiperf's exports in ``aiperf``."""

PAGES = "pages"
"""Below `EVIDENCE`: what the server says of itself, a file for each page, numbered in order."""

LOOK = Path(__file__).with_name("look.py")

_START = """\
set -u
logs=/logs/{evidence}
server=http://$SRT_FRONTEND_HOST:$SRT_FRONTEND_PORT
engine=${{SRT_AGG_ENDPOINTS:-${{SRT_DECODE_ENDPOINTS:-$SRT_FRONTEND_HOST:$SRT_FRONTEND_PORT}}}}
engine=${{engine%%,*}}
code=0

look=$(mktemp)
cat >"$look" <<'END_OF_LOOK'
{look}END_OF_LOOK

measure() {{
  mkdir -p "$logs/$1"
  python3 "$look" scrape "$logs/$1/metrics-before.txt" "http://$engine" {scraped}
  python3 -m aiperf profile --url "$server" --output-artifact-dir "$logs/$1/aiperf" "${{@:2}}" \\
    >"$logs/$1/aiperf.log" 2>&1 || {{ code=1; tail -n 20 "$logs/$1/aiperf.log"; }}
  python3 "$look" scrape "$logs/$1/metrics-after.txt" "http://$engine" {scraped}
}}

# The version that the points' identities name; this container is the client's own.
have=$(python3 -c 'from importlib.metadata import version; print(version("aiperf"))' 2>/dev/null)
[ "$have" = {version} ] || python3 -m pip install --quiet aiperf=={version} || exit 1
mkdir -p "$logs/{pages}"
"""


def client_script(arm: Arm, points: Sequence[Point], framework: Framework, launch: Launch) -> str:
    """Return the text that measures throughput ``points`` one after another with aiperf.

    Every point is tried; it exits 1 when one failed. The engine's pages are kept as files; its
    metrics and their notes are read before and after each point.
    """
    start = _START.format(
        evidence=EVIDENCE,
        pages=PAGES,
        look=LOOK.read_text(encoding="utf-8"),
        scraped=shlex.join((framework.paths.metrics, *framework.paths.notes)),
        version=points[0].harness.aiperf,
    )
    sessions = any(isinstance(point.workload, Agentic) for point in points)
    patience = [f"export {name}={text}" for name, text in PATIENCE.items()] if sessions else []
    checks = dict.fromkeys(line for point in points for line in _trace_check(point))
    measures = (f"measure {shlex.join([p.label, *_arguments(arm, p)])}" for p in points)
    return start + "\n".join(
        [*patience, *checks, *_looks(framework.pages, launch), *measures, 'exit "$code"', ""]
    )


def _trace_check(point: Point) -> Iterator[str]:
    load = point.workload
    if isinstance(load, Agentic) and load.content:
        yield f'python3 "$look" trace {shlex.join([load.trace, load.content])} || exit 1'


def _looks(pages: Sequence[str], launch: Launch) -> Iterator[str]:
    for number, page in enumerate(pages):
        file = f'"$logs/{PAGES}/{number}.json"'
        if page == PROCESS:
            names = shlex.join(sorted(launch.env))
            yield f'python3 "$look" started {file} "$engine" {names}'.rstrip()
        else:
            yield f'python3 "$look" page {file} "http://$engine"{shlex.quote(page)}'


def _arguments(arm: Arm, point: Point) -> list[str]:
    """Return aiperf's arguments, with token counts of the server as in infx's own jobs."""
    load = point.workload
    words = ["--model", arm.model.name, "--tokenizer", _tokenizer(arm)]
    words += ["--endpoint-type", "chat", "--streaming", "--use-server-token-count"]
    words += ["--concurrency", str(point.conc)]
    if isinstance(load, Agentic):
        words += [*session_words(load), "--request-timeout-seconds", str(SESSION_REQUEST_LIMIT_S)]
    else:
        assert isinstance(load, FixedLengths)
        words += [*_prompts(point, load), "--request-timeout-seconds", str(REQUEST_LIMIT_S)]
    words += ["--extra-inputs", "ignore_eos:true", "--extra-inputs", "temperature:0"]
    words += ["--connection-reuse-strategy", "never", "--export-level", "records"]
    return [*words, "--no-gpu-telemetry", "--no-server-metrics", "--ui", "none"]


def _prompts(point: Point, load: FixedLengths) -> list[str]:
    """Return the arguments for aiperf's own random prompts: where it runs there is no infx that
    would write them."""
    words = ["--prompt-corpus", "random", "--isl", str(load.isl), "--osl", str(load.osl)]
    words += ["--random-seed", str(prompt_seed(point))]
    words += ["--dataset-sampling-strategy", "sequential"]
    if load.duration_s is not None:
        words += ["--benchmark-duration", str(load.duration_s)]
    else:
        entries = load.requests + load.warmup_requests  # no prompt is sent twice
        words += ["--request-count", str(load.requests), "--num-dataset-entries", str(entries)]
    warm_up = load.warmup_requests
    return [*words, "--warmup-request-count", str(warm_up)] if warm_up else words


def _tokenizer(arm: Arm) -> str:
    """Return the recipe's tokenizer; without one of its own the model's, which srtctl mounts."""
    own, weights = arm.model.tokenizer, arm.model.weights
    if own not in ("engine", "gguf"):
        return own.removeprefix("hf:")
    return weights.removeprefix("hf:") if weights.startswith("hf:") else "/model"
