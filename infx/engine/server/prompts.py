"""Prompts of a request's body, as token ids: texts, ids, lists of both, and chats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infx.engine.server.fields import BodyError, bad, shown
from infx.engine.tokenizer import ChatTokenizer

__all__ = ["read_messages", "read_prompts", "read_text", "read_token_ids", "too_many"]

Body = Mapping[str, Any]

MOST_PROMPTS = 2048  # the API's limit on prompts in one body
ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def read_messages(body: Body, tokenizer: ChatTokenizer, context: int) -> list[int]:
    """Return the ids of a body's chat, up to the assistant's turn. Raises BodyError."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad("messages", messages, "a list of at least one message")
    if len(messages) > context:
        raise _too_long("messages", f"{len(messages)} messages", context)
    read = [_message(message, f"messages[{at}]") for at, message in enumerate(messages)]
    _refuse_far_too_long(sum(len(one["content"]) for one in read), "messages", tokenizer, context)
    text = tokenizer.render(read, add_generation_prompt=True)
    return read_text(text, "messages", tokenizer, context)


def read_prompts(prompt: Any, tokenizer: ChatTokenizer, context: int) -> list[list[int]]:
    """Return one list of ids a prompt; an empty prompt becomes the token that begins a text.

    Raises BodyError.
    """
    single = not isinstance(prompt, list) or not prompt or isinstance(prompt[0], int)
    named = {"prompt": prompt} if single else {f"prompt[{i}]": one for i, one in enumerate(prompt)}
    if len(named) > MOST_PROMPTS:
        raise too_many(len(named), MOST_PROMPTS)
    return [_prompt(one, where, tokenizer, context) for where, one in named.items()]


def read_text(text: str, where: str, tokenizer: ChatTokenizer, context: int) -> list[int]:
    """Return the ids of ``text``. Raises BodyError, before the work when it is far too long."""
    _refuse_far_too_long(len(text), where, tokenizer, context)
    try:
        return tokenizer.encode(text)
    except UnicodeEncodeError as error:
        raise bad(where, text[error.start : error.end], "text, not half a character") from error


def read_token_ids(ids: Any, where: str, tokenizer: ChatTokenizer, context: int) -> list[int]:
    """Return ``ids`` when all are ids of the vocabulary. Raises BodyError."""
    if not isinstance(ids, list):
        raise bad(where, ids, "a string or a list of token ids")
    if len(ids) > context:
        raise _too_long(where, f"{len(ids)} tokens", context)
    for at, token in enumerate(ids):
        if type(token) is not int or not 0 <= token < tokenizer.size:
            raise bad(f"{where}[{at}]", token, f"a token id from 0 to {tokenizer.size - 1}")
    return ids


def too_many(prompts: int, most: int) -> BodyError:
    """Return the refusal of a body with more ``prompts`` than are ever taken at once."""
    message = f"prompt is a list of {prompts}; expected at most {most} at once"
    return BodyError("bad-request", message, "prompt")


def _prompt(one: Any, where: str, tokenizer: ChatTokenizer, context: int) -> list[int]:
    read = read_text if isinstance(one, str) else read_token_ids
    return read(one, where, tokenizer, context) or [tokenizer.bos]


def _refuse_far_too_long(
    characters: int, where: str, tokenizer: ChatTokenizer, context: int
) -> None:
    if characters > tokenizer.longest * context:
        raise _too_long(where, f"{characters} characters", context)


def _too_long(where: str, size: str, context: int) -> BodyError:
    message = f"{where}: {size} are over the context of {context} tokens; shorten it"
    return BodyError("context-length-exceeded", message, where)


def _message(message: Any, where: str) -> Mapping[str, str]:
    """Return the role and text of a message; its name is taken and unused by the template."""
    if not isinstance(message, dict):
        raise bad(where, message, "an object with role and content")
    role, name = message.get("role"), message.get("name")
    if role not in ROLES:
        raise bad(f"{where}.role", role, f"one of {', '.join(ROLES)}")
    if name is not None and not isinstance(name, str):
        raise bad(f"{where}.name", name, "a string")
    for calls in ("tool_calls", "function_call"):
        if message.get(calls):
            sentence = f"{where}.{calls}: this model calls no tools; leave it out"
            raise BodyError("unsupported-field", sentence, f"{where}.{calls}")
    return {"role": role, "content": _content(message.get("content"), f"{where}.content")}


def _content(content: Any, where: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise bad(where, content, "a string or a list of parts")
    return "".join(_part(part, f"{where}[{at}]") for at, part in enumerate(content))


def _part(part: Any, where: str) -> str:
    if not isinstance(part, dict):
        raise bad(where, part, "an object with type and text")
    if part.get("type", "text") != "text":
        raise BodyError(
            "unsupported-field", f"{where}.type {shown(part['type'])}: only text", where
        )
    if not isinstance(part.get("text"), str):
        raise bad(f"{where}.text", part.get("text"), "a string")
    return str(part["text"])
