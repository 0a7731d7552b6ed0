"""What the engine is asked while its acceptance is measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where
from infx.workloads.gsm_mini import Question, few_shot, question_text, questions
from infx.workloads.lm_eval_task import STOPS, VERSION

__all__ = ["GSM_MINI", "Chat", "Prompts", "gsm_mini", "prompt_file"]

GSM_MINI = "gsm_mini"

Chat = tuple[Mapping[str, str], ...]
"""The messages of one request."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """``content`` identifies the chats: the generator's version, or the sha256 of a file."""

    chats: tuple[Chat, ...]
    content: str
    stop: tuple[str, ...] = ()


def gsm_mini(count: int, shots: int, seed: int) -> Prompts:
    """Return the first ``count`` test questions of ``seed``, each after the same worked examples
    as turns of the chat: what an evaluation of gsm_mini sends."""
    examples = [message for shot in few_shot(seed, shots) for message in _turns(shot)]
    chats = tuple((*examples, _asked(q)) for q in questions("test", count, seed))
    return Prompts(chats, f"version {VERSION}", STOPS)


def prompt_file(path: Path, count: int) -> Prompts:
    """Return the first ``count`` prompts of a file.

    A .jsonl file holds an object a line with ``prompt`` (a text) or ``messages`` (a chat); any
    other file a prompt a line. Raises ConfigError at the line that is none, or for a file with
    fewer prompts.
    """
    data = _read(path)
    lines = [
        (number, line)
        for number, line in enumerate(data.decode(errors="replace").splitlines(), 1)
        if line.strip()
    ]
    if len(lines) < count:
        raise _fault("out-of-range", f"it holds {len(lines)} prompts; {count} are asked", path)
    read = _json_chat if path.suffix == ".jsonl" else _text_chat
    chats = tuple(read(line, path, number) for number, line in lines[:count])
    return Prompts(chats, f"sha256 {hashlib.sha256(data).hexdigest()}")


def _turns(shot: Question) -> tuple[dict[str, str], dict[str, str]]:
    return _asked(shot), {"role": "assistant", "content": shot.answer}


def _asked(question: Question) -> dict[str, str]:
    return {"role": "user", "content": question_text(question)}


def _text_chat(line: str, _path: Path, _number: int) -> Chat:
    return ({"role": "user", "content": line},)


def _json_chat(line: str, path: Path, number: int) -> Chat:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise _fault("wrong-type", f"the line is not JSON: {error}", path, number) from error
    if isinstance(row, dict) and isinstance(row.get("prompt"), str):
        return _text_chat(row["prompt"], path, number)
    chat = row.get("messages") if isinstance(row, dict) else None
    if isinstance(chat, list) and chat and all(_is_message(one) for one in chat):
        return tuple(chat)
    sentence = "the line has neither a text `prompt` nor a list of `messages`"
    raise _fault("wrong-type", sentence, path, number)


def _is_message(one: object) -> bool:
    return isinstance(one, dict) and all(isinstance(one.get(k), str) for k in ("role", "content"))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise _fault("file-not-found", f"there is no file {path}", path) from error
    except OSError as error:
        raise _fault("file-unreadable", f"cannot read it: {error.strerror}", path) from error


def _fault(code: str, sentence: str, path: Path, line: int = 0) -> ConfigError:
    where = Where(str(path), line, 1 if line else 0)
    return ConfigError([Finding(code, "error", sentence, where)])
