"""Bodies to calls, without a server."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.engine.request import TokenLogprob
from infx.engine.server.bodies import read_chat, read_completion, read_json
from infx.engine.server.fields import BodyError, shown
from infx.engine.server.logprobs import LEAST, TextLogprobs
from infx.engine.tokenizer import ChatTokenizer, _hub_tokenizer

TOKENIZER, CONTEXT = ChatTokenizer(), 256
HUB = _hub_tokenizer()
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
FIELDS = (
    *("messages", "prompt", "max_tokens", "max_completion_tokens", "min_tokens", "stop", "stream"),
    *("logprobs", "top_logprobs", "echo", "n", "seed", "chat_template_kwargs", "stream_options"),
)


@settings(deadline=None)
@given(st.lists(st.text() | st.sampled_from(("<|bos|>", "<|im_end|>", "<|im_", "|>"))).map("".join))
def test_encoding_is_what_the_written_tokenizer_gives(text):
    assert TOKENIZER.encode(text) == list(HUB.encode(text, add_special_tokens=False).ids)
    assert TOKENIZER.decode(TOKENIZER.encode(text), special=True) == text


def test_every_token_has_a_name_of_its_own():
    assert len(set(TOKENIZER.names)) == TOKENIZER.size


@pytest.mark.parametrize(
    ("read", "base"),
    [(read_chat, {"messages": [{"role": "user"}]}), (read_completion, {"prompt": "x"})],
)
@settings(max_examples=30, deadline=None)
@given(body=st.dictionaries(st.sampled_from(FIELDS), ANYTHING))
def test_any_body_is_read_or_refused_by_field(read, base, body):
    refusal = None
    try:
        call = read(base | body, TOKENIZER, CONTEXT)
    except BodyError as error:
        refusal = error
    if refusal is None:
        assert all(len(one) + call.params.max_tokens <= CONTEXT for one in call.prompts)
    else:
        assert refusal.field


@settings(deadline=None)
@given(ANYTHING)
def test_the_fast_reader_and_the_slow_one_agree(value):
    data = json.dumps({"a": value}).encode()
    assert repr(read_json(data)) == repr(json.loads(data))


@pytest.mark.parametrize(
    ("body", "logprobs", "prompt_logprobs", "max_tokens"),
    [
        ({}, None, None, 16),
        ({"logprobs": 2}, 2, None, 16),
        ({"logprobs": False}, None, None, 16),
        ({"echo": True, "logprobs": 0, "max_tokens": 0}, 0, 0, 0),
        ({"echo": True, "max_tokens": 0}, None, None, 0),
        ({"echo": True, "max_tokens": 3}, None, None, 3),
    ],
)
def test_what_a_completion_asks(body, logprobs, prompt_logprobs, max_tokens):
    call = read_completion({"prompt": ["a", ""]} | body, TOKENIZER, CONTEXT)
    params = call.params
    assert call.prompts == [[97], [TOKENIZER.bos]]
    assert (params.logprobs, params.prompt_logprobs) == (logprobs, prompt_logprobs)
    assert (params.max_tokens, call.echo) == (max_tokens, body.get("echo", False))


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"prompt": "x", "max_tokens": 0}, "max_tokens", "bad-request"),
        ({"prompt": "x", "logprobs": True}, "logprobs", "bad-request"),
        ({"prompt": "x", "logprobs": 21}, "logprobs", "bad-request"),
        ({"prompt": [[97], [261]]}, "prompt[1][0]", "bad-request"),
        ({"prompt": [97] * 300}, "prompt", "context-length-exceeded"),
        ({"prompt": "x" * 256}, "prompt", "context-length-exceeded"),
        ({"prompt": "x" * 200, "max_tokens": 99}, "max_tokens", "context-length-exceeded"),
        ({"prompt": "x", "n": 2}, "n", "unsupported-field"),
    ],
)
def test_what_a_completion_may_not_ask(body, field, code):
    with pytest.raises(BodyError) as refused:
        read_completion(body, TOKENIZER, CONTEXT)
    assert (refused.value.field, refused.value.code) == (field, code)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"prompt": "x" * 300}, "300 tokens and max_tokens 1 are over the context of 256"),
        ({"prompt": "x", "max_tokens": 0}, "a whole number of at least 1"),
        ({"prompt": "x", "top_k": 2**63}, f"from -1 to {2**63 - 1}"),
        ({"prompt": "x", "top_p": 2}, "a number from 0 to 1.0"),
    ],
)
def test_a_refusal_tells_the_sizes(body, told):
    with pytest.raises(BodyError) as refused:
        read_completion(body, TOKENIZER, CONTEXT)
    assert told in refused.value.message


def test_a_body_of_too_many_values_is_refused_before_it_is_read():
    with pytest.raises(BodyError, match="more than 500000 values"):
        read_json(b"[" + b"0," * 500_001 + b"0]")


def test_a_value_is_shown_short_whatever_it_is():
    deep: list = []
    for _ in range(50_000):
        deep = [deep]
    assert len(shown(deep)) <= 80
    assert len(shown("x" * 10**7)) <= 80


def test_a_token_that_cannot_come_has_a_number():
    never = TokenLogprob(98, float("-inf"), ((97, -0.1), (98, float("-inf"))))
    told = TextLogprobs(TOKENIZER).output([never])
    assert told["token_logprobs"] == [LEAST]
    assert told["top_logprobs"] == [{"a": -0.1, "b": LEAST}]
