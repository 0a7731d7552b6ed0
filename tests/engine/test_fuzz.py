"""Five hundred wrong bodies: each refused by its field or answered, and the server lives on."""

from __future__ import annotations

import collections
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.engine.bad_bodies import bad_bodies
from tests.engine.running_engine import running

pytestmark = pytest.mark.slow

BODIES = 500
FLAGS = (
    *("--served-model-name", "tiny", "--max-num-seqs", "4", "--max-model-len", "128"),
    *("--max-num-batched-tokens", "256", "--queue-limit", "5000"),
)
ASK = {"messages": [{"role": "user", "content": "still there?"}], "max_tokens": 8, "temperature": 0}


def send(url: str, request: tuple[str, bytes, dict[str, str]]) -> tuple[int, bytes]:
    path, data, headers = request
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("POST", path, data, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def fault(status: int, data: bytes) -> str | None:
    """What is wrong with an answer: None for 200, and for a refusal that names a field."""
    if status == 200:
        whole = (
            data.endswith(b"data: [DONE]\n\n") if data.startswith(b"data:") else json.loads(data)
        )
        return None if whole and b'"error"' not in data else "an answer that breaks off"
    error = json.loads(data)["error"]
    named = error["param"] and error["message"] and error["code"]
    return None if 400 <= status < 500 and named else "no refusal by field"


def test_wrong_bodies_are_refused_by_field_or_answered():
    with running(*FLAGS) as server:
        before = server.post("/v1/chat/completions", ASK)[1]["choices"]
        requests = bad_bodies(seed=4, count=BODIES)
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda one: send(server.url, one), requests))
        for request, (status, data) in zip(requests, answers, strict=True):
            assert fault(status, data) is None, (request, status, data[:500])
        statuses = collections.Counter(status for status, _ in answers)
        assert statuses[200] > 50
        assert statuses[400] > 200
        assert server.metric("num_requests_running") == 0
        assert server.metric("kv_cache_usage") == 0
        assert server.post("/v1/chat/completions", ASK)[1]["choices"] == before
        assert not any("Error handling request" in line for line in server.log), server.log
