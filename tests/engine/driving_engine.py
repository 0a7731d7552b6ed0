"""Runs an engine's scheduler and runner without threads or sockets."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from infx.engine.config import EngineConfig
from infx.engine.detokenizer import TextStream
from infx.engine.mono.coverage import Coverage
from infx.engine.request import Request, SamplingParams, TokenLogprob
from infx.engine.runner import Runner
from infx.engine.scheduler import Result, Scheduler, Step
from infx.engine.tokenizer import ChatTokenizer

TOKENIZER = ChatTokenizer()
GREEDY = SamplingParams(max_tokens=14, ignore_eos=True)

torch.set_num_threads(1)


class Dice:
    """Stands for a model where only the bookkeeping is under test: emits random counts."""

    pids: tuple[int, ...] = ()
    layers = "dice"
    refusal = None

    def __init__(self, seed: int, k: int) -> None:
        self.random, self.k, self.coverage = random.Random(seed), k, Coverage()

    def check(self) -> None:
        """No other process to look after."""

    def close(self) -> None:
        """Nothing to end."""

    def run(self, step: Step) -> Result:
        emitted = []
        for number, work in enumerate(step.work):
            most = len(work.tokens) if number < len(step.decodes) else int(work.last)
            count = self.random.randint(1, most) if most else 0
            emitted.append([self.random.randrange(97, 99) for _ in range(count)])
        drafts = [[97] * self.k if work.last else [] for work in step.work]
        return Result(emitted, drafts)


@dataclass
class Driven:
    """A scheduler and a runner; keeps shown text, counts verify steps and accepted drafts."""

    config: EngineConfig
    runner: Runner | Dice | None = None
    scheduler: Scheduler = field(init=False)
    arrivals: int = 0
    verify_steps: int = 0
    emitted_by_verify: int = 0
    most_running: int = 0
    shown: dict[Request, str] = field(default_factory=dict)
    logprobs: dict[Request, list[TokenLogprob]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.config)
        self.runner = self.runner or Runner(self.config, TOKENIZER.size)
        torch.set_num_threads(1)

    def add(self, prompt: Sequence[int], params: SamplingParams = GREEDY) -> Request:
        request = Request(
            number=self.arrivals,
            tokens=list(prompt),
            params=params,
            text=TextStream(TOKENIZER.token_bytes, params.stop),
            eos=TOKENIZER.eos,
            deliver=lambda emission: None,
        )
        self.arrivals += 1
        self.shown[request], self.logprobs[request] = "", []
        self.scheduler.add(request)
        return request

    def step(self, interrupt: Callable[[], None] = lambda: None) -> bool:
        """Take one step; ``interrupt`` runs while it is in flight."""
        step = self.scheduler.schedule()
        self.most_running = max(self.most_running, len(self.scheduler.running))
        if step is None:
            return False
        result = self.runner.run(step)
        interrupt()
        for _, emitted in zip(step.decodes, result.emitted, strict=False):
            self.verify_steps += 1
            self.emitted_by_verify += len(emitted)
        for request, emission in self.scheduler.commit(step, result):
            self.shown[request] += emission.text
            self.logprobs[request] += emission.logprobs
        self.scheduler.check()
        return True

    def finish(self) -> None:
        while self.step():
            pass


@functools.cache
def prompt(number: int, length: int) -> tuple[int, ...]:
    """A readable random prompt, the same for the same arguments."""
    generator = torch.Generator().manual_seed(number)
    return tuple(torch.randint(32, 127, (length,), generator=generator).tolist())


def outputs(
    config: EngineConfig, prompts: Sequence[Sequence[int]], params=GREEDY
) -> list[list[int]]:
    """Generated tokens of each prompt, all served together."""
    driven = Driven(config)
    requests = [driven.add(one, params) for one in prompts]
    driven.finish()
    return [request.tokens[request.prompt_tokens :] for request in requests]


def small(**changes) -> EngineConfig:
    """A configuration with a short context, in plain torch unless ``changes`` say otherwise."""
    fields = {"max_model_len": 512, "max_num_batched_tokens": 256, "layers": "reference"}
    return EngineConfig(**(fields | changes))
