"""What the engine serves: shapes of the model, limits of the server, and what is refused.

A refusal is a `RefusalError`: a code of the engine family and a sentence, raised before anything is
loaded. Fields of `EngineConfig` that are axes carry the names of `infx.domain.axes`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from infx.domain.acceptance import Acceptance, distribution
from infx.domain.errors import UsageError
from infx.engine.cache import KINDS, Kinds
from infx.engine.ranks.division import undivided
from infx.engine.refusal import RefusalError
from infx.engine.shapes import (
    DSPARK_LAYERS,
    MOST_DRAFTS,
    MXFP4_GROUP,
    NULL,
    ROUTER_DTYPES,
    ModelConfig,
)
from infx.engine.tokenizer import ChatTokenizer
from infx.engine.weights import shape_of_source

__all__ = ["LAYERS", "MONO", "EngineConfig", "RefusalError"]

# What experts and projections are rounded to; the rest of the weights is float32.
EXPERT_DTYPES = ("fp32", "mxfp4")
# What computes the target's layers: mono's compiled stages, or plain torch.
LAYERS = ("compiled", "reference")
MONO = ("off", "on")
PROJECTION_DTYPES = ("fp32", "fp8")

# Torch starts as many as it is told, until the process can start none for anything else.
MOST_THREADS = 256

# Speculative methods, and the cache layers of each one's draft.
DRAFT_LAYERS = {"none": 0, "eagle3": 1, "dspark": DSPARK_LAYERS}
# DSpark's block is the known token and at most this many masks, as it was trained.
MOST_MASKS = 7


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
    router_dtype: str = "fp32"
    expert_dtype: str = "fp32"
    projection_dtype: str = "fp32"
    kv_cache_dtype: str = "fp32"
    index_cache_dtype: str = "fp32"
    mono: str = "off"
    layers: str = "compiled"
    tp: int = 1
    rank_limit_s: int = 30
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
    dspark_verify: str = "fixed"
    queue_limit: int = 256
    threads: int = 0
    null_rate: float = 0.0
    nonce: str = ""

    def __post_init__(self) -> None:
        _refuse_unserved(self)
        _check_ranks(self)
        _check_numbers(self)
        _check_capacity(self)
        _check_speculation(self)

    @property
    def shape(self) -> ModelConfig:
        """The shape of the served model; the null model has mini's context and pages."""
        if self.model == NULL:
            return shape_of_source("mini", "random:0")
        return shape_of_source(self.model, self.weights, self.router_dtype)

    @property
    def context(self) -> int:
        """Longest prompt and output together (tokens): as asked, or what model and cache hold."""
        if self.max_model_len or not self.num_blocks:
            return self.max_model_len or self.shape.max_positions
        return min(self.shape.max_positions, self.num_blocks * self.block_size - self.slack)

    @property
    def taps(self) -> tuple[int, ...]:
        """Layers of the target whose output the draft sees."""
        shape = self.shape
        return shape.block_layers if self.method == "dspark" else shape.aux_layers

    @property
    def draft_layers(self) -> int:
        """Layers that the draft keeps in the cache, after the target's."""
        return DRAFT_LAYERS[self.method]

    @property
    def features(self) -> int:
        """Numbers a token that the cache keeps for the draft beside its layers: EAGLE3's alone."""
        return self.shape.hidden_size if self.method == "eagle3" else 0

    @property
    def cache_kinds(self) -> Kinds:
        """What the cache keeps keys, values and index keys as; ``auto`` is fp32."""
        return Kinds.asked(self.kv_cache_dtype, self.index_cache_dtype)

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
        "unsupported-method": (
            config.method in DRAFT_LAYERS,
            f"--speculative-method {config.method}: only {', '.join(DRAFT_LAYERS)}",
        ),
        "unsupported-verify": (
            config.dspark_verify == "fixed",
            f"--dspark-verify {config.dspark_verify}: every step verifies all K drafts here; use"
            " fixed",
        ),
    }
    for code, (served, sentence) in checks.items():
        if not served:
            raise RefusalError(code, sentence)
    _check_layers(config)
    _check_types(config)
    tokens = ChatTokenizer().size
    if config.shape.vocab_size < tokens:
        raise RefusalError(
            "unserved-config",
            f"vocab_size {config.shape.vocab_size} of {config.weights}: expected at least the"
            f" tokenizer's {tokens}",
        )


