"""Tokens to text and back, stop strings, sampling, the tokenizer's files."""

from __future__ import annotations

import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infx.engine.detokenizer import TextStream
from infx.engine.request import Request, SamplingParams
from infx.engine.sampling import Draw, sample
from infx.engine.tokenizer import main
from tests.engine.driving_engine import TOKENIZER

BYTES = TOKENIZER.token_bytes


@given(st.text())
def test_encode_then_decode_is_the_text(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(st.text(), st.binary(max_size=3))
def test_streamed_pieces_are_the_text_with_no_half_character(text, junk):
    data = text.encode() + junk
    stream = TextStream(BYTES)
    pieces = [stream.push(byte) for byte in data]
    assert "".join(pieces) + stream.finish() == data.decode("utf-8", errors="replace")
    shown = "".join(pieces[: len(text.encode())])
    assert shown == text


@given(st.text("ab", max_size=12), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
def test_text_ends_before_the_first_stop_string(text, stops):
    stream, shown = TextStream(BYTES, stops), ""
    for byte in text.encode():
        shown += stream.push(byte)
        if stream.stopped:
            break
    shown += stream.finish()
    ends = [text.find(stop) + len(stop) for stop in stops if stop in text]
    if not ends:
        assert (shown, stream.stopped) == (text, False)
        return
    seen = text[: min(ends)]
    assert stream.stopped
    assert shown == seen[: min(seen.find(stop) for stop in stops if stop in seen)]


def emit(tokens, **params):
    request = Request(
        number=0, tokens=[1, 2], params=SamplingParams(**({"max_tokens": 99} | params)),
        text=TextStream(BYTES, params.get("stop", ())), eos=TOKENIZER.eos, deliver=lambda e: None,
    )  # fmt: skip
    return request.accept(tokens)


def test_long_stop_strings_cost_little_at_every_token():
    """They are searched for in the engine's thread: a search of all of what is held, at each token
    and for each string, took minutes for one body."""
    text = "abcdefghijklmnopqrstuvwxyz" * 300
    stream = TextStream(BYTES, [text[at:7700] + "#" for at in range(0, 52)] + ["z" * 8000] * 12)
    began_s = time.process_time()
    shown = "".join(map(stream.push, text.encode()))
    assert shown + stream.finish() == text
    assert time.process_time() - began_s < 10


EOS = min(TOKENIZER.eos)


@pytest.mark.parametrize(
    ("tokens", "params", "text", "count", "reason"),
    [
        (b"abcdef", {"max_tokens": 3}, "abc", 3, "length"),
        (b"abcdef", {"stop": ("cd",)}, "ab", 4, "stop"),
        (b"abcdef", {"stop": ("cd",), "min_tokens": 5}, "abcdef", 6, None),
        (b"ab", {"stop": ("bc",)}, "a", 2, None),
        (b"ab", {"stop": ("bc",), "max_tokens": 2}, "ab", 2, "length"),
        ([97, EOS, 98], {}, "a", 2, "stop"),
        ([97, EOS, 98], {"ignore_eos": True}, "ab", 3, None),
        ([97, EOS, 98], {"min_tokens": 3}, "ab", 3, None),
        ("é".encode()[:1], {"max_tokens": 1}, "\ufffd", 1, "length"),
    ],
)
def test_a_request_ends_where_it_should(tokens, params, text, count, reason):
    emission = emit(list(tokens), **params)
    assert (emission.text, emission.tokens, emission.finish_reason) == (text, count, reason)


def test_sampling_follows_the_draw_and_the_kept_tokens():
    logits = torch.tensor([[0.6, 0.3, 0.1]]).log().repeat(8, 1)
    draws = [
        Draw(),
        Draw(banned=frozenset({0})),
        Draw(1.0, point=0.59),
        Draw(1.0, point=0.61),
        Draw(1.0, point=0.95),
        Draw(1.0, top_k=1, point=0.95),
        Draw(1.0, top_p=0.7, point=0.999),
        Draw(1.0, top_p=0.0, point=0.999),
    ]
    assert sample(logits, draws) == [0, 1, 0, 1, 2, 0, 1, 0]


def test_no_draw_is_too_extreme_to_sample():
    logits = torch.tensor([[0.5, 3.0, 1.0]])
    assert sample(logits, [Draw(5e-324, point=0.999)]) == [1]
    assert sample(logits, [Draw(1.0, top_k=2**63 - 1, point=0.0)]) == [1]
    # The largest double below 1 rounds to 1 in float32.
    assert sample(logits, [Draw(1e9, point=1 - 2**-53)]) == [0]


def test_sampled_shares_are_the_probabilities():
    logits = torch.tensor([[2.0, 1.0, 0.0]]).repeat(1000, 1)
    chosen = sample(logits, [Draw(2.0, point=n / 1000) for n in range(1000)])
    expected = torch.softmax(logits[0] / 2.0, 0)
    for token in range(3):
        assert chosen.count(token) / 1000 == pytest.approx(float(expected[token]), abs=2e-3)


def test_special_tokens_in_a_chat_are_single_ids():
    text = TOKENIZER.render([{"role": "user", "content": "hé"}], add_generation_prompt=True)
    ids = TOKENIZER.encode(text)
    assert [i for i in ids if i >= 256] == [256, 258, 259, 258]
    assert TOKENIZER.decode(ids) == "user\nhé\nassistant\n"


@pytest.mark.slow
def test_transformers_loads_the_written_tokenizer_and_agrees(tmp_path, capsys):
    from transformers import AutoTokenizer

    assert main([str(tmp_path / "tok")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "tok")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "tok")
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2 = ? ñ"}]
    ours = TOKENIZER.render(chat, add_generation_prompt=True)
    assert theirs.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) == ours
    told = theirs.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    assert list(told) == TOKENIZER.encode(ours)
    assert theirs.decode(theirs.encode("ünï"), skip_special_tokens=True) == "ünï"
    assert len(theirs) == TOKENIZER.size
    assert theirs.eos_token_id in TOKENIZER.eos
