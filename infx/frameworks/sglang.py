"""SGLang: ``python3 -m sglang.launch_server`` of a container image, or of its own environment.

It is started so that /server_info tells its variables (SGLANG_EXPOSE_OWN_ENV_VARS): they, not the
recipe, say whether acceptance is simulated. match-expected draws once a step for the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance, Law
from infx.domain.point import Arm
from infx.domain.record import EngineCounters
from infx.frameworks.base import Launch, Option, Paths, Refusal
from infx.frameworks.hub import checkpoint, refuse_weights, revision_words, tokenizer
from infx.frameworks.lmcache import LMCACHE_OWNED, lmcache_env
from infx.frameworks.options import conflicts, engine_options, environment, words
from infx.frameworks.refusing import (
    captured_requests,
    lacks,
    offload_bytes_a_rank,
    refuse_acceptance,
    refuse_captures,
    refuse_dtypes,
    refuse_env,
    refuse_method,
    refuse_mono,
    refuse_offload,
)
from infx.frameworks.sglang_server import (
    ACC_LEN,
    ACC_METHOD,
    ACC_TOKENS,
    INFO,
    PAGES,
    realised,
    running_acceptance,
    running_configuration,
)

__all__ = ["Sglang"]

NUMBERS = {
    "max_num_seqs": "--max-running-requests",
    "max_model_len": "--context-length",
    "block_size": "--page-size",
}

CACHE_TYPES = {"bf16": "bf16", "fp8": "fp8_e4m3", "mxfp4": "fp4_mx_block16"}

ALGORITHMS = {"eagle3": "EAGLE3", "mtp": "NEXTN", "dspark": "DSPARK", "draft-model": "STANDALONE"}
DRAFTED: Mapping[str, bool | None] = {
    **{"eagle3": True, "mtp": False, "dspark": None, "draft-model": True},
}

# Option -> the axis that says the same ("": the job).
OWNED = {
    **{flag.removeprefix("--"): axis for axis, flag in NUMBERS.items()},
    "tp-size": "tp",
    "pp-size": "pp",
    "ep-size": "ep",
    **dict.fromkeys(("enable-dp-attention", "dp-size"), "dp_attention"),
    "kv-cache-dtype": "kv_cache_dtype",
    **dict.fromkeys(("chunked-prefill-size", "max-prefill-tokens"), "max_num_batched_tokens"),
    "disable-radix-cache": "prefix_caching",
    **dict.fromkeys(("cuda-graph-bs-decode", "cuda-graph-max-bs-decode"), "capture_sizes"),
    **dict.fromkeys(("enable-hierarchical-cache", "enable-lmcache"), "kv_offload"),
    "hicache-size": "kv_offload_gb",
    **dict.fromkeys(("speculative-algorithm", "speculative-num-steps"), "k"),
    **dict.fromkeys(("speculative-num-draft-tokens", "speculative-eagle-topk"), "k"),
    **dict.fromkeys(("speculative-draft-model-path", "speculative-dspark-block-size"), "k"),
    **dict.fromkeys(("model-path", "revision", "served-model-name"), ""),
    **dict.fromkeys(("host", "port", "config", "enable-metrics"), ""),
}

OWNED_ENV = {
    **dict.fromkeys((ACC_LEN, ACC_METHOD, ACC_TOKENS), "the golden length of speculation"),
    "SGLANG_EXPOSE_OWN_ENV_VARS": "the job",
    **LMCACHE_OWNED,
}

CAPACITY = (
    *("mem-fraction-static", "max-total-tokens", "max-queued-requests", "stream-interval"),
    *("schedule-conservativeness", "watchdog-timeout", "log-level", "log-level-http"),
    *("decode-log-interval", "prefill-max-requests", "prefill-decode-interval"),
    *("enable-prefill-delayer", "prefill-delayer-max-delay-passes", "hicache-write-policy"),
    *("radix-eviction-policy", "num-continuous-decode-steps", "tokenizer-worker-num"),
)

GB = 10**9


class Sglang:
    """SGLang on one node."""

    name = "sglang"
    methods: tuple[str, ...] = ("none", *ALGORITHMS)
    laws: tuple[Law, ...] = ("batch-min-variance",)
    paths = Paths(notes=(INFO,))
    pages: tuple[str, ...] = PAGES
    options: Mapping[str, Option] = engine_options("sglang", capacity=CAPACITY)
    gauges: Mapping[str, str] = {
        "peak_running": "sglang:num_running_reqs",
        "peak_waiting": "sglang:num_queue_reqs",
        "kv_cache_usage_peak": "sglang:token_usage",
    }

    def refusals(self, arm: Arm) -> Sequence[Refusal]:
        """Return what SGLang lacks, and what an option says beside an axis."""
        found = [*conflicts(arm, OWNED), *refuse_env(arm, OWNED_ENV)]
        found += refuse_weights(self.name, arm)
        found += [*refuse_mono(self.name, arm), *lacks(self.name, arm, ("index_cache_dtype",))]
        found += refuse_dtypes(self.name, arm, {"kv_cache_dtype": CACHE_TYPES})
        found += refuse_captures(self.name, arm)
        found += [*refuse_offload(self.name, arm, ("native", "lmcache")), *_too_small(arm)]
        found += refuse_method(self.name, arm, self.methods, DRAFTED)
        return [*found, *refuse_acceptance(self.name, arm, self.laws)]

    def launch(self, arm: Arm, host: str, port: int, folder: Path, nonce: str = "") -> Launch:
        """Return the server's command; every axis that the arm sets stands in it, its acceptance in
        the environment. It repeats no nonce."""
        argv = ["python3", "-m", "sglang.launch_server"]
        argv += ["--model-path", checkpoint(arm.model.weights), *revision_words(arm)]
        argv += ["--served-model-name", arm.model.name, "--host", host, "--port", str(port)]
        argv += [*_axis_words(arm, self.options), *_draft_words(arm), "--enable-metrics"]
        argv += words(self.options, arm.options)
        env = {**arm.env, **environment(self.options, arm.options), **_axis_env(arm)}
        return Launch(argv=tuple(argv), env=env)

    def tokenizer(self, arm: Arm, folder: Path) -> str:
        """Return the checkpoint's own tokenizer, or what the recipe names."""
        return tokenizer(arm)

    def resolved(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration that /server_info answers."""
        return running_configuration(answers)

    def acceptance(self, answers: Mapping[str, Any]) -> Acceptance | None:
        """Return what the server's own variables say; None when it does not tell them."""
        return running_acceptance(answers)

    def nonce(self, answers: Mapping[str, Any]) -> str | None:
        """Return None: the server repeats nothing."""
        return None

    def counters(self, before: str, after: str) -> EngineCounters:
        """Return the realised acceptance length, preemptions and cache hits."""
        return realised(before, after)


def _axis_words(arm: Arm, options: Mapping[str, Option]) -> Iterator[str]:
    axes = arm.axes
    yield from ("--tp-size", str(axes.tp))
    if axes.dp_attention:
        yield from ("--dp-size", str(axes.tp), "--enable-dp-attention")
    for name, flag in NUMBERS.items():
        if (number := getattr(axes, name)) is not None:
            yield from (flag, str(number))
    said = {
        "pp-size": axes.pp if axes.pp > 1 else None,
        "ep-size": axes.ep if axes.ep > 1 else None,
        "kv-cache-dtype": CACHE_TYPES.get(axes.kv_cache_dtype),
        "cuda-graph-bs-decode": captured_requests(arm) or None,
        "disable-radix-cache": axes.prefix_caching is False or None,
        **_prefill(arm),
        **_offload(arm),
    }
    yield from words(options, said)


def _prefill(arm: Arm) -> dict[str, int | None]:
    """Tokens of prompts in a step: a piece of them, or whole prompts where they are not cut."""
    tokens = arm.axes.max_num_batched_tokens
    if arm.axes.chunked_prefill is False:
        return {"chunked-prefill-size": -1, "max-prefill-tokens": tokens}
    return {"chunked-prefill-size": tokens}


def _offload(arm: Arm) -> dict[str, Any]:
    if arm.axes.kv_offload == "none":
        return {}
    if arm.axes.kv_offload_backend == "lmcache":
        return {"enable-lmcache": True}
    return {"enable-hierarchical-cache": True, "hicache-size": offload_bytes_a_rank(arm) // GB}


def _too_small(arm: Arm) -> Iterator[Refusal]:
    """A size of 0 leaves the host's share to a ratio of the device's cache."""
    size = _offload(arm).get("hicache-size")
    if size == 0:
        ranks = arm.axes.tp * arm.axes.pp
        sentence = f"kv-offload-gb {arm.axes.kv_offload_gb} is less than 1 GB for each of"
        yield Refusal("unsupported-axis", f"{sentence} {ranks} ranks", "kv_offload_gb")


def _draft_words(arm: Arm) -> Iterator[str]:
    k = arm.axes.k
    if arm.method == "none" or not k:
        return
    yield from ("--speculative-algorithm", ALGORITHMS[arm.method])
    if arm.draft:
        yield from ("--speculative-draft-model-path", checkpoint(arm.draft))
    if arm.method == "dspark":
        yield from ("--speculative-dspark-block-size", str(k))
        return
    yield from ("--speculative-num-steps", str(k), "--speculative-eagle-topk", "1")
    yield from ("--speculative-num-draft-tokens", str(k + 1))


def _axis_env(arm: Arm) -> dict[str, str]:
    env = {"SGLANG_EXPOSE_OWN_ENV_VARS": "1"}
    if arm.acceptance.mode == "synthetic":
        env[ACC_LEN] = str(arm.acceptance.length)
        env[ACC_METHOD] = "match-expected"
        env[ACC_TOKENS] = "real-draft-token"  # token 100, the default, may hold text back
    if arm.axes.kv_offload == "dram" and arm.axes.kv_offload_backend == "lmcache":
        env |= lmcache_env(arm)
    return env
