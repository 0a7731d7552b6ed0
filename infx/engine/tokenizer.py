"""The mini models' tokenizer: one token a byte, five special tokens, a chat template.

``python -m infx.engine.tokenizer DIR`` writes tokenizer.json and tokenizer_config.json, which
transformers and its users (aiperf) load from the folder.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

__all__ = ["BOS", "CHAT_TEMPLATE", "ChatTokenizer", "hub_config", "main", "write_tokenizer"]

BOS, EOS, START, END, PAD = "<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>", "<|pad|>"
SPECIAL = (BOS, EOS, START, END, PAD)
CHAT_TEMPLATE = (
    "{{ '" + BOS + "' }}{% for message in messages %}"
    "{{ '" + START + "' + message['role'] + '\\n' + message['content'] + '" + END + "\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '" + START + "assistant\\n' }}{% endif %}"
)


class ChatTokenizer:
    """Text and chats to token ids, and the bytes that each id stands for.

    Written in Python, since a byte is a token: the tokenizers library takes 2 us a character, a
    hundred times as long. What `save` writes for it gives the same ids.
    """

    def __init__(self) -> None:
        self._ids = {name: 256 + at for at, name in enumerate(SPECIAL)}
        self._split = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")").split

    @cached_property
    def token_bytes(self) -> tuple[bytes, ...]:
        """The bytes of each id; special tokens stand for none."""
        return tuple(bytes([value]) for value in range(256)) + (b"",) * len(SPECIAL)

    @cached_property
    def shown_bytes(self) -> tuple[bytes, ...]:
        """The same, but special tokens stand by their names, as a prompt that is echoed."""
        return self.token_bytes[:256] + tuple(name.encode() for name in SPECIAL)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A text for each id, all different: itself, a special token's name, or ``bytes:\\xNN``."""
        return tuple(_name(value) for value in range(256)) + SPECIAL

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self.token_bytes)

    @property
    def longest(self) -> int:
        """Characters of the longest token: a text of n holds at least n / longest tokens."""
        return max(map(len, SPECIAL))

    @property
    def bos(self) -> int:
        """The id that begins a text."""
        return self._id(BOS)

    @property
    def eos(self) -> frozenset[int]:
        """The ids that end an output: of a text, and of a chat's turn."""
        return frozenset({self._id(EOS), self._id(END)})

    def encode(self, text: str) -> list[int]:
        """Return ids; special tokens written in the text count as such, none is added."""
        ids: list[int] = []
        for at, part in enumerate(self._split(text)):
            ids += [self._ids[part]] if at % 2 else part.encode()
        return ids

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """Return the text of ``ids``; broken characters are U+FFFD.

        Special tokens are left out, or stand by their names when ``special``.
        """
        shown = self.shown_bytes if special else self.token_bytes
        return b"".join(shown[i] for i in ids).decode("utf-8", errors="replace")

    def render(self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool) -> str:
        """Return the chat template's text; messages hold ``role`` and ``content`` strings."""
        asked = add_generation_prompt
        return str(self._template.render(messages=messages, add_generation_prompt=asked))

    def save(self, folder: Path) -> None:
        """Write tokenizer.json and tokenizer_config.json into ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        _hub_tokenizer().save(str(folder / "tokenizer.json"))
        config = json.dumps(hub_config(), indent=2) + "\n"
        (folder / "tokenizer_config.json").write_text(config, encoding="utf-8")

    @cached_property
    def _template(self) -> Any:
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        return ImmutableSandboxedEnvironment().from_string(CHAT_TEMPLATE)

    def _id(self, token: str) -> int:
        return self._ids[token]


def _name(byte: int) -> str:
    return chr(byte) if byte < 128 else f"bytes:\\x{byte:02x}"


def write_tokenizer(folder: Path) -> Path:
    """Write the tokenizer's files into ``folder`` and return it."""
    ChatTokenizer().save(folder)
    return folder


def main(argv: Sequence[str] | None = None) -> int:
    """Write the tokenizer into the folder named on the command line; return the exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m infx.engine.tokenizer DIR", file=sys.stderr)
        return 2
    print(write_tokenizer(Path(arguments[0])))
    return 0


def _hub_tokenizer() -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {char: byte for byte, char in enumerate(_byte_characters())}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    return tokenizer


def _byte_characters() -> list[str]:
    """Return the character that byte-level tokenizers write for each byte (GPT-2's table).

    Printable Latin-1 bytes stand for themselves, the others for characters from U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(b if b in printable else 0x100 + others.index(b)) for b in range(256)]


def hub_config() -> dict[str, Any]:
    """Return tokenizer_config.json: the special tokens and the chat template."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": END,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 8192,
        "chat_template": CHAT_TEMPLATE,
    }


if __name__ == "__main__":
    sys.exit(main())
