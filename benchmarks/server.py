"""How much of the step loop's token rate survives the server, for one request at a time.

    python -m benchmarks.server [--save] [--rounds 5] [--tokens 128]

Three arms in turn, round after round, since machines are shared and noisy: the step loop (its
scheduler and runner, in this process), the same configuration behind the server and a streaming
client, and the null model behind the server, as fast as it goes: what the server itself costs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.saving import tell

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks/results/server.json"
NULL_TOKENS = 900  # 100 ms of them
FLAGS = ("--max-num-seqs", "4", "--max-model-len", "1024", "--threads", "1")
PROMPT = [40 + at % 80 for at in range(64)]


def loop_rate() -> Callable[[int], float]:
    """Return what gives the tokens/s of the step loop over so many tokens; loads the model once."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    from infx.engine.arguments import parse
    from infx.engine.runner import Runner
    from infx.engine.scheduler import Scheduler
    from infx.engine.tokenizer import ChatTokenizer

    torch.set_num_threads(1)
    config, _ = parse(FLAGS)
    tokenizer = ChatTokenizer()
    runner, scheduler = Runner(config, tokenizer.size), Scheduler(config)

    def rate(tokens: int) -> float:
        """Return the tokens/s of one request of ``tokens`` output tokens, after its first."""
        request = request_of(tokenizer, tokens)
        scheduler.add(request)
        first_s = 0.0
        while (step := scheduler.schedule()) is not None:
            scheduler.commit(step, runner.run(step))
            first_s = first_s or time.monotonic()
        return (tokens - 1) / (time.monotonic() - first_s)

    return rate


def request_of(tokenizer: Any, tokens: int) -> Any:
    """Return a greedy request of `PROMPT` for ``tokens`` output tokens, whatever they are."""
    from infx.engine.detokenizer import TextStream
    from infx.engine.request import Request, SamplingParams

    return Request(
        number=0,
        tokens=list(PROMPT),
        params=SamplingParams(max_tokens=tokens, ignore_eos=True),
        text=TextStream(tokenizer.token_bytes),
        eos=tokenizer.eos,
        deliver=lambda emission: None,
    )


@contextlib.contextmanager
def serving(*flags: str) -> Iterator[Callable[[int], float]]:
    """Start a server; give what gives the tokens/s that one streaming client gets from it."""
    command = [sys.executable, "-m", "infx.engine", "--port", "0", *FLAGS, *flags]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert server.stderr
    try:
        found = re.search(r"listening on http://(\S+):(\d+),", server.stderr.readline())
        assert found
        assert "ready" in server.stderr.readline()
        yield lambda tokens: streamed_rate((found[1], int(found[2])), tokens)
    finally:
        server.terminate()
        server.communicate()


def streamed_rate(address: tuple[str, int], tokens: int) -> float:
    """Return the tokens/s between the first and the last event of one stream."""
    body = json.dumps(
        {"prompt": PROMPT, "max_tokens": tokens, "ignore_eos": True, "temperature": 0,
         "stream": True}
    ).encode()  # fmt: skip
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(address) as client:
        client.sendall(head.encode() + body)
        seen, first_s, tail = 0, 0.0, b""
        while not tail.endswith(b"[DONE]\n\n\r\n0\r\n\r\n"):
            data = client.recv(1 << 16)
            assert data, "the stream broke off"
            seen += data.count(b'"text":')
            if seen and not first_s:
                first_s = time.monotonic()
            tail = (tail + data)[-32:]
        assert seen == tokens, f"{seen} events of {tokens}"
        return (tokens - 1) / (time.monotonic() - first_s)


def compare(rounds: int, tokens: int) -> dict[str, Any]:
    """Return tokens/s of the three arms, round by round, and the share that survives the server."""
    loop = loop_rate()
    rates: dict[str, list[float]] = {"loop": [], "server": [], "null": []}
    with serving() as server, serving("--model", "null") as null:
        arms = {"loop": loop, "server": server, "null": null}
        for arm in arms.values():
            arm(tokens // 4)
        for _ in range(rounds):
            for name, arm in arms.items():
                rates[name].append(arm(NULL_TOKENS if name == "null" else tokens))
    shares = [ours / bare for ours, bare in zip(rates["server"], rates["loop"], strict=True)]
    return {
        "tokens_per_s": {name: round(statistics.median(one), 1) for name, one in rates.items()},
        "share": round(statistics.median(shares), 3),
        "shares": [round(share, 3) for share in shares],
        "server_us_per_token": round(1e6 / statistics.median(rates["null"]), 1),
    }


def measured(about: str | None, compare: Callable[[int, int], dict[str, Any]], path: Path) -> None:
    """Be the command line of a benchmark: measure, print, and save to ``path`` when asked."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--save", action="store_true", help=f"write {path.name}")
    options = parser.parse_args()
    results = compare(options.rounds, options.tokens)
    tell(results, path, save=options.save)


if __name__ == "__main__":
    measured(__doc__, compare, RESULT)
