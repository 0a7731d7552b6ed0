"""The server as clients see it: a real process, real sockets."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.engine.running_engine import end, running, start

pytestmark = pytest.mark.slow

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
FLAGS = (
    *("--served-model-name", "tiny", "--max-num-seqs", "2", "--queue-limit", "3"),
    *("--max-model-len", "1024", "--num-blocks", "256", "--nonce", "n-1"),
    *("--capture-sizes", "4,8"),
    *("--speculative-method", "eagle3", "--num-speculative-tokens", "3"),
)
SYNTHETIC = (*FLAGS, "--synthetic-acceptance-length", "2.78")


@pytest.fixture(scope="module")
def server():
    with running(*FLAGS) as one:
        yield one


def chat(text: str, **more):
    return {
        "model": "tiny",
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        **more,
    }


def test_a_chat_is_answered_in_the_shape_of_the_api(server):
    status, body = server.post(CHAT, chat("hello", max_tokens=9, ignore_eos=True))
    assert status == 200
    (choice,) = body["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "length")
    assert choice["message"]["role"] == "assistant"
    assert len(choice["message"]["content"]) == 9
    usage = body["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (
        25,
        9,
        34,
    )
    assert (body["object"], body["model"]) == ("chat.completion", "tiny")
    assert body["synthetic_acceptance"] is False


def test_a_stream_is_the_same_text_role_first_usage_last(server):
    body = chat("hello", max_completion_tokens=9, ignore_eos=True, name_nobody_knows=1)
    _, whole = server.post(CHAT, body)
    chunks = server.stream(CHAT, body | {"stream_options": {"include_usage": True}})
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 9
    pieces = [chunk["choices"][0] for chunk in chunks[1:-1]]
    text = "".join(piece["delta"]["content"] for piece in pieces)
    assert text == whole["choices"][0]["message"]["content"]
    assert [piece["finish_reason"] for piece in pieces] == [None] * (len(pieces) - 1) + ["length"]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert all("usage" not in chunk for chunk in chunks[:-1])


def test_content_may_be_parts_and_prompts_may_be_token_ids(server):
    parts = [{"type": "text", "text": "he"}, {"type": "text", "text": "llo"}]
    one = server.post(CHAT, chat("hello", max_tokens=5))[1]
    two = server.post(CHAT, chat(parts, max_tokens=5))[1]
    assert one["choices"][0]["message"] == two["choices"][0]["message"]
    ids = server.post("/tokenize", {"prompt": "ab"})[1]["tokens"]
    assert ids == [97, 98]
    assert server.post("/detokenize", {"tokens": ids})[1] == {"prompt": "ab"}
    answers = server.post(TEXT, {"prompt": ["ab", "c"], "max_tokens": 4, "temperature": 0})[1]
    by_ids = server.post(TEXT, {"prompt": [ids, [99]], "max_tokens": 4, "temperature": 0})[1]
    assert answers["choices"] == by_ids["choices"]
    assert [choice["index"] for choice in answers["choices"]] == [0, 1]
    assert answers["usage"]["completion_tokens"] == 8
    messages = {"messages": [{"role": "user", "content": "x"}]}
    assert server.post("/tokenize", messages)[1]["count"] == 21


def test_stop_strings_span_tokens_and_are_trimmed(server):
    text = server.post(CHAT, chat("stop", max_tokens=12))[1]["choices"][0]["message"]["content"]
    stop = text[4:7]
    at = text.find(stop)
    for stops in (stop, ["never seen", stop]):
        choice = server.post(CHAT, chat("stop", max_tokens=12, stop=stops))[1]["choices"][0]
        assert (choice["message"]["content"], choice["finish_reason"]) == (text[:at], "stop")
    chunks = server.stream(CHAT, chat("stop", max_tokens=12, stop=stop))
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == text[:at]


def test_a_seed_repeats_and_another_does_not(server):
    def ask(seed):
        body = chat("dice", max_tokens=16, temperature=1.0, seed=seed)
        return server.post(CHAT, body)[1]["choices"][0]["message"]["content"]

    assert ask(1) == ask(1) != ask(2)


def test_a_seed_repeats_beside_any_other_requests(server):
    body = chat("dice", max_tokens=16, temperature=1.0, seed=1)
    alone = server.post(CHAT, body)[1]["choices"]
    crowd = [body, chat("y" * 200, max_tokens=12, temperature=1.0), body, chat("z", seed=2)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda one: server.post(CHAT, {"max_tokens": 9} | one)[1], crowd))
    assert answers[0]["choices"] == answers[2]["choices"] == alone


def test_no_stop_counts_before_min_tokens(server):
    body = chat("stop", max_tokens=12)
    text = server.post(CHAT, body)[1]["choices"][0]["message"]["content"]
    stop = {"stop": text[1:3], "min_tokens": 8}
    choice = server.post(CHAT, body | stop)[1]["choices"][0]
    assert len(choice["message"]["content"]) >= 8
    assert text.startswith(choice["message"]["content"])


def test_a_second_turn_hits_the_prefix_cache(server):
    first = chat("long " * 30, max_tokens=4)
    assert server.post(CHAT, first)[1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    usage = server.post(CHAT, first)[1]["usage"]
    full_pages = (usage["prompt_tokens"] - 1) // 16 * 16
    assert usage["prompt_tokens_details"]["cached_tokens"] == full_pages
    assert server.metric("prefix_cache_hits_total") >= full_pages


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        (b"{", 400, "bad_request", "body"),
        (b"[1]", 400, "bad_request", "body"),
        (b"\xff", 400, "bad_request", "body"),
        ({"messages": []}, 400, "bad_request", "messages"),
        ({"messages": ["x"]}, 400, "bad_request", "messages[0]"),
        ({"messages": [{"content": "x"}]}, 400, "bad_request", "messages[0].role"),
        ({"messages": [{"role": "robot", "content": "x"}]}, 400, "bad_request", "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, 400, "bad_request", "messages[0].content"),
        (chat([{"type": "image_url"}]), 400, "unsupported_field", "messages[0].content[0]"),
        (chat("x") | {"model": "other"}, 404, "unknown_model", "model"),
        (chat("x", n=2), 400, "unsupported_field", "n"),
        (chat("x", tools=[{}]), 400, "unsupported_field", "tools"),
        (chat("x", logit_bias={"1": 2}), 400, "unsupported_field", "logit_bias"),
        (chat("x", logprobs=1), 400, "bad_request", "logprobs"),
        (chat("x", top_logprobs=2), 400, "bad_request", "top_logprobs"),
        (chat("x", logprobs=True, top_logprobs=21), 400, "bad_request", "top_logprobs"),
        (chat("x", temperature=-1), 400, "bad_request", "temperature"),
        (chat("x", temperature="hot"), 400, "bad_request", "temperature"),
        (chat("x", top_p=1.5), 400, "bad_request", "top_p"),
        (chat("x", max_tokens=0), 400, "bad_request", "max_tokens"),
        (chat("x", max_tokens=True), 400, "bad_request", "max_tokens"),
        (chat("x", min_tokens=9, max_tokens=3), 400, "bad_request", "min_tokens"),
        (chat("x", stop=[""]), 400, "bad_request", "stop"),
        (chat("x", seed=1.5), 400, "bad_request", "seed"),
        (chat("x", stream="yes"), 400, "bad_request", "stream"),
        (chat("x", max_tokens=5000), 400, "context_length_exceeded", "max_tokens"),
        (chat("x" * 2000), 400, "context_length_exceeded", "messages"),
        (chat("x" * 10_000_000), 400, "context_length_exceeded", "messages"),
        (b'{"max_tokens": ' + b"1" * 5000 + b"}", 400, "bad_request", "body"),
        (chat("\ud800", max_tokens=1), 400, "bad_request", "messages"),
        (chat("x", top_k=10**400), 400, "bad_request", "top_k"),
        (chat("x", temperature=float("inf")), 400, "bad_request", "temperature"),
        (chat("x", seed=2**63), 400, "bad_request", "seed"),
        (chat("x", max_completion_tokens=0), 400, "bad_request", "max_completion_tokens"),
        (chat("x", stop=["a"] * 65), 400, "bad_request", "stop"),
        (chat("x", logprobs=0), 400, "bad_request", "logprobs"),
        (chat("x", n=True), 400, "unsupported_field", "n"),
        (chat("x", stop_token_ids=[3]), 400, "unsupported_field", "stop_token_ids"),
    ],
)
def test_bad_bodies_are_refused_with_the_fields_name(server, body, status, code, field):
    got, answer = server.post(CHAT, body)
    error = answer["error"]
    assert (got, error["code"], error["param"]) == (status, code, field)
    assert error["message"]


def test_bad_prompts_are_refused(server):
    for prompt in (None, {}, [1, "a"], [99999], [[True]], "\ud800", ["a"] * 2049):
        status, answer = server.post(TEXT, {"prompt": prompt})
        assert (status, answer["error"]["param"].startswith("prompt")) == (400, True)


def test_a_prompt_that_nearly_fills_the_context_gets_what_is_left(server):
    status, answer = server.post(TEXT, {"prompt": "x" * 1020, "ignore_eos": True})
    assert (status, answer["usage"]["completion_tokens"]) == (200, 4)


@pytest.mark.parametrize("tokens", [None, "ab", [[97]], [97, 999]])
def test_detokenize_takes_one_list_of_ids(server, tokens):
    status, answer = server.post("/detokenize", {"tokens": tokens})
    assert (status, answer["error"]["param"][:6]) == (400, "tokens")
    assert server.post("/detokenize", {"tokens": []})[1] == {"prompt": ""}


def test_a_body_that_does_not_decompress_is_refused(server):
    request = urllib.request.Request(
        server.url + CHAT, data=b"{}", headers={"Content-Encoding": "gzip"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert (refused.value.code, json.load(refused.value)["error"]["param"]) == (400, "body")


WRONG = (
    *(None, True, 0, -1, 2**63, 10**400, 1e308, 1e-320, math.nan, -math.inf, 1.5, "", "x"),
    *("\ud800", "é\0", [], [[]], {}, {"a": [{}]}, [None], [1, "a"], {"type": "text"}, ["x"] * 70),
)
FIELDS = (
    *("model", "messages", "prompt", "max_tokens", "max_completion_tokens", "min_tokens", "top_p"),
    *(
        "temperature",
        "top_k",
        "seed",
        "ignore_eos",
        "stop",
        "stream",
        "stream_options",
        "n",
        "echo",
    ),
    *("echo", "logprobs", "logit_bias", "tools", "response_format", "presence_penalty", "new"),
)


def test_any_wrong_value_in_any_field_is_taken_or_refused_by_name(server):
    rng = random.Random(0)
    bodies = []
    for field, value in rng.sample([(f, v) for f in FIELDS for v in WRONG], 200):
        path = rng.choice((CHAT, TEXT))
        source = {"prompt": "x"} if path == TEXT else {"messages": [{"role": "u", "content": "x"}]}
        body = source | {"max_tokens": 1} | {field: value}
        if body["max_tokens"] is not None and body.get("stream") is not True:
            bodies.append((path, body))
    assert len(bodies) > 180
    for path, body in bodies:
        status, answer = server.post(path, body, timeout_s=30)
        assert status == 200 or (400 <= status < 500 and answer["error"]["param"]), (body, answer)
    assert server.metric("kv_cache_usage") == 0


def test_neutral_values_of_unserved_fields_are_taken(server):
    body = chat("x", max_tokens=1, n=1, logprobs=False, tools=None, logit_bias={}, top_k=-1)
    assert server.post(CHAT, body)[0] == 200


def test_the_server_says_what_it_is(server):
    info = server.get("/server_info")
    assert (info["nonce"], info["pid"]) == ("n-1", server.process.pid)
    config = info["config"]
    assert (config["max_num_seqs"], config["k"], config["capture_sizes"]) == (2, 3, [4, 8])
    assert config["weights_identity"] == ""
    assert (config["router_dtype"], config["expert_dtype"], config["projection_dtype"]) == (
        "fp32",
        "fp32",
        "fp32",
    )
    assert config["simulated_ranks"] == 1
    assert config["acceptance"] == {"mode": "real", "length": None, "k": 3}
    assert server.get("/v1/models")["data"][0]["id"] == "tiny"


def test_a_client_that_leaves_frees_its_pages(server):
    address = urlsplit(server.url)
    body = json.dumps(chat("bye", max_tokens=900, ignore_eos=True, stream=True)).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection((address.hostname, address.port)) as client:
        client.sendall(head + body)
        server.until(lambda: server.metric("num_requests_running") == 1)
        assert server.metric("kv_cache_usage") > 0
    server.until(lambda: server.metric("num_requests_running") == 0, limit_s=10)
    assert server.metric("kv_cache_usage") == 0


def test_max_num_seqs_binds_and_the_queue_is_bounded(server):
    body = chat("crowd", max_tokens=30, ignore_eos=True)
    seen: list[tuple[float, float]] = []
    done = threading.Event()

    def watch():
        while not done.is_set():
            metrics = (server.metric("num_requests_running"), server.metric("num_requests_waiting"))
            seen.append(metrics)
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(8) as pool:
        statuses = [status for status, _ in pool.map(lambda _: server.post(CHAT, body), range(8))]
    done.set()
    watcher.join()
    assert max(running for running, _ in seen) == 2
    assert 0 < max(waiting for _, waiting in seen) <= 3 + 2
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 5


def test_synthetic_acceptance_is_said_and_realised():
    with running(*SYNTHETIC) as server:
        assert server.get("/v1/models")["data"][0]["acceptance"]["mode"] == "synthetic"
        assert server.metric("synthetic_acceptance") == 1
        acceptance = server.get("/server_info")["config"]["acceptance"]
        assert (acceptance["length"], acceptance["law"]) == (2.78, "min-variance")
        _, body = server.post(CHAT, chat("x", max_tokens=200, ignore_eos=True))
        assert body["synthetic_acceptance"] is True
        assert body["usage"]["completion_tokens"] == 200
        steps = server.metric("spec_verify_steps_total")
        assert server.metric("spec_acceptance_length") == pytest.approx(
            2.78, abs=4 * (0.78 * 0.22 / steps) ** 0.5
        )
        assert server.metric("decode_rows_total") == 4 * steps


def test_synthetic_acceptance_refuses_to_be_evaluated():
    with running(*SYNTHETIC) as server:
        scored = {"prompt": "x", "max_tokens": 1, "echo": True, "logprobs": 1}
        status, answer = server.post(TEXT, scored)
        assert (status, answer["error"]["code"]) == (409, "synthetic_acceptance")
        assert answer["error"]["param"] == "logprobs"
        data = json.dumps(chat("x", max_tokens=1)).encode()
        required = {"X-Infx-Require": "real-acceptance"}
        request = urllib.request.Request(server.url + CHAT, data=data, headers=required)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        told = json.load(refused.value)["error"]
        assert (refused.value.code, told["code"]) == (409, "synthetic_acceptance")
        assert told["param"] == "X-Infx-Require"


def test_term_finishes_what_runs_and_refuses_what_comes():
    server = start(*FLAGS)
    try:
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(server.post, CHAT, chat("last", max_tokens=100, ignore_eos=True))
            server.until(lambda: server.metric("num_requests_running") == 1)
            os.kill(server.process.pid, signal.SIGTERM)
            server.until(lambda: any("draining" in line for line in server.log))
            status, answer = server.post(CHAT, chat("late", max_tokens=1))
            assert (status, answer["error"]["code"]) == (503, "draining")
            status, answer = slow.result()
            assert (status, answer["usage"]["completion_tokens"]) == (200, 100)
    finally:
        assert end(server) == 0


def test_a_second_term_does_not_wait_for_what_runs():
    server = start(*FLAGS)
    try:
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(server.post, CHAT, chat("x", max_tokens=900, ignore_eos=True))
            server.until(lambda: server.metric("num_requests_running") == 1)
            os.kill(server.process.pid, signal.SIGTERM)
            server.until(lambda: any("draining" in line for line in server.log))
            began_s = time.monotonic()
            os.kill(server.process.pid, signal.SIGTERM)
            assert server.process.wait(timeout=30) == 0
            assert time.monotonic() - began_s < 8
            status, answer = slow.result()
            assert (status, answer["choices"][0]["finish_reason"]) == (200, "abort")
    finally:
        end(server)


def test_a_taken_port_is_exit_3_with_its_code():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        command = [sys.executable, "-m", "infx.engine", "--port", str(holder.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("port-busy ")


def test_help_is_light():
    code = (
        "import sys, contextlib\n"
        "from infx.engine.arguments import parse\n"
        "with contextlib.suppress(SystemExit): parse(['--help'])\n"
        "assert not {'torch', 'aiohttp', 'numpy'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
