"""The command line of the engine: flags in, a resolved `EngineConfig` out. Imports no torch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from infx.domain.acceptance import Acceptance
from infx.domain.errors import UsageError
from infx.engine.config import EngineConfig

__all__ = ["Address", "parse"]


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
        raise UsageError("bad-option", message)


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m infx.engine",
        description="Serve a MiniMax-M3 shaped model over the OpenAI API.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    _add_model(parser)
    _add_server(parser)
    _add_capacity(parser)
    _add_speculation(parser)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("model").add_argument
    add("--model", default="mini", help="shape of the model: mini")
    add("--weights", default="random:0", help="random:SEED")
    add("--dtype", default="float32", help="type of weights and activations")
    add("--kv-cache-dtype", default="fp32", help="type of cached keys and values")
    add("--index-cache-dtype", default="fp32", help="type of cached index keys")
    add("--mono", default="off", choices=("off", "on"), help="fused decode layers")
    add("--tensor-parallel-size", type=int, default=1, help="ranks")
    add("--threads", type=int, default=0, help="torch threads; 0: one a core")


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
    add("--block-size", type=int, default=16, help="tokens a cache page holds")
    add("--num-blocks", type=int, default=0, help="cache pages; 0: enough for max-num-seqs")
    add("--capture-sizes", default="", help="padded decode widths in rows, as 4,8,16")
    add("--no-prefix-caching", action="store_true", help="do not reuse cached prefixes")


def _add_speculation(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("speculation").add_argument
    add("--speculative-method", default="none", help="none or eagle3")
    add("--num-speculative-tokens", type=int, default=0, help="drafts a step (K)")
    add("--synthetic-acceptance-length", type=float, help="tokens a step (AL) that a law decides")
    add("--acceptance-law", default="min-variance", choices=("min-variance", "geometric"))
    add("--acceptance-seed", type=int, default=0, help="seed of the law's draws")


def _config(given: argparse.Namespace) -> EngineConfig:
    return EngineConfig(
        model=given.model,
        weights=given.weights,
        served_model_name=given.served_model_name or given.model,
        dtype=given.dtype,
        kv_cache_dtype=given.kv_cache_dtype,
        index_cache_dtype=given.index_cache_dtype,
        mono=given.mono,
        tp=given.tensor_parallel_size,
        max_num_seqs=given.max_num_seqs,
        max_num_batched_tokens=given.max_num_batched_tokens,
        max_model_len=given.max_model_len,
        block_size=given.block_size,
        num_blocks=given.num_blocks,
        capture_sizes=_sizes(given.capture_sizes),
        prefix_caching=not given.no_prefix_caching,
        method=given.speculative_method,
        k=given.num_speculative_tokens,
        acceptance=_acceptance(given),
        acceptance_seed=given.acceptance_seed,
        queue_limit=given.queue_limit,
        threads=given.threads,
        nonce=given.nonce,
    )


def _acceptance(given: argparse.Namespace) -> Acceptance:
    k = given.num_speculative_tokens
    if given.synthetic_acceptance_length is None:
        return Acceptance(k=k)
    return Acceptance("synthetic", given.synthetic_acceptance_length, given.acceptance_law, k=k)


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError("bad-option", f"--capture-sizes {text}: expected 4,8,16") from None