def _check_layers(config: EngineConfig) -> None:
    for name, value, values in (("mono", config.mono, MONO), ("layers", config.layers, LAYERS)):
        _require(value in values, f"--{name} {value[:40]}: expected {' or '.join(values)}")
    _require(
        config.mono == "off" or config.model != NULL,
        f"--mono on: --model {NULL} has no layers; leave it out",
    )
    _require(
        config.mono == "off" or config.layers == "compiled",
        "--mono on with --layers reference: mono is compiled layers; leave one of them out",
    )


def _check_types(config: EngineConfig) -> None:
    caches = ("auto", *KINDS)
    served = {
        "dtype": (config.dtype, ("float32",)),
        "kv-cache-dtype": (config.kv_cache_dtype, caches),
        "index-cache-dtype": (config.index_cache_dtype, caches),
        "router-dtype": (config.router_dtype, ROUTER_DTYPES),
        "expert-dtype": (config.expert_dtype, EXPERT_DTYPES),
        "projection-dtype": (config.projection_dtype, PROJECTION_DTYPES),
    }
    for name, (value, values) in served.items():
        if value not in values:
            raise RefusalError(
                "unsupported-dtype", f"--{name} {value[:40]}: expected {', '.join(values)}"
            )
    dim = config.shape.head_dim
    if "mxfp4" in (config.cache_kinds.kv, config.cache_kinds.index) and dim % MXFP4_GROUP:
        raise RefusalError(
            "unsupported-dtype",
            f"mxfp4 caches keep groups of {MXFP4_GROUP} and {config.model} has heads of {dim}; use"
            " another type",
        )
    if config.projection_dtype == "fp8" and config.tp > 1:
        raise RefusalError(
            "unsupported-dtype",
            f"--projection-dtype fp8 with --tensor-parallel-size {config.tp}: a rank sees a part of"
            " each row, so its scale would be another; use fp32 or one rank",
        )


def _check_ranks(config: EngineConfig) -> None:
    misfit = undivided(config.shape, config.tp)
    if config.model == NULL and config.tp > 1:
        misfit = "the null model has one rank"
    if misfit:
        raise RefusalError("unsupported-tp", f"--tensor-parallel-size {config.tp}: {misfit}")


def _check_numbers(config: EngineConfig) -> None:
    most = MOST_MASKS if config.method == "dspark" else MOST_DRAFTS
    _require(
        config.k <= most,
        f"--num-speculative-tokens {config.k}: {config.method} drafts at most {most}",
    )
    at_least = {
        "max-num-seqs": (config.max_num_seqs, 1),
        "max-num-batched-tokens": (config.max_num_batched_tokens, 1),
        "num-blocks": (config.num_blocks, 0),
        "max-model-len": (config.context, 2),
        "queue-limit": (config.queue_limit, 1),
        "threads": (config.threads, 0),
        "rank-limit-s": (config.rank_limit_s, 1),
        "null-rate": (config.null_rate, 0),
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
    _require(
        max(sizes, default=0) <= config.max_num_batched_tokens,
        f"--capture-sizes {sizes}: no step holds more rows than --max-num-batched-tokens"
        f" {config.max_num_batched_tokens}",
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
        config.model == NULL or not config.null_rate,
        f"--null-rate {config.null_rate}: only --model null has it",
    )
    _require(
        config.model != NULL or not drafts,
        f"--speculative-method {config.method}: --model null makes no drafts; leave it out",
    )
    _require(
        drafts == (config.k > 0),
        f"--speculative-method {config.method} with --num-speculative-tokens {config.k}: expected"
        " a method and K >= 1 together, or neither",
    )
    acceptance = config.acceptance
    if acceptance.mode == "real":
        return
    flag = "--acceptance-curve" if acceptance.curve else "--synthetic-acceptance-length"
    _require(drafts, f"{flag} is about drafts: expected --speculative-method and K beside it")
    try:
        distribution(acceptance.law, acceptance.length or 0.0, config.k, acceptance.curve)
    except ValueError as error:
        raise UsageError("bad-option", f"{flag}: {error}") from error


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise UsageError("bad-option", sentence)
