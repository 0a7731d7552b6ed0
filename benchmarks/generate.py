"""One request's tokens/s: mono in the step loop against `generate` of transformers, same weights.

    python -m benchmarks.generate [--save] [--rounds 5] [--tokens 128]

A model of transformers with random weights (`minimax_m3_vl` at mini's shape, float32) is saved and
served from its folder, so both arms hold the same numbers; their greedy tokens are compared. The
arms take turns in random order, round after round, in one process with the same number of torch
threads, since machines are shared and noisy. Needs transformers.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.server import PROMPT, measured, request_of

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks/results/generate.json"
ARMS = {"mono": {"mono": "on"}, "unfused": {}, "torch": {"layers": "reference"}}

Arm = Callable[[int], tuple[float, list[int]]]


def public_model(folder: Path) -> Any:
    """Return a model of transformers with random weights, saved in ``folder`` as well."""
    import torch
    from transformers.models.minimax_m3_vl import modeling_minimax_m3_vl as public
    from transformers.models.minimax_m3_vl.configuration_minimax_m3_vl import (
        MiniMaxM3VLTextConfig,
    )

    from infx.engine.shapes import mini
    from infx.engine.weights.public_config import public_config

    torch.manual_seed(0)
    text = public_config(mini())["text_config"]
    model = public.MiniMaxM3VLForCausalLM(
        MiniMaxM3VLTextConfig(**text, bos_token_id=None, eos_token_id=None)
    )
    model.float().eval().save_pretrained(folder)
    return model


def generating(model: Any) -> Arm:
    """Return what gives the seconds and the ids of so many greedy tokens of `generate`."""
    import torch

    from infx.engine.tokenizer import ChatTokenizer

    unused = list(range(ChatTokenizer().size, model.config.vocab_size))

    @torch.inference_mode()
    def run(tokens: int) -> tuple[float, list[int]]:
        """Return the seconds and the ids."""
        began = time.perf_counter()
        out = model.generate(
            torch.tensor([PROMPT]),
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            do_sample=False,
            suppress_tokens=unused,
        )
        return time.perf_counter() - began, out[0, len(PROMPT) :].tolist()

    return run


def stepping(folder: Path, **flags: str) -> Arm:
    """Return the same of the step loop, prompt included as it is in `generate`."""
    from infx.engine.config import EngineConfig
    from infx.engine.runner import Runner
    from infx.engine.scheduler import Scheduler
    from infx.engine.tokenizer import ChatTokenizer

    config = EngineConfig(
        model="auto", weights=str(folder), max_model_len=1024, prefix_caching=False, **flags
    )
    tokenizer = ChatTokenizer()
    runner, scheduler = Runner(config, tokenizer.size), Scheduler(config)

    def run(tokens: int) -> tuple[float, list[int]]:
        """Return the seconds and the ids."""
        request = request_of(tokenizer, tokens)
        scheduler.add(request)
        began = time.perf_counter()
        while (step := scheduler.schedule()) is not None:
            scheduler.commit(step, runner.run(step))
        return time.perf_counter() - began, request.tokens[len(PROMPT) :]

    return run


def compare(rounds: int, tokens: int) -> dict[str, Any]:
    """Return tokens/s of each arm, the ratio to `generate` by round, and the equal first tokens."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arms = {"generate": generating(public_model(folder))}
        arms |= {arm: stepping(folder, **flags) for arm, flags in ARMS.items()}
    told = {name: arm(tokens)[1] for name, arm in arms.items()}
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name in random.sample(list(arms), len(arms)):
            seconds[name].append(arms[name](tokens)[0])
    return {
        "tokens_per_s": {n: round(tokens / statistics.median(s), 1) for n, s in seconds.items()},
        "times_generate": {
            name: [round(a / b, 2) for a, b in zip(seconds["generate"], seconds[name], strict=True)]
            for name in ARMS
        },
        "equal_tokens": {name: _equal(told[name], told["generate"]) for name in ARMS},
        "tokens": tokens,
    }


def _equal(a: list[int], b: list[int]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))


if __name__ == "__main__":
    measured(__doc__, compare, RESULT)
