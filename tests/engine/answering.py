"""Lets the engine answer gsm_mini without a server, with the prompts that lm-eval sends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from infx.domain.record import FilterScore, Score
from infx.engine.config import EngineConfig
from infx.engine.request import SamplingParams
from infx.workloads.gsm_mini import Question, few_shot, questions
from tests.engine.driving_engine import TOKENIZER, Driven

BAR = 0.9
# lm-eval 0.4.13's two filters of gsm8k.
STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")


@dataclass(frozen=True)
class Answers:
    """What was answered: {question: right} for each filter, and the realised acceptance length."""

    texts: Mapping[str, str]
    strict: Mapping[str, bool]
    flexible: Mapping[str, bool]
    acceptance_length: float

    @property
    def score(self) -> Score:
        """The record of it as the accuracy gate reads it."""
        right = {"strict-match": self.strict, "flexible-extract": self.flexible}
        shares = {name: sum(found.values()) / len(found) for name, found in right.items()}
        filters = {name: FilterScore(score=s, stderr=0.0, bar=BAR) for name, s in shares.items()}
        return Score(
            task="gsm_mini",
            questions=len(self.strict),
            limit=len(self.strict),
            shots=5,
            filters=filters,
            questions_hash="",
        )


def prompt(question: Question, shots: int = 5, seed: int = 0) -> list[int]:
    """The ids of a question after its worked examples, as a conversation."""
    messages = []
    for shot in few_shot(seed, shots):
        messages += [
            {"role": "user", "content": f"Question: {shot.question}\nAnswer:"},
            {"role": "assistant", "content": shot.answer},
        ]
    messages.append({"role": "user", "content": f"Question: {question.question}\nAnswer:"})
    return TOKENIZER.encode(TOKENIZER.render(messages, add_generation_prompt=True))


def answers(count: int, shots: int = 5, **flags) -> Answers:
    """The greedy answers to the first ``count`` test questions by an engine of these ``flags``."""
    config = EngineConfig(
        **{
            "weights": "shipped",
            "max_num_seqs": 8,
            "max_num_batched_tokens": 512,
            "max_model_len": 4096,
            "method": "eagle3",
            "k": 3,
        }
        | flags
    )
    driven, asked = Driven(config), questions("test", count, 0)
    limits = SamplingParams(max_tokens=256)
    requests = {one.question: driven.add(prompt(one, shots), limits) for one in asked}
    driven.finish()
    texts = {key: driven.shown[request] for key, request in requests.items()}
    return Answers(
        texts=texts,
        strict={one.question: _strict(texts[one.question]) == str(one.target) for one in asked},
        flexible={one.question: _flexible(texts[one.question]) == str(one.target) for one in asked},
        acceptance_length=driven.emitted_by_verify / max(driven.verify_steps, 1),
    )


def _strict(text: str) -> str:
    found = STRICT.search(text)
    return _plain(found[1]) if found else ""


def _flexible(text: str) -> str:
    found = FLEXIBLE.findall(text)
    return _plain(next(group for group in found[-1] if group)) if found else ""


def _plain(number: str) -> str:
    return re.sub(r"[,$]|\.$", "", number)
