"""The openai client, as its users write it."""

from __future__ import annotations

import pytest

from tests.engine.running_engine import running

pytestmark = pytest.mark.slow

ASK = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "temperature": 0}


@pytest.fixture(scope="module")
def client():
    import openai

    with running("--served-model-name", "tiny", "--max-model-len", "512") as server:
        yield openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def test_a_stream_adds_up_to_the_whole_answer(client):
    whole = client.chat.completions.create(**ASK, max_completion_tokens=9)
    assert whole._request_id
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *pieces, last = client.chat.completions.create(**ASK, max_completion_tokens=9, **options)
    assert pieces[0].choices[0].delta.role == "assistant"
    text = "".join(piece.choices[0].delta.content for piece in pieces)
    assert text == whole.choices[0].message.content
    assert (last.choices, last.usage.completion_tokens) == ([], whole.usage.completion_tokens)
    assert last.usage.total_tokens == whole.usage.total_tokens


def test_chat_probabilities_have_their_types(client):
    answer = client.chat.completions.create(**ASK, max_tokens=3, logprobs=True, top_logprobs=2)
    content = answer.choices[0].logprobs.content
    assert len(content) == answer.usage.completion_tokens
    for one in content:
        assert len(one.top_logprobs) == 2
        assert (one.token, one.logprob) == (one.top_logprobs[0].token, one.top_logprobs[0].logprob)


def test_completions_take_many_prompts(client):
    answer = client.completions.create(
        model="tiny", prompt=["ab", "c"], max_tokens=2, echo=True, logprobs=1, temperature=0
    )
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.choices[0].text.startswith("ab")
    assert answer.choices[0].logprobs.token_logprobs[0] is None


def test_models_and_request_ids(client):
    import openai

    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").max_model_len == 512
    with pytest.raises(openai.NotFoundError, match="'tiny'"):
        client.models.retrieve("some/other")
    with pytest.raises(openai.NotFoundError, match=r"served are /detokenize, .*/v1/models"):
        client.embeddings.create(model="tiny", input="x")
    named = client.chat.completions.create(
        **ASK, max_tokens=1, extra_headers={"X-Request-ID": "mine-7"}
    )
    assert named._request_id == "mine-7"


def test_refusals_are_the_clients_own_errors(client):
    import openai

    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**ASK, n=2)
    assert (refused.value.param, refused.value.code) == ("n", "unsupported_field")
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model="tiny", prompt="x" * 600)
    assert refused.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(**(ASK | {"model": "other"}))
    thinking = {"chat_template_kwargs": {"enable_thinking": True}}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**ASK, extra_body=thinking)
    assert refused.value.param == "chat_template_kwargs.enable_thinking"
