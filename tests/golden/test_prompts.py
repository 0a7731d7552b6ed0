"""What is asked: what an evaluation of gsm_mini sends, or the prompts of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infx.domain.errors import ConfigError
from infx.golden.prompts import gsm_mini, prompt_file
from infx.workloads.gsm_mini import few_shot, question


def test_questions_follow_the_worked_examples_as_turns() -> None:
    found = gsm_mini(3, 2, 5)
    roles = [message["role"] for message in found.chats[0]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert found.chats[1][:-1] == found.chats[0][:-1]
    assert found.chats[1][1]["content"] == few_shot(5, 2)[0].answer
    assert found.chats[1][-1]["content"] == f"Question: {question('test', 1, 5).question}\nAnswer:"
    assert len(found.chats) == 3


def test_files_of_lines_and_of_objects(tmp_path: Path) -> None:
    text, rows = tmp_path / "a.txt", tmp_path / "a.jsonl"
    text.write_text("one\n\ntwo\nthree\n")
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": "two"}]
    rows.write_text(f"{json.dumps({'prompt': 'one'})}\n{json.dumps({'messages': chat})}\n")
    assert prompt_file(text, 2).chats == (
        ({"role": "user", "content": "one"},),
        ({"role": "user", "content": "two"},),
    )
    assert prompt_file(rows, 2).chats == (({"role": "user", "content": "one"},), tuple(chat))
    assert prompt_file(text, 2).content != prompt_file(rows, 2).content


@pytest.mark.parametrize(
    ("name", "text", "code", "line"),
    [
        ("a.txt", "one\n", "out-of-range", 0),
        ("a.jsonl", '{"prompt": "a"}\n{"prompt"\n', "wrong-type", 2),
        ("a.jsonl", '{"prompt": "a"}\n{"messages": []}\n', "wrong-type", 2),
        ("a.jsonl", '{"messages": [{"role": 3}]}\n[]\n', "wrong-type", 1),
    ],
)
def test_faults_are_named_at_their_line(
    tmp_path: Path, name: str, text: str, code: str, line: int
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as raised:
        prompt_file(tmp_path / name, 2)
    (finding,) = raised.value.findings
    assert (finding.code, finding.where and finding.where.line) == (code, line)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        prompt_file(tmp_path / "none.txt", 2)
    assert raised.value.code == "file-not-found"
