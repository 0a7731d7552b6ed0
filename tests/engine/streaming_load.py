"""Many streams at once, read by one thread with as little work as can be.

A client that takes 50 us an event (asyncio, aiohttp) is itself what delays a server on two cores.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

from tests.engine.running_engine import Running, running

END = b"data: [DONE]\n\n"


@dataclass
class Load:
    """What the streams gave: events, streams that ended well, and how long it took."""

    events: int
    whole: int
    seconds: float


def stream_all(url: str, streams: int, tokens: int, limit_s: float, every_s: float = 0.0) -> Load:
    """Open a connection ``every_s``, ask each for ``tokens`` tokens, read until all have ended."""
    address = urlsplit(url)
    body = json.dumps(
        {"prompt": "load", "max_tokens": tokens, "ignore_eos": True, "stream": True}
    ).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    selector = selectors.DefaultSelector()
    began_s = time.monotonic()
    events = whole = opened = 0
    while opened < streams or selector.get_map():
        now_s = time.monotonic() - began_s
        if now_s > limit_s:
            break
        if opened < streams and now_s >= opened * every_s:
            connection = socket.create_connection((address.hostname, address.port))
            connection.sendall(head.encode() + body)
            selector.register(connection, selectors.EVENT_READ, bytearray())
            opened += 1
        for key, _ in selector.select(every_s if opened < streams else 1.0):
            data = key.fileobj.recv(1 << 16)
            events += data.count(b'"text":')
            key.data[:] = (key.data + data)[-64:]
            ended = END in key.data
            whole += ended
            if ended or not data:
                selector.unregister(key.fileobj)
                key.fileobj.close()
    left = [key.fileobj for key in selector.get_map().values()]
    for connection in left:
        connection.close()
    selector.close()
    return Load(events, whole, time.monotonic() - began_s)


def writes(server: Running) -> tuple[int, int]:
    """How many events were written over 5 ms after the sampler's return, and how many in all."""
    text = server.get("/metrics")
    found = re.findall(r'write_delay_seconds_bucket\{le="(?:0.005|\+Inf)"\} (\d+)', text)
    in_time, total = map(int, found)
    return total - in_time, total


class Oversleep:
    """How late this machine wakes a thread that sleeps: what no server on it can be better than."""

    def __enter__(self) -> Oversleep:
        self._late: list[float] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def late(self) -> float:
        """The share of wake-ups over 2 ms late."""
        return sum(late > 0.002 for late in self._late) / len(self._late)

    @property
    def latest_s(self) -> float:
        """How late the latest wake-up was."""
        return max(self._late, default=0.0)

    def _watch(self) -> None:
        while not self._done.is_set():
            began_s = time.monotonic()
            time.sleep(0.02)
            self._late.append(time.monotonic() - began_s - 0.02)


# As a server does at each step: sleep, then work for some 2 ms. A process of its own, until its
# input ends.
_BURSTS = """
import select, sys, time
took = []
while not select.select([sys.stdin], [], [], 0.03)[0]:
    began = time.monotonic()
    sum(range(80_000))
    took.append(time.monotonic() - began)
print(took)
"""


class Bursts:
    """How often this machine takes 3 ms longer than it does else for a short burst of work: where
    others share its processors, one of a hundred takes ten times as long, and no sleeper is late.
    """

    def __enter__(self) -> Bursts:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _BURSTS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._took: list[float] = json.loads(self._process.communicate()[0])

    @property
    def late(self) -> float:
        """The share of bursts that took over 3 ms longer than their median."""
        usual = statistics.median(self._took)
        return sum(took > usual + 0.003 for took in self._took) / len(self._took)


STREAMS, RATE = 64, 20
FLAGS = ("--model", "null", "--null-rate", str(RATE), "--max-num-seqs", str(STREAMS))


def prove_load(seconds: int, tries: int = 1) -> None:
    """Stream ``seconds`` long to 64 clients, and assert that all is well and nothing is left.

    At most 1 % of the writes come over 5 ms after the sampler's return, and what this machine's
    other work makes late: one of the four wake-ups between sampler and socket (sampler, engine,
    event loop, and the one before in the same burst), if each is over 2 ms late as often as a
    sleeper is meanwhile, or one of the two bursts of work there (engine, event loop), if each is
    over 3 ms late as often as `Bursts` are. On a quiet machine that is nothing. A server that is
    late is late each time, a machine is not: one of ``tries`` is enough.
    """
    with running(*FLAGS) as server:
        process = psutil.Process(server.process.pid)
        stream_all(server.url, STREAMS, 5, limit_s=30)
        server.until(lambda: server.metric("num_requests_running") == 0)
        before_mb, before_files = process.memory_info().rss / 1e6, process.num_fds()
        assert any(in_time(server, seconds) for _ in range(tries))
        server.until(lambda: server.metric("num_requests_running") == 0)
        assert server.metric("kv_cache_usage") == 0
        server.until(lambda: process.num_fds() <= before_files)
        assert process.memory_info().rss / 1e6 < 1.05 * before_mb + 3
        ends = re.findall(r'requests_finished_total\{reason="(\w+)"', server.get("/metrics"))
        assert ends == ["length"]


def in_time(server: Running, seconds: int) -> bool:
    """Assert that every stream is whole, and return whether few enough of the writes were late."""
    late_before, before = writes(server)
    with Oversleep() as sleeper, Bursts() as bursts:
        load = stream_all(
            server.url, STREAMS, seconds * RATE, limit_s=2 * seconds + 20, every_s=0.005
        )
    late_after, after = writes(server)
    late = (late_after - late_before) / (after - before)
    print(load, f"late {late:.4f}, sleeper {sleeper.late:.4f}, bursts {bursts.late:.4f}")
    assert (load.whole, load.events) == (STREAMS, STREAMS * seconds * RATE)
    return late <= 0.01 + 1 - (1 - sleeper.late) ** 4 * (1 - bursts.late) ** 2
