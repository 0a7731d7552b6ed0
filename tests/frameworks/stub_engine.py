"""A server that plays an engine: its flags, pages and metrics names, and a chosen acceptance.

``stub_engine.py ENGINE [the engine's own words…]``. It takes exactly the flags of
infx/frameworks/flags/ENGINE.json and ends like the engine at any other (exit 2). Steps are drawn by
min-variance at the length that it was asked, or at STUB_AL; STUB_MONO_OFF is why its log says that
mono is off. Standard library and PyYAML only.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

FLAGS = Path(__file__).parents[2] / "infx" / "frameworks" / "flags"
PROMPT_TOKENS = int(os.environ.get("STUB_ISL", "64"))
STEP_S = 0.02


@dataclass
class Counts:
    """What happened since the start. ``by_step[n]`` counts verify steps that accepted n drafts."""

    by_step: dict[int, int] = field(default_factory=dict)
    running: int = 0
    prompts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def steps(self) -> int:
        return sum(self.by_step.values())

    @property
    def accepted(self) -> int:
        return sum(drafts * steps for drafts, steps in self.by_step.items())


@dataclass
class Given:
    """The command line: flag -> value, and the words that belong to no flag."""

    flags: dict[str, Any]
    words: list[str]

    def get(self, flag: str, default: Any = None) -> Any:
        return self.flags.get(flag, default)


@dataclass
class Engine:
    """How an engine spells the same things."""

    port: str
    asked: Callable[[Given], tuple[int, float]]
    metrics: Callable[[Given, Counts], str]
    pages: Callable[[Given, Counts], dict[str, Any]]
    metrics_path: str = "/metrics"
    served: str = "--served-model-name"
    complaint: str = "error: unrecognized arguments: {}"
    model: str = ""  # the flag of the model; "": a word of its own


# Command lines


def parse(engine: str, argv: Sequence[str]) -> Given:
    rows = json.loads((FLAGS / f"{engine}.json").read_text())["flags"]
    known = {word: row for row in rows for word in (row["flag"], *row.get("aliases", ()))}
    known |= {f"--no-{row['flag'][2:]}": row for row in rows if row.get("negatable")}
    given, words = Given({}, []), list(argv)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            given.words.append(word)
            continue
        row = known.get(word)
        if row is None or not row["flag"].startswith("--"):
            print(ENGINES[engine].complaint.format(word), file=sys.stderr, flush=True)
            sys.exit(2)
        given.flags[row["flag"]] = value(row, word, words)
    return given


def value(row: dict[str, Any], word: str, following: list[str]) -> Any:
    if row["kind"] == "bool":
        return not word.startswith("--no-")
    if row["kind"] == "tuple" and row.get("listed", "words") == "words":
        return list(taken(following))
    read = {"int": int, "float": float}.get(row["kind"], str)
    text = following.pop(0)
    if row.get("choices") and text not in row["choices"]:
        print(f"error: argument {word}: invalid choice: {text!r}", file=sys.stderr, flush=True)
        sys.exit(2)
    return read(text)


def taken(following: list[str]) -> Iterator[str]:
    while following and not following[0].startswith("-"):
        yield following.pop(0)


# ATOM


def atom_asked(given: Given) -> tuple[int, float]:
    k = given.get("--num-speculative-tokens", 0) if given.get("--method") else 0
    return k, float(given.get("--spec-decode-acceptance-length", 1 + k / 2))


def atom_metrics(given: Given, counts: Counts) -> str:
    lines = [
        f"atom:requests_running {counts.running}",
        "atom:requests_waiting 0",
        "atom:kv_cache_usage_ratio 0.25",
        "atom:preemptions_total 0",
        f"atom:prefix_cache_full_tokens_total {counts.prompts}",
        "atom:prefix_cache_cached_tokens_total 0",
        f"atom:mtp_accepted_tokens_total {counts.accepted}",
    ]
    for drafts, steps in sorted(counts.by_step.items()):
        lines.append(f'atom:mtp_decode_steps_total{{accepted_tokens="{drafts}"}} {steps}')
    return "\n".join(lines) + "\n"


def atom_pages(given: Given, counts: Counts) -> dict[str, Any]:
    ranks = given.get("--tensor-parallel-size", 1)
    name = given.get("--served-model-name")
    return {"/server_info": {"model_id": name, "tp_size": ranks, "dp_size": 1}}


# SGLang


def sglang_asked(given: Given) -> tuple[int, float]:
    k = max(0, given.get("--speculative-num-draft-tokens", 1) - 1)
    k = given.get("--speculative-dspark-block-size", k)
    return k, float(os.environ.get("SGLANG_SIMULATE_ACC_LEN", 1 + k / 2))


def sglang_metrics(given: Given, counts: Counts) -> str:
    if not given.get("--enable-metrics"):
        return ""
    labels = 'model_name="x",dp_rank="0"'
    decoded = counts.accepted + counts.steps
    return (
        f"sglang:num_running_reqs{{{labels}}} {counts.running}\n"
        f"sglang:num_queue_reqs{{{labels}}} 0\n"
        f"sglang:token_usage{{{labels}}} 0.25\n"
        f"sglang:num_retracted_requests_total{{{labels}}} 0\n"
        f'sglang:prompt_tokens_total{{{labels},is_streaming="true"}} {counts.prompts}\n'
        f'sglang:cached_tokens_total{{{labels},cache_source="device"}} 0\n'
        f'sglang:realtime_tokens_total{{{labels},mode="decode"}} {decoded}\n'
    )


def sglang_pages(given: Given, counts: Counts) -> dict[str, Any]:
    state: dict[str, Any] = {}
    if os.environ.get("SGLANG_EXPOSE_OWN_ENV_VARS") == "1":
        told = {name: text for name, text in os.environ.items() if name.startswith("SGLANG_")}
        state["env_vars"] = told
    if counts.steps:
        state["avg_spec_accept_length"] = 1 + counts.accepted / counts.steps
    info = {
        "tp_size": given.get("--tp-size", 1),
        "max_running_requests": given.get("--max-running-requests"),
        "speculative_num_draft_tokens": given.get("--speculative-num-draft-tokens"),
        "disable_radix_cache": given.get("--disable-radix-cache", False),
        "version": "0.5.23",
        "internal_states": [state],
    }
    return {"/server_info": info}


# TensorRT-LLM


def trtllm_file(given: Given) -> dict[str, Any]:
    content = yaml.safe_load(Path(given.get("--config")).read_text())
    assert isinstance(content, dict)
    return content


def trtllm_asked(given: Given) -> tuple[int, float]:
    drafting = trtllm_file(given).get("speculative_config", {})
    k = drafting.get("max_draft_len") or drafting.get("num_nextn_predict_layers") or 0
    forced = float(os.environ.get("TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS", "0"))
    return k, 1 + forced if forced else 1 + k / 2


def trtllm_metrics(given: Given, counts: Counts) -> str:
    if not trtllm_file(given).get("return_perf_metrics"):
        return ""
    labels = 'engine_type="undefined",model_name="undefined"'
    drafts = max(counts.by_step, default=0) + 1
    lines = [
        f"trtllm_num_requests_running{{{labels}}} {counts.running}",
        f"trtllm_num_requests_waiting{{{labels}}} 0",
        f"trtllm_kv_cache_utilization{{{labels}}} 0.25",
        f"trtllm_prompt_tokens_total{{{labels}}} {counts.prompts}",
        f"trtllm_prompt_cached_tokens_total{{{labels}}} 0",
    ]
    for at in range(drafts if counts.steps else 0):
        taken_here = sum(steps for n, steps in counts.by_step.items() if n > at)
        place = f'{labels},token_position="{at}"'
        lines.append(f"trtllm_spec_decode_drafted_tokens_total{{{place}}} {counts.steps}")
        lines.append(f"trtllm_spec_decode_accepted_tokens_total{{{place}}} {taken_here}")
    return "\n".join(lines) + "\n"


def trtllm_pages(given: Given, counts: Counts) -> dict[str, Any]:
    return {"/version": {"version": "1.3.0"}}


# vLLM


def vllm_drafting(given: Given) -> dict[str, Any]:
    content = json.loads(given.get("--speculative-config", "{}"))
    assert isinstance(content, dict)
    return content


def vllm_asked(given: Given) -> tuple[int, float]:
    drafting = vllm_drafting(given)
    k = drafting.get("num_speculative_tokens", 0)
    return k, float(drafting.get("synthetic_acceptance_length", 1 + k / 2))


def vllm_metrics(given: Given, counts: Counts) -> str:
    return (
        f"vllm:num_requests_running {counts.running}\n"
        "vllm:num_requests_waiting 0\nvllm:num_preemptions_total 0\n"
        f"vllm:prefix_cache_queries_total {counts.prompts}\nvllm:prefix_cache_hits_total 0\n"
        f"vllm:spec_decode_num_drafts_total {counts.steps}\n"
        f"vllm:spec_decode_num_accepted_tokens_total {counts.accepted}\n"
    )


def vllm_pages(given: Given, counts: Counts) -> dict[str, Any]:
    drafting, (k, length) = vllm_drafting(given), vllm_asked(given)
    if drafting.get("rejection_sample_method") == "synthetic":
        drafts = [min(1.0, max(0.0, length - 1 - at)) for at in range(k)]
        drafting["synthetic_acceptance_rates"] = drafts
    told = {"VLLM_USAGE_SOURCE": os.environ.get("VLLM_USAGE_SOURCE")}
    info = {"vllm_config": {"speculative_config": drafting}, "vllm_env": told}
    return {"/server_info?config_format=json": info}


CLICK = "Error: No such option: {}"
ENGINES = {
    "atom": Engine("--server-port", atom_asked, atom_metrics, atom_pages, model="--model"),
    "sglang": Engine("--port", sglang_asked, sglang_metrics, sglang_pages, model="--model-path"),
    "trtllm": Engine(
        "--port",
        trtllm_asked,
        trtllm_metrics,
        trtllm_pages,
        metrics_path="/prometheus/metrics",
        served="--served_model_name",
        complaint=CLICK,
    ),
    "vllm": Engine("--port", vllm_asked, vllm_metrics, vllm_pages),
}


# The server


class Handler(BaseHTTPRequestHandler):
    engine: Engine
    given: Given
    counts = Counts()
    rng = random.Random(5)

    def do_GET(self) -> None:
        named = self.given.get(self.engine.served)
        name = named[0] if isinstance(named, list) else named  # vLLM's may be several
        if self.path == self.engine.metrics_path:
            self.say(200, self.engine.metrics(self.given, self.counts), "text/plain")
            return
        pages = {"/health": {}, "/v1/models": {"data": [{"id": name}]}}
        pages |= self.engine.pages(self.given, self.counts)
        known = self.path in pages
        self.say(200 if known else 404, json.dumps(pages.get(self.path, {})), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        count = int(body.get("max_completion_tokens") or body.get("max_tokens") or 1)
        self.begin()
        try:
            if body.get("stream"):
                self.stream(count)
            else:
                list(self.generate(count))
                message = {"message": {"content": "#### 7"}, "finish_reason": "stop"}
                answer = {"choices": [message], "usage": usage(count)}
                self.say(200, json.dumps(answer), "application/json")
        finally:
            with self.counts.lock:
                self.counts.running -= 1

    def begin(self) -> None:
        with self.counts.lock:
            self.counts.running += 1
            self.counts.prompts += PROMPT_TOKENS

    def generate(self, count: int) -> Iterator[int]:
        """Yield the tokens of each step: one of the prompt, then those of verify steps, the last
        cut to ``count``. Counters take them uncut."""
        k, length = self.engine.asked(self.given)
        length = float(os.environ.get("STUB_AL", length))
        left = count
        yield 1
        left -= 1
        while left > 0:
            time.sleep(STEP_S)
            tokens = self.verified(length) if k else 1
            yield min(tokens, left)
            left -= tokens

    def verified(self, length: float) -> int:
        whole = int(length)
        with self.counts.lock:
            tokens = whole + (self.rng.random() < length - whole)
            self.counts.by_step[tokens - 1] = self.counts.by_step.get(tokens - 1, 0) + 1
        return tokens

    def stream(self, count: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        told = 0
        for tokens in self.generate(count):
            told += tokens
            end = "length" if told == count else None
            delta = {"index": 0, "delta": {"content": " x" * tokens}, "finish_reason": end}
            self.chunk({"choices": [delta]})
        self.chunk({"choices": [], "usage": usage(count)})
        self.wfile.write(b"data: [DONE]\n\n")

    def chunk(self, content: dict[str, Any]) -> None:
        head = {"id": "1", "object": "chat.completion.chunk"}
        self.wfile.write(b"data: " + json.dumps({**head, **content}).encode() + b"\n\n")

    def say(self, status: int, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet: a growing log counts as progress."""


def usage(count: int) -> dict[str, int]:
    total = PROMPT_TOKENS + count
    return {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": count, "total_tokens": total}


def main(engine: str, argv: Sequence[str]) -> None:
    Handler.engine, Handler.given = ENGINES[engine], parse(engine, argv)
    Handler.engine.asked(Handler.given)  # a file that cannot be read ends it here
    port = Handler.given.get(Handler.engine.port)
    server = ThreadingHTTPServer((Handler.given.get("--host"), port), Handler)
    if reason := os.environ.get("STUB_MONO_OFF"):
        print(f"mono decode off: {reason}", flush=True)
    print("listening", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
