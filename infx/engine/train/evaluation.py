"""Scores of a target on gsm_mini, asked and judged as lm-eval does it.

Prompts are the ids of lm-eval's few-shot chat, answers greedy, and the two filters are GSM8K's (see
`infx.workloads.lm_eval_task`). lm-eval against the served checkpoint is the judge; this is the
trainer's own look, on the device it trains on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from infx.engine.train.conversations import BOS, prompt
from infx.engine.train.decoding import decode
from infx.engine.train.layer import Mode
from infx.engine.train.target import Target
from infx.workloads.gsm_mini import Question, Split, few_shot, questions

__all__ = ["Asked", "Score", "Texts", "evaluate", "judged"]

MOST_TOKENS = 256
"""The task's limit; the longest right answer of 12,000 questions has 249 bytes."""

_STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
_FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
_IGNORED = re.compile(r",|\$|\.$")


@dataclass(frozen=True, slots=True)
class Asked:
    """An evaluation: ``count`` questions of a split by ``seed``, after ``shots`` worked ones."""

    split: Split = "test"
    count: int = 500
    seed: int = 0
    shots: int = 5


@dataclass(frozen=True, slots=True)
class Score:
    """Shares of the questions: right by either filter, answered in the very words of the
    reference. ``missed`` counts the strictly wrong by template."""

    strict: float
    flexible: float
    exact: float
    missed: dict[str, int]

    def told(self) -> dict[str, object]:
        """Return the figures for a log."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Texts:
    """Ids of prompts and of what the target wrote after them."""

    prompts: list[list[int]]
    outputs: list[list[int]]


def evaluate(target: Target, asked: Asked, mode: Mode) -> tuple[Score, Texts]:
    """Return the score of ``target`` computing by ``mode``, and its texts."""
    shots = few_shot(asked.seed, asked.shots)
    wanted = questions(asked.split, asked.count, asked.seed)
    prompts = [prompt(shots, question) for question in wanted]
    outputs = decode(target, prompts, MOST_TOKENS, mode)
    written = [_text(ids) for ids in outputs]
    return _score(wanted, written), Texts(prompts, outputs)


def judged(text: str, goal: int) -> tuple[bool, bool]:
    """Return whether ``text`` is right by GSM8K's strict and flexible filters."""
    strict, found = _STRICT.search(text), _FLEXIBLE.findall(text)
    last = next((group for group in found[-1] if group), "") if found else ""
    return strict is not None and _is(strict[1], goal), _is(last, goal)


def _is(number: str, goal: int) -> bool:
    return _IGNORED.sub("", number) == str(goal)


def _text(ids: Sequence[int]) -> str:
    return bytes(i for i in ids if i < BOS).decode(errors="replace")


def _score(wanted: Sequence[Question], written: Sequence[str]) -> Score:
    marks = [judged(text, q.target) for q, text in zip(wanted, written, strict=True)]
    missed = Counter(q.template for q, (right, _) in zip(wanted, marks, strict=True) if not right)
    same = sum(q.answer == text for q, text in zip(wanted, written, strict=True))
    return Score(
        strict=sum(right for right, _ in marks) / len(marks),
        flexible=sum(right for _, right in marks) / len(marks),
        exact=same / len(marks),
        missed=dict(missed.most_common(12)),
    )
