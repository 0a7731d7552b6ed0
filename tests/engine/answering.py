"""Lets the engine answer gsm_mini without a server, with the prompts that lm-eval sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infx.domain.record import FilterScore, Score
from infx.engine.config import EngineConfig
from infx.engine.request import SamplingParams
from infx.engine.train.evaluation import judged
from infx.golden.prompts import gsm_mini
from infx.workloads.gsm_mini import questions
from tests.engine.driving_engine import TOKENIZER, Driven

BAR = 0.9
SHOTS, SEED = 5, 0


@dataclass(frozen=True)
class Answers:
    """What was answered: {question: right} for each filter, and the realised acceptance length."""

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
            shots=SHOTS,
            filters=filters,
            questions_hash="",
        )


def answers(count: int, **flags) -> Answers:
    """The greedy answers to the first ``count`` test questions by an engine of these ``flags``."""
    config = EngineConfig(
        **{
            "weights": "shipped",
            "max_num_seqs": 8,
            "max_num_batched_tokens": 512,
            "max_model_len": 4096,
            "method": "eagle3",
            "k": 3,
            "layers": "reference",
        }
        | flags
    )
    driven, limits = Driven(config), SamplingParams(max_tokens=256)
    requests = [
        driven.add(TOKENIZER.encode(TOKENIZER.render(chat, add_generation_prompt=True)), limits)
        for chat in gsm_mini(count, SHOTS, SEED).chats
    ]
    driven.finish()
    asked = zip(questions("test", count, SEED), requests, strict=True)
    marks = {one.question: judged(driven.shown[request], one.target) for one, request in asked}
    return Answers(
        strict={question: strict for question, (strict, _) in marks.items()},
        flexible={question: flexible for question, (_, flexible) in marks.items()},
        acceptance_length=driven.emitted_by_verify / max(driven.verify_steps, 1),
    )
