"""Token streams of gsm_mini: what the model is trained on, and what an evaluation asks.

Three styles, all filled with question after question up to the length wanted, every answer
trained on, so that any number of worked examples before a question is in distribution:

    chat    85 %   user and assistant take turns: lm-eval's few-shot messages in the chat template
    raw      8 %   "Question: …\\nAnswer: …" without a chat
    packed   7 %   worked examples and question inside one user message

Training questions are of gsm_mini's `train` split, which shares no problem with `test`. Those with
a step of three numbers are drawn three times as often: they are learnt last. Without that, 7,000
steps missed 26 of 500 questions, all of these five templates.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from random import Random

from infx.workloads.gsm_mini import Question, question, question_text
from infx.workloads.templates import TEMPLATES, Template

__all__ = ["BOS", "END", "EOS", "PAD", "conversation", "prompt"]

BOS, EOS, START, END, PAD = range(256, 261)
"""Ids of the special tokens of `infx.engine.tokenizer`; every other id is a byte."""

NEWLINE = 10
OTHER = 0.1
"""Loss weight of a token that is no part of an answer; an answer's tokens weigh 1."""

EASY_SHARE = 1 / 3
"""Of the questions without a step of three numbers, how many are kept."""

_MOST = 1024
"""Questions set aside for one conversation."""

Part = tuple[list[int], float]


def prompt(shots: Sequence[Question], asked: Question) -> list[int]:
    """Return the ids that a server makes of lm-eval's chat: ``shots`` as turns, then ``asked``."""
    ids = [BOS]
    for shot in shots:
        ids += [*_user(question_text(shot)), *shot.answer.encode(), END, NEWLINE]
    return ids + _user(question_text(asked))


def conversation(index: int, length: int, stream: int) -> tuple[list[int], list[float]]:
    """Return conversation ``index`` of seed ``stream``: length + 1 ids, and the loss weight of
    predicting each but the first (``length`` of them)."""
    rng = Random(f"{stream}/{index}")
    ids, weights = [BOS], [0.0]
    for tokens, weight in _style(rng)(_questions(index, stream, rng), rng):
        ids += tokens
        weights += [weight] * len(tokens)
        if len(ids) > length:
            break
    return ids[: length + 1], weights[1 : length + 1]


def _questions(index: int, stream: int, rng: Random) -> Iterator[Question]:
    for place in itertools.count():
        drawn = question("train", index * _MOST + place, stream)
        if drawn.template in _HARD or rng.random() < EASY_SHARE:
            yield drawn


def _is_hard(template: Template) -> bool:
    """True when a step, such as ``left = a - b - c``, has three numbers or more."""
    terms = [expression.partition("=")[2].split()[::2] for expression, _ in template.steps]
    return max(map(len, terms)) > 2


_HARD = frozenset(template.name for template in TEMPLATES if _is_hard(template))


def _style(rng: Random) -> Callable[[Iterator[Question], Random], Iterator[Part]]:
    drawn = rng.random()
    if drawn < 0.85:
        return _chat
    return _raw if drawn < 0.93 else _packed


def _chat(questions: Iterator[Question], rng: Random) -> Iterator[Part]:
    for asked in questions:
        yield _user(question_text(asked)), OTHER
        yield from _reply(asked)


def _raw(questions: Iterator[Question], rng: Random) -> Iterator[Part]:
    for asked in questions:
        yield list(question_text(asked).encode()), OTHER
        yield list(f" {asked.answer}\n\n".encode()), 1.0


def _packed(questions: Iterator[Question], rng: Random) -> Iterator[Part]:
    while True:
        shots = itertools.islice(questions, rng.randrange(5))
        lead = "".join(f"{question_text(shot)} {shot.answer}\n\n" for shot in shots)
        asked = next(questions)
        yield _user(lead + question_text(asked)), OTHER
        yield from _reply(asked)


def _reply(asked: Question) -> Iterator[Part]:
    yield [*asked.answer.encode(), END], 1.0
    yield [NEWLINE], OTHER


def _user(text: str) -> list[int]:
    return [START, *f"user\n{text}".encode(), END, NEWLINE, START, *b"assistant\n"]
