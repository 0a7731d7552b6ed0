"""How many tokens a server makes of a chat, from a tokenizer's folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["ChatTokens"]

FILE, CONFIG, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"


class ChatTokens:
    """Counts as servers do: one user message in the chat template, tokenised without further
    special tokens. Without a template, the bare text with the tokenizer's special tokens."""

    def __init__(self, folder: Path) -> None:
        """Read tokenizer.json, and the template from chat_template.jinja or
        tokenizer_config.json. Raises OSError when the folder has no tokenizer."""
        from tokenizers import Tokenizer

        file = folder / FILE
        self._tokenizer = Tokenizer.from_str(file.read_text(encoding="utf-8"))
        self._render = _renderer(folder)

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of a chat of each text, what the server adds before and after it
        included."""
        render = self._render
        chats = [render(text) for text in texts] if render else list(texts)
        encoded = self._tokenizer.encode_batch_fast(chats, add_special_tokens=render is None)
        return [len(encoding) for encoding in encoded]


def _renderer(folder: Path) -> Callable[[str], str] | None:
    config = json.loads(_read(folder / CONFIG) or "{}")
    source = _read(folder / TEMPLATE) or _default(config.get("chat_template"))
    if not source:
        return None
    template = _environment().from_string(source)
    special = {name: _text(token) for name, token in config.items() if name.endswith("_token")}

    def render(text: str) -> str:
        messages = [{"role": "user", "content": text}]
        return str(template.render(messages=messages, add_generation_prompt=True, **special))

    return render


def _environment() -> Any:
    """Return the environment that templates are written for: that of `transformers`."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )


def _default(told: str | Sequence[Mapping[str, str]] | None) -> str:
    """Return the template of a config: a text, or a list of named ones."""
    if told is None or isinstance(told, str):
        return told or ""
    return next((one["template"] for one in told if one["name"] == "default"), "")


def _text(token: str | Mapping[str, Any] | None) -> str:
    return token if isinstance(token, str) else str((token or {}).get("content", ""))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
