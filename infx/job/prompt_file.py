"""The prompts of a throughput point, as the file that aiperf sends line by line."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from infx.domain.errors import EngineError
from infx.domain.identity import content_id
from infx.domain.point import FixedLengths, Point
from infx.job.record import write_whole
from infx.workloads.chat_tokens import ChatTokens
from infx.workloads.prompts import make_prompts

__all__ = ["FILE", "prompt_seed", "write_prompts"]

FILE = "prompts.jsonl"

FASTEST_TOKEN_S = 0.001
"""No user gets tokens faster than this, so that a timed run has prompts to its end."""

TIMED_TOKENS = 4_000_000
"""The prompts of a timed run take no more tokens than this (2 s to make); should they be used up,
aiperf begins again with the first."""


def write_prompts(point: Point, tokenizer: str, folder: Path) -> Path:
    """Return the file of the point's prompts, written into ``folder``: warm-up first.

    aiperf goes through it in order and once, so that no prompt is sent twice and none of the
    warm-up is profiled. ``tokenizer`` is a folder or a hub id. Raises EngineError
    (``tokenizer-unknown``) and MeasurementError (``isl-too-short``).
    """
    load = point.workload
    assert isinstance(load, FixedLengths)
    profiled, warm_up = _profiled(load, point.conc), load.warmup_requests
    texts = make_prompts(warm_up + profiled, load.isl, prompt_seed(point), _tokens(tokenizer))
    names = [f"warmup-{n}" for n in range(warm_up)] + [f"profiling-{n}" for n in range(profiled)]
    rows = [
        json.dumps({"session_id": name, "text": text, "output_length": load.osl})
        for name, text in zip(names, texts, strict=True)
    ]
    path = folder / FILE
    write_whole(path, "".join(f"{row}\n" for row in rows).encode())
    return path


def prompt_seed(point: Point) -> int:
    """Return the seed of a point's prompts: its workload and concurrency decide them.

    Two versions of an engine get the same prompts. Two points of one server do not: with one seed
    the second found 98 % of its prompt tokens in the cache that the first had filled.
    """
    return int(content_id([point.workload, point.conc])[:7], 16)


def _profiled(load: FixedLengths, conc: int) -> int:
    if load.duration_s is None:
        return load.requests
    possible = int(conc * load.duration_s / (load.osl * FASTEST_TOKEN_S)) + conc
    return max(load.requests, min(possible, TIMED_TOKENS // load.isl))


@lru_cache(maxsize=1)
def _tokens(tokenizer: str) -> ChatTokens:
    try:
        folder = Path(tokenizer)
        return ChatTokens(folder if folder.is_dir() else _downloaded(tokenizer))
    except OSError as error:
        message = f"tokenizer {tokenizer!r} cannot be read: {error}"
        hint = "name a folder with tokenizer.json, or a hub id, in the recipe"
        raise EngineError("tokenizer-unknown", message, hint=hint) from error


def _downloaded(repository: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    wanted = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]
    try:
        return Path(snapshot_download(repository, allow_patterns=wanted))
    except HFValidationError as error:
        raise OSError(str(error)) from error
