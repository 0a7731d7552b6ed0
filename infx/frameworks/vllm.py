"""vLLM: ``vllm serve`` of a container image, or of an environment of its own.

Its `/server_info` tells the whole configuration, and is served in its development mode only: infx
starts it in that mode, so that what runs can be held against what was planned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import floor
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance, Law
from infx.domain.axes import Axes
from infx.domain.point import Arm
from infx.domain.record import EngineCounters
from infx.frameworks.base import Launch, Option, Paths, Refusal
from infx.frameworks.counting import acceptance_length, grown, whole
from infx.frameworks.hub import checkpoint, refuse_weights, revision_words, tokenizer
from infx.frameworks.options import conflicts, engine_options, environment, words
from infx.frameworks.prometheus import Page, parse
from infx.frameworks.refusing import (
    refuse_acceptance,
    refuse_dtypes,
    refuse_env,
    refuse_method,
    refuse_mono,
    refuse_offload,
)
from infx.frameworks.vllm_server import INFO, running_acceptance, running_configuration

__all__ = ["Vllm"]

# Axis -> flag, for the axes that are numbers with the engine's own default.
NUMBERS = {
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "max_model_len": "--max-model-len",
    "block_size": "--block-size",
}
SWITCHES = {
    "prefix_caching": "enable-prefix-caching",
    "chunked_prefill": "enable-chunked-prefill",
}

# Our word -> vLLM's, for the types that it has.
CACHE_TYPES = {"bf16": "bfloat16", "fp8": "fp8"}
INDEX_TYPES = {"bf16": "bf16", "fp8": "fp8", "mxfp4": "mxfp4"}
METHODS = {
    "eagle3": "eagle3",
    "mtp": "mtp",
    "dspark": "dspark",
    "draft-model": "draft_model",
    "ngram": "ngram",
}
OFFLOADERS = ("native", "lmcache")

DRAFTED: Mapping[str, bool | None] = {
    **{"eagle3": True, "dspark": True, "draft-model": True},
    **{"mtp": None, "ngram": False},
}

# Keys of --speculative-config that the arm says; an option of that name may add others.
SPOKEN_FOR = frozenset(
    {"method", "model", "num_speculative_tokens", "rejection_sample_method"}
    | {"synthetic_acceptance_length", "synthetic_acceptance_rates"}
)

# Option -> the axis that says the same ("": the job).
OWNED = {
    **{flag.removeprefix("--"): axis for axis, flag in NUMBERS.items()},
    **{flag: axis for axis, flag in SWITCHES.items()},
    "tensor-parallel-size": "tp",
    "prefill-context-parallel-size": "tp",
    "pipeline-parallel-size": "pp",
    "enable-expert-parallel": "ep",
    "data-parallel-size": "dp_attention",
    "cudagraph-capture-sizes": "capture_sizes",
    "kv-cache-dtype": "kv_cache_dtype",
    "kv-transfer-config": "kv_offload",
    "kv-offloading-size": "kv_offload_gb",
    "kv-offloading-backend": "kv_offload_backend",
    "spec-tokens": "k",
    **dict.fromkeys(("spec-method", "spec-model"), "k"),
    **dict.fromkeys(
        ("host", "port", "uds", "model", "revision", "served-model-name", "config"), ""
    ),
}

OWNED_ENV = dict.fromkeys(
    ("VLLM_SERVER_DEV_MODE", "VLLM_NO_USAGE_STATS", "VLLM_USAGE_SOURCE"), "the job"
)

# Options that decide how many requests fit or how they are logged, never an answer.
CAPACITY = (
    *("gpu-memory-utilization", "kv-cache-memory-bytes", "num-gpu-blocks-override"),
    *("max-cudagraph-capture-size", "api-server-count", "stream-interval", "max-log-len"),
    *("max-num-queued-reqs", "max-num-queued-tokens", "safetensors-load-strategy"),
    *("disable-log-stats", "enable-log-requests", "disable-uvicorn-access-log"),
    *("uvicorn-log-level", "shutdown-timeout", "distributed-executor-backend"),
)

MORE = (
    Option("cpu-kvcache-space", int, "", "", capacity=True, env="VLLM_CPU_KVCACHE_SPACE"),
    Option("cpu-omp-threads-bind", str, "", "", capacity=True, env="VLLM_CPU_OMP_THREADS_BIND"),
)

GIB, GB = 1 << 30, 10**9


class Vllm:
    """The engine that most public entries run."""

    name = "vllm"
    methods: tuple[str, ...] = ("none", *METHODS)
    laws: tuple[Law, ...] = ("min-variance", "from-curve")
    paths = Paths()
    pages: tuple[str, ...] = (INFO, "/v1/models")
    options: Mapping[str, Option] = engine_options("vllm", capacity=CAPACITY, more=MORE)
    gauges: Mapping[str, str] = {
        "peak_running": "vllm:num_requests_running",
        "peak_waiting": "vllm:num_requests_waiting",
        "kv_cache_usage_peak": "vllm:kv_cache_usage_perc",
    }

    def refusals(self, arm: Arm) -> Sequence[Refusal]:
        """Return what vLLM lacks, and what an option says beside an axis."""
        return [
            *conflicts(arm, OWNED),
            *refuse_env(arm, OWNED_ENV),
            *refuse_weights(self.name, arm),
            *refuse_mono(self.name, arm),
            *refuse_dtypes(
                self.name, arm, {"kv_cache_dtype": CACHE_TYPES, "index_cache_dtype": INDEX_TYPES}
            ),
            *refuse_offload(self.name, arm, OFFLOADERS),
            *refuse_method(self.name, arm, self.methods, DRAFTED),
            *refuse_acceptance(self.name, arm, self.laws),
            *_unspread(arm),
            *_unread(arm),
        ]

    def launch(self, arm: Arm, host: str, port: int, folder: Path, nonce: str = "") -> Launch:
        """Return ``vllm serve``; every axis that the arm sets stands in it.

        Raises EngineError (``weights-missing``) for a model that is not among the engines.
        """
        model = checkpoint(arm.model.weights)
        argv = ["vllm", "serve", model, "--host", host, "--port", str(port)]
        argv += ["--served-model-name", arm.model.name, *revision_words(arm)]
        argv += _axis_words(arm, self.options)
        argv += words(self.options, _plain_options(arm))
        argv += _merged("attention-config", arm, _attention(arm.axes))
        argv += _merged("speculative-config", arm, _speculation(arm)) if arm.axes.k else []
        told = {"VLLM_USAGE_SOURCE": nonce} if nonce else {}
        asked = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", **told}
        env = {**arm.env, **environment(self.options, arm.options), **asked}
        return Launch(argv=tuple(argv), env=env)

    def tokenizer(self, arm: Arm, folder: Path) -> str:
        """Return the model's own tokenizer, or what the recipe names."""
        return tokenizer(arm)

    def resolved(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration that /server_info answers; empty where it is not served."""
        return running_configuration(answers)

    def acceptance(self, answers: Mapping[str, Any]) -> Acceptance | None:
        """Return the acceptance of /server_info's speculative configuration; None without it."""
        return running_acceptance(answers)

    def nonce(self, answers: Mapping[str, Any]) -> str | None:
        """Return the text that a start of infx left in the environment; None without it.

        The variable names who reports usage statistics, which infx switches off: it is the one
        free text that /server_info repeats and that changes nothing.
        """
        told = answers.get(INFO, {}).get("vllm_env", {}).get("VLLM_USAGE_SOURCE")
        return None if told is None else str(told)

    def counters(self, before: str, after: str) -> EngineCounters:
        """Return the realised acceptance length, preemptions and cache hits."""
        start, end = parse(before), parse(after)
        drafts = grown(start, end, "vllm:spec_decode_num_drafts_total")
        accepted = grown(start, end, "vllm:spec_decode_num_accepted_tokens_total")
        return EngineCounters(
            acceptance_length=acceptance_length(accepted, drafts),
            verify_steps=whole(drafts),
            preemptions=whole(grown(start, end, "vllm:num_preemptions_total")),
            prefix_cache_hit_share=_hit_share(start, end),
        )


def _plain_options(arm: Arm) -> dict[str, Any]:
    merged = ("attention-config", "speculative-config")
    return {name: value for name, value in arm.options.items() if name not in merged}


def _axis_words(arm: Arm, options: Mapping[str, Option]) -> Iterator[str]:
    yield from _parallel_words(arm.axes)
    for name, flag in NUMBERS.items():
        if (number := getattr(arm.axes, name)) is not None:
            yield from (flag, str(number))
    yield from words(options, {flag: getattr(arm.axes, name) for name, flag in SWITCHES.items()})
    if arm.axes.capture_sizes:
        yield from ("--cudagraph-capture-sizes", *map(str, arm.axes.capture_sizes))
    if arm.axes.kv_cache_dtype != "auto":
        yield from ("--kv-cache-dtype", CACHE_TYPES[arm.axes.kv_cache_dtype])
    yield from _offload_words(arm.axes)


def _parallel_words(axes: Axes) -> Iterator[str]:
    """With data-parallel attention each rank is a replica; the experts alone span all of them."""
    ranks = "--data-parallel-size" if axes.dp_attention else "--tensor-parallel-size"
    yield from (ranks, str(axes.tp))
    if axes.pp > 1:
        yield from ("--pipeline-parallel-size", str(axes.pp))
    if axes.ep > 1:
        yield "--enable-expert-parallel"


def _offload_words(axes: Axes) -> Iterator[str]:
    if axes.kv_offload == "none":
        return
    if axes.kv_offload_gb is not None:  # vLLM counts in GiB, over all ranks
        yield from ("--kv-offloading-size", f"{floor(axes.kv_offload_gb * GB / GIB * 100) / 100:g}")
    if axes.kv_offload_backend != "auto":
        yield from ("--kv-offloading-backend", axes.kv_offload_backend)


def _attention(axes: Axes) -> dict[str, Any]:
    kind = axes.index_cache_dtype
    return {} if kind == "auto" else {"indexer_kv_dtype": INDEX_TYPES[kind]}


def _speculation(arm: Arm) -> dict[str, Any]:
    """Return what the arm says of drafts; a real acceptance says nothing of their acceptance."""
    content: dict[str, Any] = {"method": METHODS[arm.method]}
    content |= {"model": checkpoint(arm.draft)} if arm.draft else {}
    content |= {"num_speculative_tokens": arm.axes.k}
    if arm.acceptance.mode == "real":
        return content
    content |= {"rejection_sample_method": "synthetic"}
    if arm.acceptance.law == "from-curve":
        return content | {"synthetic_acceptance_rates": list(arm.acceptance.curve)}
    return content | {"synthetic_acceptance_length": arm.acceptance.length}


def _merged(name: str, arm: Arm, ours: Mapping[str, Any]) -> list[str]:
    """Return the flag whose one word of JSON holds the option's keys and those of the axes."""
    content = {**_json_option(name, arm), **ours}
    return [f"--{name}", json.dumps(content, separators=(",", ":"))] if content else []


def _json_option(name: str, arm: Arm) -> dict[str, Any]:
    """Return the option's JSON object. Raises ValueError when it is not one."""
    content = json.loads(str(arm.options.get(name) or "{}"))
    if not isinstance(content, dict):
        raise ValueError(f"expected an object, not {content!r}")
    return content


def _unspread(arm: Arm) -> Iterator[Refusal]:
    axes = arm.axes
    if axes.ep not in (1, axes.tp):
        sentence = f"ep {axes.ep} with tp {axes.tp}: vLLM spreads experts over all ranks or none"
        yield Refusal("unsupported-axis", sentence, "ep")


def _unread(arm: Arm) -> Iterator[Refusal]:
    """Yield what an option of JSON says that an axis says, or that cannot be read."""
    for name, ours in (
        ("speculative-config", SPOKEN_FOR),
        ("attention-config", frozenset({"indexer_kv_dtype"})),
    ):
        try:
            said = sorted(ours & _json_option(name, arm).keys())
        except ValueError as error:
            yield Refusal("option-conflict", f"{name} is not a JSON object: {error}", name)
            continue
        if said:
            sentence = f"{name} says {', '.join(said)}, as the axes do"
            yield Refusal("option-conflict", sentence, name)


def _hit_share(start: Page, end: Page) -> float | None:
    """Tokens found on the device or brought from the host, over all that were looked for."""
    asked = end.since(start, "vllm:prefix_cache_queries_total")
    names = ("vllm:prefix_cache_hits_total", "vllm:external_prefix_cache_hits_total")
    found = [end.since(start, name) for name in names]
    if not asked or found[0] is None:
        return None
    return sum(hits or 0.0 for hits in found) / asked
