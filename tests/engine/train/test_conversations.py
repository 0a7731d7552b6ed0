"""Conversations: the ids that a server makes of lm-eval's messages, and never a test question."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.point import Accuracy
from infx.engine.tokenizer import SPECIAL, ChatTokenizer
from infx.engine.train.conversations import BOS, END, EOS, PAD, START, conversation, prompt
from infx.workloads.gsm_mini import few_shot, questions
from infx.workloads.lm_eval_task import write_task

TOKENIZER = ChatTokenizer()


def text_of(ids: list[int]) -> str:
    return "".join(chr(i) if i < BOS else SPECIAL[i - BOS] for i in ids)


def test_the_special_tokens_are_the_tokenizers() -> None:
    ids = [TOKENIZER.encode(token) for token in SPECIAL]
    assert ids == [[BOS], [EOS], [START], [END], [PAD]]


def lm_eval_messages(folder: Path, shots: int) -> list[list[dict[str, str]]]:
    """Return the messages of each question, as lm-eval's own task writes them."""
    tasks = pytest.importorskip("lm_eval.tasks")
    workload = Accuracy(task="gsm_mini", limit=3, shots=shots)
    write_task(folder, workload)
    task = tasks.TaskManager(include_path=str(folder), include_defaults=False).load(["gsm_mini"])[
        "tasks"
    ]["gsm_mini"]
    task.set_config(key="num_fewshot", value=shots)
    task.build_all_requests(
        rank=0,
        world_size=1,
        apply_chat_template=True,
        fewshot_as_multiturn=True,
        chat_template=lambda messages, **_: json.dumps(messages),
        tokenizer_name="infx",
    )
    return [json.loads(instance.arguments[0]) for instance in task.instances]


@pytest.mark.slow
@pytest.mark.parametrize("shots", [0, 5])
def test_a_prompt_is_the_chat_template_over_lm_evals_messages(tmp_path, shots: int) -> None:
    asked = lm_eval_messages(tmp_path, shots)
    for question, messages in zip(questions("test", 3, 0), asked, strict=True):
        assert len(messages) == 2 * shots + 1
        text = TOKENIZER.render(messages, add_generation_prompt=True)
        assert prompt(few_shot(0, shots), question) == TOKENIZER.encode(text)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([64, 500, 1152]))
def test_a_conversation_fills_its_length_and_weighs_its_tokens(index: int, length: int) -> None:
    ids, weights = conversation(index, length, 4_000_001)
    assert (len(ids), len(weights)) == (length + 1, length)
    assert ids[0] == BOS
    assert set(weights) <= {0.1, 1.0}
    assert all(0 <= i < 261 for i in ids)


def test_weight_one_is_on_answers_and_on_what_ends_them() -> None:
    ids, weights = next(
        made for i in range(20) if START in (made := conversation(i, 1152, 4_000_001))[0]
    )
    learnt = text_of([i for i, weight in zip(ids[1:], weights, strict=True) if weight == 1])
    whole = text_of(ids)
    for answer in learnt.split("<|im_end|>")[:-1]:
        assert f"<|im_start|>assistant\n{answer}<|im_end|>\n" in whole
        assert "#### " in answer


def test_all_styles_come() -> None:
    texts = [text_of(conversation(i, 1152, 4_000_001)[0]) for i in range(60)]
    raw = [text for text in texts if "<|im_start|>" not in text]
    packed = [text for text in texts if text.split("<|im_end|>")[0].count("Question: ") > 1]
    assert raw
    assert [text for text in packed if "<|im_start|>" in text]
    assert len(raw) + len(packed) < 30


def test_no_training_conversation_holds_a_test_question() -> None:
    """By their calculations, where there are enough of them to tell problems apart."""
    asked = {calculations(q.answer) for q in questions("test", 2000, 0)}
    trained = set()
    for index in range(100):
        parts = text_of(conversation(index, 2304, 4_000_001)[0]).split("Question: ")
        trained |= {calculations(part.split("Answer:")[1]) for part in parts[1:-1]}
    telling = {found for found in trained if len(found) > 2}
    assert len(telling) > 100
    assert not telling & asked


def calculations(answer: str) -> tuple[str, ...]:
    return tuple(re.findall("<<(.*?)>>", answer))
