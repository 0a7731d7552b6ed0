"""Serves random requests under random limits, and compares each output with that of it alone."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from infx.domain.acceptance import Acceptance, uniform
from infx.engine.config import EngineConfig
from infx.engine.detokenizer import TextStream
from infx.engine.model.reference import ReferenceModel
from infx.engine.request import Request, SamplingParams
from infx.engine.weights import target_weights
from tests.engine.driving_engine import TOKENIZER, Driven, prompt
from tests.engine.tiny import BLOCK, TINY

CONTEXT, MOST = 64, 12  # tokens: context, output
# Lengths of prompts, around the edges of pages and chunks.
LENGTHS = (1, 2, 3, 4, 5, 8, 9, 13, 16, 20, 23, 28, 33, 40, 47, 50)
# Two logits nearer than this may change places when rows are batched in another way.
TIE = 1e-4
# Random weights never write the special tokens; these printable ones end an output instead.
ENDS = frozenset(b"aeio")
DRAFTS = (("none", 0), ("eagle3", 1), ("dspark", 3), ("eagle3", 3), ("dspark", 7), ("eagle3", 8))


def serving(method: str, k: int, **changes) -> EngineConfig:
    """The tiny model with drafts that are verified for real."""
    fields = {"model": "tiny", "max_model_len": CONTEXT, "block_size": BLOCK}
    drafts = {"method": method, "k": k, "acceptance": Acceptance(k=k)}
    return EngineConfig(**(fields | drafts | changes))


def random_config(rng: random.Random, method: str, k: int) -> EngineConfig:
    """Limits from just enough to roomy."""
    seats = rng.randint(1, 6)
    rows = seats * (k + 1)
    config = serving(
        method,
        k,
        max_num_seqs=seats,
        max_num_batched_tokens=rows + rng.choice((0, 1, 7, 40)),
        capture_sizes=tuple(sorted(rng.sample(range(1, rows + 1), min(3, rows)))),
        prefix_caching=rng.random() < 0.7,
    )
    return replace(config, num_blocks=config.pages_per_request + rng.randint(0, 30))


def random_request(rng: random.Random) -> tuple[tuple[int, ...], SamplingParams]:
    """A prompt of one of three families that share prefixes, and any way to end."""
    length, most = rng.choice(LENGTHS), rng.randint(1, MOST)
    params = SamplingParams(
        max_tokens=most,
        min_tokens=rng.choice((0, 0, min(4, most))),
        ignore_eos=rng.random() < 0.3,
        stop=rng.choice(((), (), (chr(rng.randint(32, 126)),))),
        temperature=rng.choice((0.0, 0.0, 0.0, 1.0)),
        seed=rng.randint(0, 1),
        logprobs=rng.choice((None, None, 1)),
        prompt_logprobs=rng.choice((None, None, None, 1)),
    )
    return prompt(rng.randrange(3), LENGTHS[-1])[:length], params


class Alone:
    """Outputs of requests served one at a time, without drafts, prefix cache or padding."""

    def __init__(self) -> None:
        self.driven = Driven(serving("none", 0, max_num_seqs=1, prefix_caching=False))
        self.model = ReferenceModel(TINY, target_weights(TINY, "random:0"))
        self.raw = functools.cache(self._raw)

    def output(self, tokens: tuple[int, ...], params: SamplingParams) -> tuple[Request, str]:
        """The request as it ends alone, and the text that it showed."""
        if params.temperature:  # a ban moves the other tokens' probabilities
            raw = self.raw(tokens, params.temperature, params.seed, params.min_tokens)
        else:
            raw = self.raw(tokens, 0.0, 0, 0)
            if ENDS & set(raw[: max(params.min_tokens - 1, 0)]):
                raw = self.raw(tokens, 0.0, 0, params.min_tokens)
        request = Request(
            number=0,
            tokens=list(tokens),
            params=params,
            text=TextStream(TOKENIZER.token_bytes, params.stop),
            eos=ENDS,
            deliver=lambda emission: None,
        )
        return request, request.accept(raw).text

    def _raw(
        self, tokens: tuple[int, ...], temperature: float, seed: int, least: int
    ) -> tuple[int, ...]:
        """All tokens that the model would write, its ends banned below ``least``."""
        params = SamplingParams(
            max_tokens=MOST, min_tokens=least, ignore_eos=True, temperature=temperature, seed=seed
        )
        request = self.driven.add(tokens, params)
        request.eos = ENDS
        self.driven.finish()
        return tuple(request.tokens[len(tokens) :])

    @torch.inference_mode()
    def gap(self, known: Sequence[int], pair: tuple[int, int], request: Request) -> float:
        """How near the choice after ``known`` was between the two tokens of ``pair``.

        Greedy: the difference of their logits. Sampled: how far the random number is from the edge
        between their probabilities, 1 if they are no neighbours.
        """
        params, at = request.params, len(known) - request.prompt_tokens
        logits = self.model.logits(known)[-1, : TOKENIZER.size].double()
        if not params.temperature:
            return abs(float(logits[pair[0]] - logits[pair[1]]))
        if at + 1 < params.min_tokens:
            logits[list(ENDS)] = -torch.inf
        probability, ids = (
            (logits / params.temperature).softmax(-1).sort(descending=True, stable=True)
        )
        first, second = sorted(ids.tolist().index(token) for token in pair)
        edge = float(probability[: first + 1].sum())
        return abs(edge - uniform(params.seed, 0, at)) if second == first + 1 else 1.0


@dataclass
class Seen:
    """What happened: counts, and the outputs that differed at a tie."""

    counts: Counter[str] = field(default_factory=Counter)
    ties: list[str] = field(default_factory=list)


class Episode:
    """One engine under one random load."""

    def __init__(self, rng: random.Random, method: str, k: int, seen: Seen) -> None:
        self.rng, self.seen = rng, seen
        self.driven = Driven(random_config(rng, method, k))
        self.taken: list[Request] = []

    def serve(self, count: int) -> None:
        """Serve ``count`` requests that come in bursts, some of them leaving at any moment."""
        going, asked = True, 0
        while asked < count or going:
            for _ in range(self.rng.choice((0, 0, 0, 1, 4)) if asked < count else 0):
                self.arrive()
                asked += 1
            self.leave()
            going = self.driven.step(self.leave)
            assert len(self.driven.scheduler.running) <= self.driven.config.max_num_seqs
        self.seen.counts["requests"] += asked

    def arrive(self) -> None:
        tokens, params = random_request(self.rng)
        if self.rng.random() < 0.05:
            self.refuse(tokens, replace(params, max_tokens=CONTEXT + 1 - len(tokens)))
            return
        self.taken.append(self.driven.add(tokens, params))
        self.taken[-1].eos = ENDS

    def refuse(self, tokens: Sequence[int], params: SamplingParams) -> None:
        """A request that is one token too long."""
        try:
            self.driven.add(tokens, params)
        except ValueError:
            self.seen.counts["refused"] += 1
            return
        raise AssertionError("a request that can never run was taken")

    def leave(self) -> None:
        """A client goes: its request waits, computes a prompt, decodes, or has just ended."""
        if not self.taken or self.rng.random() > 0.05:
            return
        request = self.rng.choice(self.taken)
        if request.finish_reason is None and not request.aborted:
            request.aborted = True
            at = "waiting" if not request.pages else "decode" if request.decoding else "prefill"
            self.seen.counts[f"left in {at}"] += 1

    def judge(self, alone: Alone) -> None:
        """Raise AssertionError unless every page is back and every output is its own."""
        scheduler = self.driven.scheduler
        assert scheduler.pool.free == self.driven.config.pages
        self.seen.counts["preempted"] += scheduler.preemptions
        self.seen.counts["hits"] += scheduler.prefix_hits
        self.seen.counts["drafts accepted"] += (
            self.driven.emitted_by_verify - self.driven.verify_steps
        )
        for request in self.taken:
            if not request.aborted:
                self.compare(request, alone)

    def compare(self, request: Request, alone: Alone) -> None:
        count, shown = request.prompt_tokens, self.driven.shown[request]
        expected, text = alone.output(tuple(request.tokens[:count]), request.params)
        asked = request.params.logprobs is not None
        assert len(self.driven.logprobs[request]) == (request.generated if asked else 0)
        assert request.unknown_logprobs == 0
        if request.tokens == expected.tokens:
            assert (shown, request.finish_reason) == (text, expected.finish_reason), request
            return
        pairs = enumerate(zip(request.tokens, expected.tokens, strict=False))
        at, pair = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
        gap = alone.gap(expected.tokens[:at], pair, request)
        how = "sampled" if request.params.temperature else "greedy"
        line = f"{how} {self.driven.config.method} at {at}: {pair[0]} for {pair[1]}, gap {gap:.2e}"
        assert gap < TIE, line
        self.seen.ties.append(line)


def torture(seed: int, episodes: int, count: int) -> Seen:
    """Serve and compare ``episodes`` x ``count`` requests; return what happened."""
    rng, alone, seen = random.Random(seed), Alone(), Seen()
    for number in range(episodes):
        episode = Episode(rng, *DRAFTS[number % len(DRAFTS)], seen)
        episode.serve(count)
        episode.judge(alone)
    return seen


EVERYTHING = (
    "requests", "refused", "left in waiting", "left in prefill", "left in decode", "preempted",
    "hits", "drafts accepted",
)  # fmt: skip


def require(seen: Seen, requests: int) -> None:
    """Raise AssertionError unless everything happened, and ties less than once in a thousand."""
    assert seen.counts["requests"] >= requests
    assert all(seen.counts[name] for name in EVERYTHING), seen.counts
    assert len(seen.ties) <= max(1, requests // 1000), seen.ties
