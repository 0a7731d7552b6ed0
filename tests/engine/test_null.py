"""The null model: paced, without weights, refused where it means nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from infx.domain.errors import UsageError
from infx.engine.config import EngineConfig
from infx.engine.loop import Engine
from infx.engine.request import Emission, SamplingParams


def run(rate: float, requests: int, tokens: int) -> tuple[list[str], float]:
    """The texts of some requests, and the seconds that they took together."""
    engine = Engine(EngineConfig(model="null", null_rate=rate, max_num_seqs=4))
    engine.start()
    texts, ended = [""] * requests, threading.Semaphore(0)

    def deliver(index: int, emission: Emission) -> None:
        texts[index] += emission.text
        if emission.finish_reason:
            ended.release()

    while engine.state != "ready":
        time.sleep(0.001)
    began_s = time.monotonic()
    engine.submit([[0] * 97] * requests, SamplingParams(max_tokens=tokens), deliver)
    for _ in range(requests):
        assert ended.acquire(timeout=30)
    seconds = time.monotonic() - began_s
    engine.check()
    engine.stop()
    return texts, seconds


def test_every_request_gets_the_alphabet_at_the_asked_rate():
    took = []
    for _ in range(3):  # a pause of the machine makes it slower, never faster
        texts, seconds = run(rate=100, requests=3, tokens=21)
        assert texts == ["tuvwxyzabcdefghijklmn"] * 3
        took.append(seconds)
    assert 0.2 <= min(took) < 1.0


def test_without_a_rate_it_goes_as_fast_as_it_can():
    assert run(rate=0, requests=1, tokens=500)[1] < 2.0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"model": "null", "method": "eagle3", "k": 3}, "null makes no drafts"),
        ({"model": "null", "null_rate": -1.0}, "--null-rate -1"),
        ({"model": "null", "null_rate": float("nan")}, "--null-rate nan"),
        ({"model": "mini", "null_rate": 20.0}, "--null-rate 20"),
    ],
)
def test_what_the_null_model_does_not_have_is_refused(options, named):
    with pytest.raises(UsageError, match=named):
        EngineConfig(**options)


def test_the_null_server_needs_no_torch():
    code = (
        "import sys\n"
        "from infx.engine.server import app\n"
        "from infx.engine.config import EngineConfig\n"
        "from infx.engine.loop import Engine\n"
        "engine = Engine(EngineConfig(model='null'))\n"
        "engine.start()\n"
        "engine.stop()\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
