"""Five minutes of load with clients that leave: no error, no page kept, no growth of memory."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

SOAK_S = 300.0
CLIENTS = 12
pytestmark = pytest.mark.proof


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def client(session: Any, url: str, seed: int, until: float, counts: dict[str, int]) -> None:
    """Send streaming requests one after another; leave a quarter of them in the middle."""
    dice = random.Random(seed)
    while time.monotonic() < until:
        words = " ".join(str(dice.randrange(1000)) for _ in range(dice.randrange(5, 120)))
        body = {
            "model": "mini", "stream": True, "ignore_eos": True,
            "max_tokens": dice.randrange(4, 64),
            "messages": [{"role": "user", "content": words}],
        }  # fmt: skip
        leave_after = dice.randrange(1, 6) if dice.random() < 0.25 else None
        async with session.post(url, json=body) as answer:
            counts[str(answer.status)] = counts.get(str(answer.status), 0) + 1
            chunks = 0
            async for _ in answer.content:
                chunks += 1
                if leave_after and chunks >= leave_after:
                    break


def metric(text: str, name: str) -> float:
    line = next(line for line in text.splitlines() if line.startswith(name))
    return float(line.rsplit(" ", 1)[1])


async def soak(base: str, pid: int) -> tuple[dict[str, int], list[float], str]:
    import aiohttp

    counts: dict[str, int] = {}
    sizes_mb: list[float] = []
    async with aiohttp.ClientSession() as session:
        until = time.monotonic() + SOAK_S
        url = f"{base}/v1/chat/completions"
        tasks = [
            asyncio.create_task(client(session, url, n, until, counts)) for n in range(CLIENTS)
        ]
        while time.monotonic() < until:
            await asyncio.sleep(10)
            sizes_mb.append(psutil.Process(pid).memory_info().rss / 1e6)
        await asyncio.gather(*tasks)
        await asyncio.sleep(2)
        async with session.get(f"{base}/metrics") as answer:
            return counts, sizes_mb, await answer.text()


def test_five_minutes_of_load_with_clients_that_leave(tmp_path: Path) -> None:
    port = free_port()
    argv = ["--model", "mini", "--weights", "random:0", "--served-model-name", "mini"]
    argv += [
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--max-num-seqs",
        "6",
        "--num-blocks",
        "192",
    ]
    argv += ["--max-model-len", "1024", "--speculative-method", "eagle3"]
    argv += ["--num-speculative-tokens", "3", "--synthetic-acceptance-length", "2.78"]
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "infx.engine", *argv], stdout=log, stderr=log
        )
    try:
        base = f"http://127.0.0.1:{port}"
        wait_healthy(base, server)
        counts, sizes_mb, metrics = asyncio.run(soak(base, server.pid))
    finally:
        server.terminate()
        assert server.wait(60) == 0, (tmp_path / "server.log").read_text()[-2000:]
    print(counts, [round(size) for size in sizes_mb])
    assert set(counts) == {"200"}
    assert counts["200"] > 100
    assert metric(metrics, "infx:num_requests_running") == 0
    assert metric(metrics, "infx:kv_cache_usage") == 0
    half = len(sizes_mb) // 2
    assert max(sizes_mb[half:]) < 1.1 * max(sizes_mb[:half]), "memory grows"


def wait_healthy(base: str, server: subprocess.Popen[bytes]) -> None:
    from urllib.error import URLError
    from urllib.request import urlopen

    for _ in range(300):
        assert server.poll() is None
        try:
            with urlopen(f"{base}/health") as answer:
                if answer.status == 200:
                    return
        except URLError:
            time.sleep(0.2)
    pytest.fail("the engine did not get ready in a minute")
