"""Log-probabilities over the wire, as evaluations of likelihood read them."""

from __future__ import annotations

import pytest
import torch

from infx.engine.model.reference import ReferenceModel
from infx.engine.shapes import mini
from infx.engine.weights import target_weights
from tests.engine.driving_engine import TOKENIZER
from tests.engine.running_engine import running

pytestmark = pytest.mark.slow

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
SCORED = {"temperature": 0, "max_tokens": 1, "logprobs": 1, "echo": True}


@pytest.fixture(scope="module")
def server():
    with running("--max-model-len", "512", "--max-num-batched-tokens", "48") as one:
        yield one


@pytest.fixture(scope="module")
def reference():
    """The model's own log-probabilities [T, ids] of a text of T ids."""
    torch.set_num_threads(1)
    model = ReferenceModel(mini(), target_weights(mini(), "random:0"))
    return lambda ids: model.logits(ids)[:, : TOKENIZER.size].log_softmax(-1)


def choices(server, **body):
    status, answer = server.post(TEXT, {"temperature": 0} | body)
    assert status == 200, answer
    return answer["choices"]


def test_an_echo_scores_every_token_as_the_model_does(server, reference):
    prompts = [[260], [65, 66], list(range(32, 122)), TOKENIZER.encode("<|bos|>é<|im_end|>")]
    found = choices(server, prompt=prompts, **SCORED)
    assert [choice["index"] for choice in found] == [0, 1, 2, 3]
    for prompt, choice in zip(prompts, found, strict=True):
        told, rows = choice["logprobs"], reference(prompt)
        ids = [TOKENIZER.names.index(name) for name in told["tokens"]]
        assert ids[:-1] == prompt
        assert told["token_logprobs"][0] is told["top_logprobs"][0] is None
        for at in range(1, len(ids)):
            logprob, top = told["token_logprobs"][at], told["top_logprobs"][at]
            assert logprob == pytest.approx(float(rows[at - 1, ids[at]]), abs=1e-4)
            assert max(top.values()) == pytest.approx(float(rows[at - 1].max()), abs=1e-4)
            assert top[told["tokens"][at]] == logprob
            assert len(top) == 1 + (max(top.values()) != logprob)


def test_the_generated_token_of_a_greedy_run_is_the_likeliest(server):
    (choice,) = choices(server, prompt="abc", max_tokens=6, logprobs=3)
    told = choice["logprobs"]
    assert [len(told[name]) for name in told] == [6] * 4
    for logprob, top in zip(told["token_logprobs"], told["top_logprobs"], strict=True):
        assert len(top) == 3
        assert logprob == max(top.values())


def test_probabilities_ignore_temperature_and_the_cache(server):
    body = {"prompt": "the same prompt, longer than a page or two", "echo": True, "logprobs": 0}
    cold = choices(server, **body, max_tokens=1)[0]["logprobs"]["token_logprobs"]
    warm = choices(server, **body, max_tokens=1, temperature=5.0, seed=3)[0]["logprobs"]
    assert warm["token_logprobs"][1:-1] == pytest.approx(cold[1:-1], abs=1e-5)


def test_no_output_at_all_ends_with_the_prompt(server):
    text = "h\u00e9 <|im_end|>"
    (choice,) = choices(server, prompt=text, max_tokens=0, echo=True, logprobs=2)
    assert (choice["text"], choice["finish_reason"]) == (text, "length")
    told = choice["logprobs"]
    assert told["tokens"] == ["h", "bytes:\\xc3", "bytes:\\xa9", " ", "<|im_end|>"]
    assert told["text_offset"] == [0, 1, 1, 2, 3]
    assert len(told["token_logprobs"]) == 5
    (plain,) = choices(server, prompt="ab", max_tokens=0, echo=True)
    assert (plain["text"], plain["logprobs"]) == ("ab", None)


def test_an_empty_prompt_is_scored_after_the_token_that_begins_a_text(server, reference):
    (choice,) = choices(server, prompt="", **SCORED)
    told = choice["logprobs"]
    assert told["tokens"][0] == "<|bos|>"
    expected = reference([TOKENIZER.bos])[0].max()
    assert told["token_logprobs"][1] == pytest.approx(float(expected), abs=1e-4)


def test_offsets_are_where_tokens_stand_in_the_text(server):
    (choice,) = choices(
        server, prompt="caf\u00e9 ", max_tokens=8, echo=True, logprobs=0, ignore_eos=True
    )
    told = choice["logprobs"]
    for name, at in zip(told["tokens"], told["text_offset"], strict=True):
        assert name.startswith(("bytes:", "<|")) or choice["text"][at] == name


def test_a_stream_carries_the_same_probabilities(server):
    body = {"prompt": "stream", "max_tokens": 5, "echo": True, "logprobs": 1, "temperature": 0}
    (whole,) = choices(server, **body)
    chunks = [chunk["choices"][0] for chunk in server.stream(TEXT, body)]
    assert chunks[0]["text"] == "stream"
    assert "".join(chunk["text"] for chunk in chunks) == whole["text"]
    parts = [chunk["logprobs"] for chunk in chunks]
    for name in ("tokens", "text_offset"):
        assert [entry for part in parts for entry in part[name]] == whole["logprobs"][name]
    told = [entry for part in parts for entry in part["token_logprobs"]]
    assert told[0] is None
    assert told[1:] == pytest.approx(whole["logprobs"]["token_logprobs"][1:], abs=1e-4)


def test_a_chat_tells_tokens_bytes_and_alternatives(server):
    body = {"messages": [{"role": "user", "content": "x"}], "temperature": 0, "max_tokens": 4}
    answer = server.post(CHAT, body | {"logprobs": True, "top_logprobs": 2})[1]
    (choice,) = answer["choices"]
    content = choice["logprobs"]["content"]
    assert len(content) == answer["usage"]["completion_tokens"]
    assert (
        bytes(byte for one in content for byte in one["bytes"] or []).decode(errors="replace")
        == choice["message"]["content"]
    )
    for one in content:
        first, second = one["top_logprobs"]
        assert (first["token"], first["logprob"]) == (one["token"], one["logprob"])
        assert second["logprob"] <= first["logprob"]
    none_asked = server.post(CHAT, body | {"logprobs": True})[1]["choices"][0]["logprobs"]
    assert [one["top_logprobs"] for one in none_asked["content"]] == [[]] * len(content)
    assert server.post(CHAT, body)[1]["choices"][0]["logprobs"] is None
