"""Fields of a request's body: read with their range, or refused by name."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "MOST_NUMBER",
    "BodyError",
    "bad",
    "flag",
    "number",
    "refuse_thinking",
    "refuse_unserved",
    "shown",
]

Body = Mapping[str, Any]

MOST_NUMBER = 2**63 - 1  # whole numbers of the API have 64 bits

# Known fields that are not served, with the values that ask for nothing.
UNSERVED: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "suffix": ("",),
    "prompt_logprobs": (),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "length_penalty": (1,),
    "min_p": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "structured_outputs": ({},),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
    "stop_token_ids": ([],),
    "include_stop_str_in_output": (False,),
    "skip_special_tokens": (True,),
    "truncate_prompt_tokens": (),
    "bad_words": ([],),
    "allowed_token_ids": ([],),
    "use_beam_search": (False,),
    "modalities": (["text"],),
    "audio": (),
    "prompt_embeds": (),
    "reasoning_effort": ("none", "minimal"),
    "chat_template": (),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
}

# Arguments of chat templates that ask for thinking, with the values that ask for none of it.
THINKING: Mapping[str, tuple[Any, ...]] = {
    "enable_thinking": (False,),
    "thinking": (False, "disabled", "off"),
    "thinking_mode": ("disabled", "off", "none", False),
}


class BodyError(Exception):
    """A body that is refused: ``code`` of the engine family, ``field`` by its path."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.field = code, message, field


def bad(field: str, value: Any, expected: str) -> BodyError:
    """Return the refusal of an impossible ``value``, which the message shows cut short."""
    return BodyError("bad-request", f"{field} is {shown(value)}; expected {expected}", field)


def number(
    body: Body,
    field: str,
    kind: Callable[[Any], Any],
    least: float,
    default: float | None,
    most: float = MOST_NUMBER,
) -> Any:
    """Return the number in ``field``, ``default`` where it is absent or null. Raises BodyError."""
    value = body.get(field)
    if value is None:
        return default
    right = type(value) is int or (kind is float and type(value) is float)
    if not right or not least <= value <= most:
        name = "a whole number" if kind is int else "a number"
        limited = most < MOST_NUMBER or (right and value > most)
        range_ = f"from {least} to {most}" if limited else f"of at least {least}"
        raise bad(field, value, f"{name} {range_}")
    return value


def flag(body: Body, field: str, prefix: str = "") -> bool:
    """Return the truth value in ``field``, false where it is absent or null. Raises BodyError."""
    value = body.get(field)
    if value is not None and not isinstance(value, bool):
        raise bad(prefix + field, value, "true or false")
    return bool(value)


def refuse_unserved(body: Body) -> None:
    """Raise BodyError for a known field whose value asks for what is not served."""
    _refuse(body, UNSERVED, "", "is not served by this engine")


def refuse_thinking(body: Body) -> None:
    """Raise BodyError for ``chat_template_kwargs`` that ask for thinking: the template has none."""
    arguments = body.get("chat_template_kwargs")
    if arguments is not None and not isinstance(arguments, dict):
        raise bad("chat_template_kwargs", arguments, "an object")
    _refuse(arguments or {}, THINKING, "chat_template_kwargs.", "asks this model for thinking")


def _refuse(body: Body, fields: Mapping[str, tuple[Any, ...]], prefix: str, why: str) -> None:
    for field, neutral in fields.items():
        value = body.get(field)
        if value is not None and not any(_same(value, one) for one in neutral):
            message = f"{prefix}{field} {shown(value)} {why}; leave it out"
            raise BodyError("unsupported-field", message, prefix + field)


def _same(value: Any, neutral: Any) -> bool:
    """Return equality in which true is not 1: ``n: true`` is no number of choices."""
    return isinstance(value, bool) == isinstance(neutral, bool) and bool(value == neutral)


def shown(value: Any) -> str:
    """Return ``value`` as a message may show it: short, whatever its size and depth."""
    text = reprlib.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
