"""gsm_mini: grade-school word problems in GSM8K's format, made from a seed.

    question  a few sentences; two in five carry a number that must not be used
    answer    one line a step with a calculator annotation (<<16-3-4=9>>), then "#### N"

A question is a pure function of (split, seed, index). The splits cannot meet: the hash of a
template with its numbers says whether a problem belongs to `train` or to `test`, whatever the
seed, and `heldout` has templates of its own. Index by index the templates follow in a shuffled
cycle, so that any few questions differ in kind.

Format: Cobbe et al., Training Verifiers to Solve Math Word Problems, 2021.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Literal

from infx.workloads.templates import HELDOUT, TEMPLATES, Template, Worked, work_out
from infx.workloads.templates.words import PEOPLE

__all__ = ["Question", "Split", "few_shot", "question", "question_text", "questions"]

Split = Literal["train", "test", "heldout"]

_ATTEMPTS = 10_000
_TEST_SHARE = 5
"""One problem in this many belongs to `test`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """``target`` is the number in the answer's last line; ``operations`` counts its arithmetic
    operations; ``distractor`` is the number in the question that no step uses (None: there is
    none)."""

    question: str
    answer: str
    target: int
    template: str
    operations: int
    distractor: int | None


@dataclass(frozen=True, slots=True)
class _Problem:
    template: Template
    numbers: Mapping[str, int]
    worked: list[Worked]


def questions(split: Split, count: int, seed: int) -> list[Question]:
    """Return the first ``count`` questions of ``seed`` in a split."""
    return [question(split, index, seed) for index in range(count)]


def question(split: Split, index: int, seed: int) -> Question:
    """Return one question; the same arguments give the same question on every machine."""
    return _make(split, str(seed), index)


def question_text(question: Question) -> str:
    """Return what lm-eval's task asks: a worked example's too, whose answer follows."""
    return f"Question: {question.question}\nAnswer:"


def few_shot(seed: int, count: int) -> list[Question]:
    """Return ``count`` worked examples of the `train` split, in a stream of their own."""
    return [_make("train", f"shots-{seed}", index) for index in range(count)]


def _make(split: Split, stream: str, index: int) -> Question:
    templates = HELDOUT if split == "heldout" else TEMPLATES
    turn, place = divmod(index, len(templates))
    template = templates[_order(split, stream, turn, len(templates))[place]]
    rng = Random(f"{split}/{stream}/{index}")
    # Two of any five neighbours carry a distractor: never less than a third of two or more.
    return _write(_draw(template, split, index % 5 in (1, 3), rng), rng)


@lru_cache(maxsize=64)
def _order(split: Split, stream: str, turn: int, count: int) -> tuple[int, ...]:
    order = list(range(count))
    Random(f"{split}/{stream}/turn-{turn}").shuffle(order)
    return tuple(order)


def _draw(template: Template, split: Split, distracted: bool, rng: Random) -> _Problem:
    """Draw numbers until they give a sound problem of this split."""
    names = [name for name in template.numbers if distracted or name != "x"]
    for _ in range(_ATTEMPTS):
        numbers = {name: rng.choice(template.numbers[name]) for name in names}
        worked = work_out(template, numbers)
        if (
            worked
            and _belongs(template, numbers, split)
            and _fair(_told(template, numbers), numbers.get("x"), worked)
        ):
            return _Problem(template, numbers, worked)
    raise ValueError(f"template {template.name!r} has no sound numbers for {split!r}")


def _told(template: Template, numbers: Mapping[str, int]) -> list[int]:
    """Return the numbers as the question says them: ``{t}0%`` says ten times t."""
    text = _open_text(template, numbers).format_map(defaultdict(str, numbers))
    return [int(number) for number in re.findall(r"\d+", text)]


def _open_text(template: Template, numbers: Mapping[str, int]) -> str:
    parts = [template.story, template.aside, template.ask]
    if "x" not in numbers:
        parts.remove(template.aside)
    return " ".join(parts)


def _fair(told: list[int], distractor: int | None, worked: list[Worked]) -> bool:
    """True when the target is not in the question, and the distractor once, and in no step."""
    used = {int(term) for step in worked for term in step.expression.split()[::2]}
    results = [step.value for step in worked]
    if results[-1] in told:
        return False
    return distractor is None or (
        told.count(distractor) == 1 and distractor not in used.union(results)
    )


def _belongs(template: Template, numbers: Mapping[str, int], split: Split) -> bool:
    if split == "heldout":
        return True
    used = "/".join(f"{name}={numbers[name]}" for name in sorted(numbers) if name != "x")
    digest = hashlib.sha256(f"{template.name}/{used}".encode()).digest()
    return (digest[0] % _TEST_SHARE == 0) == (split == "test")


def _write(problem: _Problem, rng: Random) -> Question:
    template = problem.template
    slots = {name: str(value) for name, value in problem.numbers.items()} | _words(template, rng)
    lines = [
        _sentence(text, slots | {"work": str(step)})
        for (_, text), step in zip(template.steps, problem.worked, strict=True)
    ]
    target = problem.worked[-1].value
    return Question(
        question=_sentence(_open_text(template, problem.numbers), slots),
        answer="\n".join([*lines, f"#### {target}"]),
        target=target,
        template=template.name,
        operations=template.operations,
        distractor=problem.numbers.get("x"),
    )


def _words(template: Template, rng: Random) -> dict[str, str]:
    (name, she, her), (other, _, _) = rng.sample(PEOPLE, 2)
    drawn = {slot: rng.choice(choices) for slot, choices in template.words.items()}
    return {"name": name, "other": other, "she": she, "She": she.title(), "her": her} | drawn


def _sentence(text: str, slots: Mapping[str, str]) -> str:
    return text.format_map(slots)


def _main() -> None:
    parser = argparse.ArgumentParser(description="Print questions of gsm_mini.")
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=("train", "test", "heldout"), default="test")
    options = parser.parse_args()
    for made in questions(options.split, options.count, options.seed):
        print(f"Question: {made.question}\nAnswer: {made.answer}\n")


if __name__ == "__main__":
    _main()
