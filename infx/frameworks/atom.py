"""ROCm/ATOM: ``python3 -m atom.entrypoints.openai_server``, in its container image.

Its HTTP port is ``--server-port``; ``--port`` is the engine's own. It captures graphs for whole
requests, so rows are divided by K+1. Its pages do not say whether acceptance is real: its command
line does, so the running process is asked for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance, Law
from infx.domain.point import Arm
from infx.domain.record import EngineCounters
from infx.frameworks.atom_mono import mono_refusals
from infx.frameworks.base import PROCESS, Launch, Option, Paths, Refusal
from infx.frameworks.counting import acceptance_length, grown, share, whole
from infx.frameworks.hub import checkpoint, refuse_weights, tokenizer
from infx.frameworks.lmcache import LMCACHE_OWNED, lmcache_env
from infx.frameworks.options import conflicts, engine_options, environment, words
from infx.frameworks.prometheus import Page, parse
from infx.frameworks.refusing import (
    captured_requests,
    refuse_acceptance,
    refuse_captures,
    refuse_dtypes,
    refuse_env,
    refuse_method,
    refuse_offload,
)

__all__ = ["Atom"]

INFO = "/server_info"
MONO = "ATOM_MONO_ENABLE"
KV_MXFP4 = "ATOM_M3_SPARSE_KV_MXFP4"

MONO_OFF = "mono decode off: "
"""ATOM refuses mono in one line of its log, with the reason, and serves without it."""

NUMBERS = {
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "max_model_len": "--max-model-len",
    "block_size": "--block-size",
}

# Our word -> ATOM's. MXFP4 pages are a switch beside FP8 ones.
KV_TYPES = {"bf16": "bf16", "fp8": "fp8", "mxfp4": "fp8"}
INDEX_TYPES = {"bf16": "bf16", "fp8": "fp8", "mxfp4": "fp4"}

DRAFTED: Mapping[str, bool | None] = {"eagle3": True, "mtp": False, "dspark": None}

# Option -> the axis that says the same ("": the job).
OWNED = {
    **{flag.removeprefix("--"): axis for axis, flag in NUMBERS.items()},
    "tensor-parallel-size": "tp",
    "pipeline-parallel-size": "pp",
    "enable-expert-parallel": "ep",
    "prefill-context-parallel-size": "tp",
    **dict.fromkeys(("enable-dp-attention", "data-parallel-size"), "dp_attention"),
    "kv-cache-dtype": "kv_cache_dtype",
    "index-cache-dtype": "index_cache_dtype",
    "cudagraph-capture-sizes": "capture_sizes",
    "enable-prefix-caching": "prefix_caching",
    "enable-chunked-prefill": "chunked_prefill",
    "kv-transfer-config": "kv_offload",
    **dict.fromkeys(("method", "draft-model", "num-speculative-tokens"), "k"),
    **dict.fromkeys(("spec-decode-acceptance-length", "spec-decode-acceptance-rate"), "k"),
    **dict.fromkeys(("model", "served-model-name", "host", "server-port"), ""),
}

OWNED_ENV = {
    MONO: "the axis mono",
    KV_MXFP4: "the axis kv-cache-dtype",
    **LMCACHE_OWNED,
}

CAPACITY = (
    *("gpu-memory-utilization", "enable-log-stats", "throughput-log-interval", "request-log"),
    *("cache-hit-rate-window", "disable-uvicorn-access-log", "timeout-keep-alive", "port"),
    *("data-parallel-base-port", "data-parallel-master-port", "torch-profiler-dir"),
)


def _env(kind: type, variable: str, capacity: bool = False) -> Option:
    name = variable.lower().replace("_", "-")
    return Option(name, kind, "", "", capacity=capacity, env=variable)


# https://github.com/ROCm/ATOM docs/environment_variables.md, and the public recipes.
MORE = (
    _env(bool, "ATOM_ENABLE_PREFILL_DELAYER", capacity=True),
    _env(int, "ATOM_PREFILL_DECODE_INTERVAL", capacity=True),
    _env(float, "ATOM_PREFILL_DELAYER_TARGET_FILL", capacity=True),
    _env(int, "ATOM_PREFILL_DELAYER_TTFT_MAX_TICKS", capacity=True),
    _env(int, "ATOM_PREFILL_DELAYER_PARTIAL_MAX_TICKS", capacity=True),
    _env(int, "ATOM_PREFILL_DELAYER_STALL_TICKS", capacity=True),
    _env(float, "ATOM_PREFILL_DELAYER_KV_HIGH_WATERMARK", capacity=True),
    _env(int, "ATOM_PREFILL_DELAYER_MAX_QUEUE_MS", capacity=True),
    _env(str, "ATOM_PREFIX_CACHE_POLICY", capacity=True),
    _env(float, "ATOM_PREFIX_CACHE_PROTECTED_RATIO", capacity=True),
    _env(bool, "ATOM_M3_INDEXER_CP"),
    _env(bool, "ATOM_FORCE_ATTN_TRITON"),
    _env(bool, "ATOM_FUSE_MXFP8_SHARED_INTO_MXFP4"),
    _env(bool, "ATOM_MXFP8_1X32_PRESHUFFLE"),
    _env(bool, "ATOM_PA_FLYDSL"),
    _env(str, "AITER_QUICK_REDUCE_QUANTIZATION"),
    _env(int, "LMCACHE_CHUNK_SIZE", capacity=True),
    _env(str, "LMCACHE_CACHE_POLICY", capacity=True),
    _env(str, "LMCACHE_LOOKUP_SERVER_WORKER_IDS", capacity=True),
)

LMCACHE = {"kv_connector": "lmcache_offload", "kv_role": "offload"}


class Atom:
    """AMD's engine, and the one whose mono layers infx's own follow."""

    name = "atom"
    methods: tuple[str, ...] = ("none", *DRAFTED)
    laws: tuple[Law, ...] = ("min-variance",)
    paths = Paths()
    pages: tuple[str, ...] = (INFO, PROCESS)
    options: Mapping[str, Option] = engine_options("atom", capacity=CAPACITY, more=MORE)
    gauges: Mapping[str, str] = {
        "peak_running": "atom:requests_running",
        "peak_waiting": "atom:requests_waiting",
        "kv_cache_usage_peak": "atom:kv_cache_usage_ratio",
    }

    def refusals(self, arm: Arm) -> Sequence[Refusal]:
        """Return what ATOM lacks, what mono needs, and settings that would do nothing."""
        found = [*conflicts(arm, OWNED), *refuse_env(arm, OWNED_ENV), *_parallel(arm)]
        found += refuse_weights(self.name, arm)
        found += refuse_dtypes(
            self.name, arm, {"kv_cache_dtype": KV_TYPES, "index_cache_dtype": INDEX_TYPES}
        )
        found += refuse_captures(self.name, arm)
        found += refuse_offload(self.name, arm, ("lmcache",))
        found += refuse_method(self.name, arm, self.methods, DRAFTED)
        found += refuse_acceptance(self.name, arm, self.laws)
        return [*found, *_scheduled_drafts(arm), *_idle_delayer(arm), *mono_refusals(arm)]

    def launch(self, arm: Arm, host: str, port: int, folder: Path, nonce: str = "") -> Launch:
        """Return the server's command; every axis that the arm sets stands in it, and mono always
        in the environment. It repeats no nonce."""
        argv = ["python3", "-m", "atom.entrypoints.openai_server"]
        argv += ["--model", checkpoint(arm.model.weights), "--served-model-name", arm.model.name]
        argv += ["--host", host, "--server-port", str(port)]
        argv += [*_axis_words(arm, self.options), *_draft_words(arm)]
        argv += words(self.options, arm.options)
        env = {**arm.env, **environment(self.options, arm.options), **_axis_env(arm)}
        mono_off = {"mono-off": MONO_OFF} if arm.axes.mono == "on" else {}
        return Launch(argv=tuple(argv), env=env, log_faults=mono_off)

    def tokenizer(self, arm: Arm, folder: Path) -> str:
        """Return the checkpoint's own tokenizer, or what the recipe names."""
        return tokenizer(arm)

    def resolved(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the ranks that /server_info tells, which is all it does; with data-parallel
        attention it counts them otherwise."""
        info = answers.get(INFO, {})
        return {"tp": info.get("tp_size")} if info.get("dp_size") == 1 else {}

    def acceptance(self, answers: Mapping[str, Any]) -> Acceptance | None:
        """Return the acceptance that the running process was started with; None when it cannot be
        read: no page tells."""
        started = answers.get(PROCESS)
        return _forced(started["argv"]) if started else None

    def nonce(self, answers: Mapping[str, Any]) -> str | None:
        """Return None: the server repeats nothing."""
        return None

    def counters(self, before: str, after: str) -> EngineCounters:
        """Return the realised acceptance length, preemptions and cache hits. What LMCache brought
        is no hit here: ATOM counts those of its device."""
        start, end = parse(before), parse(after)
        steps = _grown(start, end, "mtp_decode_steps")
        return EngineCounters(
            acceptance_length=acceptance_length(_grown(start, end, "mtp_accepted_tokens"), steps),
            verify_steps=whole(steps),
            preemptions=whole(_grown(start, end, "preemptions")),
            prefix_cache_hit_share=share(
                _grown(start, end, "prefix_cache_cached_tokens"),
                _grown(start, end, "prefix_cache_full_tokens"),
            ),
        )


def _axis_words(arm: Arm, options: Mapping[str, Option]) -> Iterator[str]:
    axes = arm.axes
    yield from ("--tensor-parallel-size", str(axes.tp))
    if axes.pp > 1:
        yield from ("--pipeline-parallel-size", str(axes.pp))
    for name, flag in NUMBERS.items():
        if (number := getattr(axes, name)) is not None:
            yield from (flag, str(number))
    said = {
        "enable-expert-parallel": axes.ep > 1 or None,
        "enable-dp-attention": axes.dp_attention or None,
        "kv-cache-dtype": KV_TYPES.get(axes.kv_cache_dtype),
        "index-cache-dtype": INDEX_TYPES.get(axes.index_cache_dtype),
        "cudagraph-capture-sizes": captured_requests(arm) or None,
        "enable-prefix-caching": axes.prefix_caching,
        "enable-chunked-prefill": axes.chunked_prefill,
        "kv-transfer-config": json.dumps(LMCACHE) if axes.kv_offload == "dram" else None,
    }
    yield from words(options, said)


def _draft_words(arm: Arm) -> Iterator[str]:
    if arm.method == "none" or not arm.axes.k:
        return
    yield from ("--method", arm.method)
    if arm.draft:
        yield from ("--draft-model", checkpoint(arm.draft))
    yield from ("--num-speculative-tokens", str(arm.axes.k))
    if arm.acceptance.mode == "synthetic":
        yield from ("--spec-decode-acceptance-length", str(arm.acceptance.length))


def _axis_env(arm: Arm) -> dict[str, str]:
    env = {MONO: str(int(arm.axes.mono == "on"))}
    if arm.axes.kv_cache_dtype == "mxfp4":
        env[KV_MXFP4] = "1"
    if arm.axes.kv_offload == "dram":
        env |= lmcache_env(arm)
    return env


def _parallel(arm: Arm) -> Iterator[Refusal]:
    ranks = arm.axes.tp
    if arm.axes.ep not in (1, ranks):
        sentence = f"ep {arm.axes.ep} with tp {ranks}: ATOM spreads experts over all ranks or none"
        yield Refusal("unsupported-axis", sentence, "ep")


def _scheduled_drafts(arm: Arm) -> Iterator[Refusal]:
    """A scheduler that cuts a verify short makes a forced length unreachable."""
    told = str(arm.options.get("dspark-config") or "")
    if arm.acceptance.mode == "synthetic" and "confidence_schedule" in told:
        sentence = "dspark-config schedules drafts by confidence: a synthetic length needs all of K"
        yield Refusal("option-conflict", sentence, "k")


def _idle_delayer(arm: Arm) -> Iterator[Refusal]:
    """Without data-parallel attention the delayer's own switch does nothing (ATOM's docs)."""
    asked = arm.options.get("atom-enable-prefill-delayer")
    if asked and not arm.axes.dp_attention and not arm.options.get("atom-prefill-decode-interval"):
        sentence = "atom-enable-prefill-delayer does nothing without atom-prefill-decode-interval"
        yield Refusal("prefill-delayer", f"{sentence} above 0")


def _forced(argv: Sequence[str]) -> Acceptance | None:
    """Return the acceptance of a command line; None without its model: that is another text."""
    if _word(argv, "model") is None:
        return None
    k = int(_word(argv, "num-speculative-tokens") or 0)
    length = _word(argv, "spec-decode-acceptance-length")
    rate = _word(argv, "spec-decode-acceptance-rate")
    if length is not None:
        return Acceptance("synthetic", float(length), k=k)
    return Acceptance(k=k) if rate is None else Acceptance("synthetic", 1 + float(rate) * k, k=k)


def _word(argv: Sequence[str], name: str) -> str | None:
    """Return the value of ``--name`` in either of its spellings, the last one given."""
    found, ahead = None, [*argv, ""][1:]
    for word, following in zip(argv, ahead, strict=True):
        flag, equals, value = word.partition("=")
        if flag.startswith("--") and flag[2:].replace("_", "-") == name:
            found = value if equals else following
    return found


def _grown(start: Page, end: Page, name: str) -> float | None:
    """Counters end in _total in newer builds, and an exporter may write ``_`` for ``:``."""
    spelled = (f"atom{mark}{name}{tail}" for mark in (":", "_") for tail in ("_total", ""))
    return grown(start, end, *spelled)
