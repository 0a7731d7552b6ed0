"""A model served without a server, with someone who looks at each decode step before it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from infx.engine.batch import Batch, Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.detokenizer import TextStream
from infx.engine.request import Request, SamplingParams
from infx.engine.runner import Runner
from infx.engine.scheduler import Result, Scheduler, Step
from infx.engine.tokenizer import ChatTokenizer
from infx.workloads.gsm_mini import question_text, questions

__all__ = ["Decode", "prompts", "serve"]

# Of the prompts: questions that the shipped model has not seen.
SEED = 7


@dataclass(frozen=True, slots=True)
class Decode:
    """A decode step about to run: its rows, each request's drafts, and what the model has of it.

    Whoever looks may write the cache at the rows' own slots: the step writes them again.
    """

    batch: Batch
    drafts: tuple[tuple[int, ...], ...]
    cache: KvCache
    embed: Tensor
    head: Callable[[Tensor], Tensor]
    vocabulary: int


Watch = Callable[[Decode], bool]
"""Looks at a step; False: that was enough."""


def prompts(count: int) -> list[list[int]]:
    """Return ``count`` questions as token ids."""
    tokenizer = ChatTokenizer()
    return [tokenizer.encode(question_text(one)) for one in questions("heldout", count, SEED)]


def serve(config: EngineConfig, given: Sequence[list[int]], output: int, watch: Watch) -> None:
    """Generate ``output`` tokens after each of ``given``, greedily, until ``watch`` has enough."""
    tokenizer = ChatTokenizer()
    runner, scheduler = _Watched(config, tokenizer.size, watch), Scheduler(config)
    for number, prompt in enumerate(given):
        scheduler.add(
            Request(
                number=number,
                tokens=list(prompt),
                params=SamplingParams(max_tokens=output, ignore_eos=True),
                text=TextStream(tokenizer.token_bytes),
                eos=tokenizer.eos,
                deliver=lambda emission: None,
            )
        )
    while runner.wanted and (step := scheduler.schedule()) is not None:
        scheduler.commit(step, runner.run(step))
    runner.close()


class _Watched(Runner):
    def __init__(self, config: EngineConfig, vocabulary: int, watch: Watch) -> None:
        super().__init__(config, vocabulary)
        self.wanted, self._watch = True, watch

    def run(self, step: Step) -> Result:
        if not step.prefills:
            self.wanted = self._watch(self._decode(step))
        return super().run(step)

    def _decode(self, step: Step) -> Decode:
        spans = [Span(work.tokens, work.start, work.request.pages) for work in step.decodes]
        return Decode(
            batch=make_batch(spans, self._block, self.width(step)),
            drafts=tuple(tuple(work.tokens[1:]) for work in step.decodes),
            cache=self._cache,
            embed=self._target.embed,
            head=self._target.head,
            vocabulary=self._vocabulary,
        )
