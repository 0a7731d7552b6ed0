"""The engine options of an entry and its recipe, against those that the engine has."""

from __future__ import annotations

from collections.abc import Iterator

from infx.config.expressions import Expression
from infx.config.matrix import Entry
from infx.config.suggestions import did_you_mean
from infx.domain.axes import AXES, snake
from infx.domain.findings import Finding
from infx.frameworks.base import Framework
from infx.frameworks.options import fault

__all__ = ["lint_options"]


def lint_options(entry: Entry, framework: Framework) -> Iterator[Finding]:
    """Yield what is wrong with each option, at its own line: that the engine does not have it, or
    not such a value. What an expression gives is checked with its combination."""
    for name, value in {**entry.recipe.options, **entry.options}.items():
        where, option = entry.option_place(name), framework.options.get(name)
        if option is None:
            sentence = f"{framework.name} has no option `{name}`"
            yield Finding("option-unknown", "error", sentence, where, _hint(name, framework))
        elif not isinstance(value, Expression) and (sentence := fault(option, value)):
            yield Finding("option-value", "error", sentence, where)


def _hint(name: str, framework: Framework) -> str:
    if snake(name) in AXES:
        return f"`{name}` is an axis: write it in the axes of the scenario or the recipe"
    return did_you_mean(name, framework.options)
