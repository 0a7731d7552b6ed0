"""What a word problem is made of, and how its steps are worked out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["LARGEST", "Template", "Worked", "work_out"]

LARGEST = 3000
"""No value of a problem is above this: grade-school size, three or four digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A word problem with its numbers and words left open.

    ``story`` and ``ask`` always stand in the question; ``aside`` is a sentence between them with
    the one number, ``{x}``, that no step may use. ``steps`` are pairs of an equation over earlier
    names (``"left = a - b"``; one chain of + and - or of * and /) and the sentence that tells it,
    where ``{work}`` stands for the equation. ``words`` are the lists its other words come from.
    """

    name: str
    numbers: Mapping[str, range]
    story: str
    aside: str
    ask: str
    steps: tuple[tuple[str, str], ...]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def operations(self) -> int:
        """Arithmetic operations that the answer needs."""
        return sum((len(equation.split()) - 2) // 2 for equation, _ in self.steps)


@dataclass(frozen=True, slots=True)
class Worked:
    """One step with its numbers in place: ``expression`` is ``"47 - 9"``, ``value`` 38."""

    expression: str
    value: int

    def __str__(self) -> str:
        compact = self.expression.replace(" ", "")
        return f"{self.expression} = <<{compact}={self.value}>>{self.value}"


def work_out(template: Template, numbers: Mapping[str, int]) -> list[Worked] | None:
    """Return the steps with these numbers; None when a value is not a whole number between 1 and
    LARGEST (nothing negative, no fractions, nothing absurd)."""
    values = dict(numbers)
    worked = []
    for equation, _ in template.steps:
        name, _, *terms = equation.split()
        filled = [str(values.get(term, term)) for term in terms]
        value = _chain(filled)
        if value is None:
            return None
        values[name] = value
        worked.append(Worked(" ".join(filled), value))
    return worked


def _chain(terms: list[str]) -> int | None:
    total: int | None = int(terms[0])
    for operator, term in zip(terms[1::2], terms[2::2], strict=True):
        if total is None:
            return None
        total = _apply(total, operator, int(term))
    return total


def _apply(left: int, operator: str, right: int) -> int | None:
    if operator == "/" and left % right:
        return None
    results = {"+": left + right, "-": left - right, "*": left * right, "/": left // right}
    value = results[operator]
    return value if 1 <= value <= LARGEST else None
