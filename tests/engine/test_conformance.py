"""The server's protocol, over the null model: what needs no weights."""

from __future__ import annotations

import http.client
import json
import math
import socket
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from tests.engine.running_engine import running
from tests.engine.streaming_load import Oversleep

pytestmark = pytest.mark.slow

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


@pytest.fixture(scope="module")
def server():
    flags = ("--null-rate", "200", "--served-model-name", "tiny", "--max-model-len", "2048")
    with running("--model", "null", *flags) as one:
        yield one


def chat(*messages, **more):
    return {"messages": [{"role": "user", "content": "x"}, *messages], "max_tokens": 2, **more}


def send(server, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    data = None if body is None else json.dumps(body).encode()
    connection.request(method, path, data, headers or {})
    answer = connection.getresponse()
    told, data = answer.headers, answer.read()
    connection.close()
    return answer.status, told, data


@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": "d"},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": "a", "tool_calls": []},
        {"role": "tool", "content": "4", "tool_call_id": "c"},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "t"}]},
    ],
)
def test_messages_of_every_role_are_taken(server, message):
    assert server.post(CHAT, chat(message))[0] == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (chat({"role": "user", "name": 3, "content": "x"}), "messages[1].name"),
        (chat({"role": "assistant", "tool_calls": [{}]}), "messages[1].tool_calls"),
        (chat(chat_template_kwargs=3), "chat_template_kwargs"),
        (
            chat(chat_template_kwargs={"thinking_mode": "enabled"}),
            "chat_template_kwargs.thinking_mode",
        ),
        (
            chat(chat_template_kwargs={"enable_thinking": True}),
            "chat_template_kwargs.enable_thinking",
        ),
        (chat(reasoning_effort="high"), "reasoning_effort"),
        (chat(logprobs=True), "logprobs"),
        (chat(response_format={"type": "json_object"}), "response_format"),
    ],
)
def test_what_is_not_served_is_refused_by_name(server, body, field):
    status, answer = server.post(CHAT, body)
    assert (status, answer["error"]["param"]) == (400, field)


@pytest.mark.parametrize(
    "arguments",
    [{"thinking_mode": "disabled"}, {"enable_thinking": False, "other": 1}, {}, None],
)
def test_thinking_may_be_switched_off(server, arguments):
    assert server.post(CHAT, chat(chat_template_kwargs=arguments))[0] == 200


def test_a_request_id_is_repeated_and_otherwise_given(server):
    for path, body in ((CHAT, chat()), (CHAT, chat(stream=True)), (CHAT, chat(n=2))):
        _, told, _ = send(server, "POST", path, body, {"X-Request-ID": "abc-1"})
        assert told["X-Request-ID"] == "abc-1"
    given = {send(server, "GET", "/health")[1]["X-Request-ID"] for _ in range(2)}
    assert len(given) == 2
    odd = send(server, "GET", "/health", headers={"X-Request-ID": "\xe9"})[1]["X-Request-ID"]
    assert len(odd) == 32


def test_paths_methods_and_sizes_are_refused_in_the_apis_shape(server):
    huge = {"prompt": "x" * (17 << 20)}
    for method, path, body, status in (
        ("GET", "/v1/nothing", None, 404),
        ("GET", CHAT, None, 405),
        ("POST", TEXT, huge, 413),
    ):
        got, _, data = send(server, method, path, body)
        assert (got, json.loads(data)["error"]["code"]) == (status, "bad_request")


def test_an_old_client_gets_an_unchunked_stream(server):
    body = json.dumps(chat(stream=True)).encode()
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection._http_vsn, connection._http_vsn_str = 10, "HTTP/1.0"
    connection.request("POST", CHAT, body)
    answer = connection.getresponse()
    lines = answer.read().decode().split("\n\n")
    assert answer.headers["Transfer-Encoding"] is None
    assert lines[-2:] == ["data: [DONE]", ""]
    assert all(line.startswith("data: ") for line in lines[:-1])


def test_the_tokenizer_is_told_for_remote_clients(server):
    info = server.get("/tokenizer_info")
    assert (info["bos_token"], info["eos_token"]) == ("<|bos|>", "<|im_end|>")
    assert "message['role']" in info["chat_template"]
    text = "h\u00e9 <|im_end|>"
    told = server.post("/tokenize", {"prompt": text, "add_special_tokens": False})[1]
    assert (told["count"], told["tokens"][-1]) == (5, 259)
    assert server.post("/detokenize", {"tokens": told["tokens"]})[1] == {"prompt": text}


def test_more_prompts_than_the_queue_ever_holds_are_no_matter_of_retrying(server):
    for prompts, most in ((265, 264), (3000, 2048)):
        status, answer = server.post(TEXT, {"prompt": ["a"] * prompts, "max_tokens": 1})
        assert (status, answer["error"]["param"]) == (400, "prompt")
        assert answer["error"]["message"] == (
            f"prompt is a list of {prompts}; expected at most {most} at once"
        )


def test_requests_in_one_write_are_answered_in_order(server):
    data = json.dumps({"prompt": "a", "max_tokens": 3, "stream": True}).encode()
    stream = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b"
    last = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as client:
        client.sendall(stream % (TEXT.encode(), len(data), data) * 2 + last)
        told = b"".join(iter(lambda: client.recv(65536), b""))
    answers = told.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert len(answers) == 3
    assert all(one.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") for one in answers[:2])
    assert answers[2].endswith(b'{"status":"ready"}')


def test_a_header_may_require_real_acceptance(server):
    real = {"X-Infx-Require": "real-acceptance"}
    assert send(server, "POST", CHAT, chat(), real)[0] == 200
    status, _, data = send(server, "POST", CHAT, chat(), {"X-Infx-Require": "magic"})
    assert (status, json.loads(data)["error"]["param"]) == (400, "X-Infx-Require")


def note_gaps(server, done: threading.Event, found: list[float]) -> None:
    """Add the seconds between the events of a stream, as they come, until ``done``."""
    body = json.dumps({"prompt": "x", "max_tokens": 1800, "stream": True}).encode()
    before = 0.0
    request = urllib.request.Request(server.url + TEXT, data=body)
    with urllib.request.urlopen(request, timeout=60) as answer:
        for line in answer:
            if line.startswith(b"data:") and not done.is_set():
                now = time.monotonic()
                found.append(now - before if before else 0.0)
                before = now
            elif done.is_set():
                break


BIG = {
    "text": {"prompt": "word, " * 2_500_000},
    "texts": {"prompt": ["ab " * 2000] * 2000},
    "ids": {"prompt": [[97] * 2000] * 200},
    "nests": {"prompt": [[[]] * 100] * 3000},
    "values": {"prompt": [0] * 5_000_000},
}


@pytest.mark.alone
@pytest.mark.parametrize("body", BIG.values(), ids=BIG)
def test_a_huge_body_does_not_hold_up_the_streams_of_others(server, body):
    """Reading 15 MB takes long; a stream of 200 tokens a second goes on."""
    data = json.dumps(body).encode()
    done, found = threading.Event(), []
    stream = threading.Thread(target=note_gaps, args=(server, done, found))
    stream.start()
    server.until(lambda: len(found) > 3)
    with Oversleep() as machine:
        status, answer = server.post(TEXT, data)
        seen = len(found)
        # The gap that the body made has ended, or the stream has.
        server.until(lambda: len(found) > seen or not stream.is_alive())
        done.set()
    stream.join()
    assert status in (200, 400), answer
    assert max(found) < 0.4 + 4 * machine.latest_s, (max(found), machine.latest_s)
    server.until(lambda: math.isclose(server.metric("num_requests_running"), 0))
