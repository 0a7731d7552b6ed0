"""What the engine serves: shapes of the model, limits of the server, and what is refused.

A refusal is a `RefusalError`: a code of the engine family and a sentence, raised before anything is
loaded. Fields of `EngineConfig` that are axes carry the names of `infx.domain.axes`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from infx.domain.acceptance import Acceptance, distribution
from infx.domain.errors import UsageError
from infx.engine.shapes import MODELS, MOST_DRAFTS, ModelConfig

__all__ = ["EngineConfig", "RefusalError"]

# Torch starts as many as it is told, until the process can start none for anything else.
MOST_THREADS = 256


class RefusalError(UsageError):
    """The engine cannot serve what it was asked to; its code is of the engine family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """A resolved configuration. ``num_blocks`` counts cache pages; ``capture_sizes`` are rows.

    ``k`` is the number of drafts a step (0 without speculation). Raises RefusalError or
    UsageError when it cannot be served.
    """

    model: str = "mini"
    weights: str = "random:0"
    served_model_name: str = ""
    dtype: str = "float32"
    kv_cache_dtype: str = "fp32"
    index_cache_dtype: str = "fp32"
    mono: str = "off"
    tp: int = 1
    max_num_seqs: int = 8
    max_num_batched_tokens: int = 512
    max_model_len: int = 0
    block_size: int = 16
    num_blocks: int = 0
    capture_sizes: tuple[int, ...] = ()
    prefix_caching: bool = True
    method: str = "none"
    k: int = 0
    acceptance: Acceptance = field(default_factory=Acceptance)
    acceptance_seed: int = 0
    queue_limit: int = 256
    threads: int = 0
    nonce: str = ""

    def __post_init__(self) -> None:
        _refuse_unserved(self)
        _check_numbers(self)
        _check_capacity(self)
        _check_speculation(self)

    @property
    def shape(self) -> ModelConfig:
        """The shape of the served model."""
        return MODELS[self.model]()

    @property
    def weights_seed(self) -> int:
        """The seed of ``random:SEED``."""
        return int(self.weights.removeprefix("random:"))

    @property
    def context(self) -> int:
        """Longest prompt and output together (tokens): as asked, or what model and cache hold."""
        if self.max_model_len or not self.num_blocks:
            return self.max_model_len or self.shape.max_positions
        return min(self.shape.max_positions, self.num_blocks * self.block_size - self.slack)

    @property
    def rows_per_request(self) -> int:
        """Rows of one request in a decode step: its last token and K drafts."""
        return self.k + 1

    @property
    def slack(self) -> int:
        """Positions past a request's last token that drafts of its last step may write."""
        return 2 * self.k + 1

    @property
    def pages_per_request(self) -> int:
        """Pages that a request of full length holds."""
        return math.ceil((self.context + self.slack) / self.block_size)

    @property
    def pages(self) -> int:
        """Pages of the cache: ``num_blocks``, or enough that every admitted request fits."""
        return self.num_blocks or self.max_num_seqs * self.pages_per_request


def _refuse_unserved(config: EngineConfig) -> None:
    checks = {
        "unsupported-model": (config.model == "mini", f"--model {config.model}: only mini"),
        "unsupported-weights": (
            _is_random(config.weights),
            f"--weights {config.weights[:60]}: only random:SEED, a number of at most 18 digits",
        ),
        "mono-not-built": (
            config.mono == "off",
            f"--mono {config.mono}: this build has no mono kernels; use --mono off",
        ),
        "unsupported-tp": (config.tp == 1, f"--tensor-parallel-size {config.tp}: only 1"),
        "unsupported-dtype": (
            config.dtype == "float32"
            and {config.kv_cache_dtype, config.index_cache_dtype} <= {"auto", "fp32"},
            f"--dtype {config.dtype}, --kv-cache-dtype {config.kv_cache_dtype}, --index-cache-dtype"
            f" {config.index_cache_dtype}: only float32 weights and fp32 caches",
        ),
        "unsupported-method": (
            config.method in ("none", "eagle3"),
            f"--speculative-method {config.method}: only none and eagle3",
        ),
    }
    for code, (served, sentence) in checks.items():
        if not served:
            raise RefusalError(code, sentence)


def _is_random(weights: str) -> bool:
    kind, _, seed = weights.partition(":")
    return kind == "random" and seed.isdecimal() and len(seed) <= 18


def _check_numbers(config: EngineConfig) -> None:
    at_least = {
        "max-num-seqs": (config.max_num_seqs, 1),
        "max-num-batched-tokens": (config.max_num_batched_tokens, 1),
        "num-blocks": (config.num_blocks, 0),
        "max-model-len": (config.context, 2),
        "queue-limit": (config.queue_limit, 1),
        "threads": (config.threads, 0),
        "num-speculative-tokens": (config.k, 0),
        "acceptance-seed": (config.acceptance_seed, 0),
        "capture-sizes": (min(config.capture_sizes, default=1), 1),
    }
    for name, (value, least) in at_least.items():
        _require(value >= least, f"--{name} {value}: expected at least {least}")
    _require(
        config.threads <= MOST_THREADS,
        f"--threads {config.threads}: expected at most {MOST_THREADS}; use one a core, or fewer",
    )


def _check_capacity(config: EngineConfig) -> None:
    sizes = config.capture_sizes
    _require(
        sorted(set(sizes)) == list(sizes), f"--capture-sizes {sizes}: expected distinct, ascending"
    )
    longest = config.shape.max_positions
    _require(
        config.context <= longest,
        f"--max-model-len {config.context}: {config.model} serves at most {longest} tokens",
    )
    _require(
        config.block_size == config.shape.block_size,
        f"--block-size {config.block_size}: {config.model} selects blocks of "
        f"{config.shape.block_size} tokens; use that",
    )
    _require(
        config.max_num_batched_tokens >= config.max_num_seqs * config.rows_per_request,
        f"--max-num-batched-tokens {config.max_num_batched_tokens}: one decode step of max-num-seqs"
        f" x (K+1) = {config.max_num_seqs * config.rows_per_request} rows must fit",
    )
    if config.pages < config.pages_per_request:
        raise RefusalError(
            "too-little-memory",
            f"--num-blocks {config.num_blocks}: one request of max-model-len {config.context} needs"
            f" {config.pages_per_request} pages; raise it or lower --max-model-len",
        )


def _check_speculation(config: EngineConfig) -> None:
    drafts = config.method != "none"
    _require(
        config.k <= MOST_DRAFTS,
        f"--num-speculative-tokens {config.k}: expected at most {MOST_DRAFTS}",
    )
    _require(
        drafts == (config.k > 0),
        f"--speculative-method {config.method} with --num-speculative-tokens {config.k}: expected"
        " a method and K >= 1 together, or neither",
    )
    acceptance = config.acceptance
    if acceptance.mode == "real":
        return
    _require(drafts, "--synthetic-acceptance-length needs a speculative method")
    try:
        distribution(acceptance.law, acceptance.length or 0.0, config.k)
    except ValueError as error:
        raise UsageError("bad-option", f"--synthetic-acceptance-length: {error}") from error


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise UsageError("bad-option", sentence)
