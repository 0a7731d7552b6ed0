"""The command line of the engine: flags in, a resolved `EngineConfig` out. Imports no torch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from infx.domain.acceptance import REQUEST_LAWS, Acceptance
from infx.domain.errors import UsageError
from infx.engine.cache import KINDS
from infx.engine.config import LAYERS, MONO, EngineConfig
from infx.engine.shapes import MODELS, NULL
from infx.engine.weights import shape_of_source

__all__ = ["Address", "parse"]

SHAPES = f"{', '.join(MODELS)}, auto (that of the checkpoint's folder), or null"
CACHES = f"auto (fp32), {', '.join(KINDS)}"
EXIT_CODES = (
    "Exit codes: 0 drained, 2 refused (a code and a sentence on stderr), 3 the address is taken, or"
    " compiled layers cannot be kept, 4 a step or a rank failed."
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens; port 0 takes a free one."""

    host: str
    port: int


def parse(argv: Sequence[str] | None = None) -> tuple[EngineConfig, Address]:
    """Return the configuration and the address that ``argv`` asks for.

    Raises RefusalError or UsageError naming the flag; ``--help`` exits.
    """
    given = _parser().parse_args(argv)
    if not 0 <= given.port <= 65535:
        raise UsageError("bad-option", f"--port {given.port}: expected 0 to 65535")
    return _config(given), Address(given.host, given.port)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError("bad-option", message, hint="infx serve --help lists the flags")


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows a default where there is one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in ("", None):
            return action.help
        return super()._get_help_string(action)


def _parser() -> _Parser:
    parser = _Parser(
        prog="infx serve",
        usage="%(prog)s [options]",
        description="Serve a MiniMax-M3 shaped model over the OpenAI API, until SIGTERM or Ctrl-C.",
        epilog=EXIT_CODES,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    _add_model(parser)
    _add_server(parser)
    _add_capacity(parser)
    _add_speculation(parser)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("model").add_argument
    add("--model", default="mini", help=f"shape of the model: {SHAPES}")
    add("--weights", default="random:0", help="random:SEED, shipped, or a checkpoint's folder")
    add("--dtype", default="float32", help="type of weights and activations")
    add("--router-dtype", default="fp32", help="router weights: fp32 or bf16")
    add("--expert-dtype", default="fp32", help="expert weights: fp32 (as they are) or mxfp4")
    add("--projection-dtype", default="fp32", help="attention and dense MLP: fp32 or fp8")
    add("--kv-cache-dtype", default="auto", help=f"cached keys and values: {CACHES}")
    add("--index-cache-dtype", default="auto", help=f"the indexer's cached keys: {CACHES}")
    add("--mono", default="off", choices=MONO, help="fused decode layers, a call a layer")
    add("--layers", default="compiled", choices=LAYERS, help="what computes the target's layers")
    add("--tensor-parallel-size", type=int, default=1, help="ranks")
    add("--null-rate", type=float, default=0.0, help="for --model null: tokens/s of each request")
    add("--rank-limit-s", type=int, default=30, help="seconds that a rank may be silent in a step")
    add("--threads", type=int, default=0, help="torch threads a rank; 0: the cores, shared out")


def _add_server(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("server").add_argument
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=8000, help="port; 0 takes a free one")
    add("--served-model-name", default="", help="model id; default: the model's name")
    add("--nonce", default="", help="text that /server_info repeats, to know this process by")
    add("--queue-limit", type=int, default=256, help="requests that may wait; more get 429")


def _add_capacity(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("capacity").add_argument
    add("--max-num-seqs", type=int, default=8, help="requests a step may hold")
    add("--max-num-batched-tokens", type=int, default=512, help="rows a step may hold")
    add("--max-model-len", type=int, default=0, help="longest context; 0: the model's")
    add("--block-size", type=int, default=0, help="tokens a cache page holds; 0: the model's")
    add("--num-blocks", type=int, default=0, help="cache pages; 0: enough for max-num-seqs")
    add("--capture-sizes", default="", help="padded decode widths in rows, as 4,8,16")
    add("--no-prefix-caching", action="store_true", help="do not reuse cached prefixes")


def _add_speculation(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("speculation").add_argument
    add("--speculative-method", default="none", help="none, eagle3 or dspark")
    add("--num-speculative-tokens", type=int, default=0, help="drafts a step (K)")
    add("--synthetic-acceptance-length", type=float, help="tokens a step (AL) that a law decides")
    add("--acceptance-law", default="min-variance", choices=REQUEST_LAWS, help="law of the counts")
    add("--acceptance-curve", default="", help="for from-curve: P(draft i accepted), as 0.79,0.6")
    add("--acceptance-seed", type=int, default=0, help="seed of the law's draws")
    add("--dspark-verify", default="fixed", help="rows that DSpark's verify holds: fixed")


def _config(given: argparse.Namespace) -> EngineConfig:
    return EngineConfig(
        model=given.model,
        weights=given.weights,
        served_model_name=given.served_model_name or given.model,
        dtype=given.dtype,
        router_dtype=given.router_dtype,
        expert_dtype=given.expert_dtype,
        projection_dtype=given.projection_dtype,
        kv_cache_dtype=given.kv_cache_dtype,
        index_cache_dtype=given.index_cache_dtype,
        mono=given.mono,
        layers=given.layers,
        tp=given.tensor_parallel_size,
        rank_limit_s=given.rank_limit_s,
        max_num_seqs=given.max_num_seqs,
        max_num_batched_tokens=given.max_num_batched_tokens,
        max_model_len=given.max_model_len,
        block_size=given.block_size or _block_size(given),
        num_blocks=given.num_blocks,
        capture_sizes=_sizes(given.capture_sizes),
        prefix_caching=not given.no_prefix_caching,
        method=given.speculative_method,
        k=given.num_speculative_tokens,
        acceptance=_acceptance(given),
        acceptance_seed=given.acceptance_seed,
        dspark_verify=given.dspark_verify,
        queue_limit=given.queue_limit,
        threads=given.threads,
        null_rate=given.null_rate,
        nonce=given.nonce,
    )


def _block_size(given: argparse.Namespace) -> int:
    null = given.model == NULL
    return (MODELS["mini"]() if null else shape_of_source(given.model, given.weights)).block_size


def _acceptance(given: argparse.Namespace) -> Acceptance:
    k, length = given.num_speculative_tokens, given.synthetic_acceptance_length
    curve = _curve(given.acceptance_curve)
    if bool(curve) != (given.acceptance_law == "from-curve") or (curve and length is not None):
        raise UsageError(
            "bad-option",
            "--acceptance-law from-curve and --acceptance-curve go together and give the length:"
            " expected both without --synthetic-acceptance-length, or neither",
        )
    if curve:
        return Acceptance("synthetic", 1 + sum(curve), "from-curve", k=k, curve=curve)
    if length is None and given.acceptance_law != REQUEST_LAWS[0]:
        raise UsageError(
            "bad-option",
            f"--acceptance-law {given.acceptance_law} without a length: acceptance would be real;"
            " expected --synthetic-acceptance-length beside it, or neither",
        )
    if length is None:
        return Acceptance(k=k)
    return Acceptance("synthetic", length, given.acceptance_law, k=k)


def _curve(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError(
            "bad-option", f"--acceptance-curve {text[:60]}: expected numbers as 0.79,0.6"
        ) from None


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError("bad-option", f"--capture-sizes {text[:60]}: expected 4,8,16") from None
