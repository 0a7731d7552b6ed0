"""A server with one fault, standard library only.

``broken.py FAULT --port N --model NAME --nonce TEXT``
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def main() -> None:
    if "TEST_IMAGE" in os.environ:
        print(f"in {os.environ['TEST_IMAGE']}, sees {os.environ['TEST_MOUNTS']}", flush=True)
    parser = argparse.ArgumentParser()
    parser.add_argument("fault")
    parser.add_argument("--port", type=int)
    parser.add_argument("--model")
    parser.add_argument("--nonce")
    given = parser.parse_args()
    before_start(given.fault)
    Handler.given = given
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Handler)
    print("listening", flush=True)
    server.serve_forever()


def before_start(fault: str) -> None:
    if fault == "dies-at-start":
        print("INFO loading", flush=True)
        raise ValueError("the weights are 3 bytes short")
    if fault == "silent":
        time.sleep(600)
    if fault in ("ignores-term", "slow-and-deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if fault == "says-goodbye":
        signal.signal(signal.SIGTERM, goodbye)
    if fault in ("slow-but-logging", "logs-forever"):
        for part in range(5 if fault == "slow-but-logging" else 10_000):
            print(f"loading part {part}", flush=True)
            time.sleep(0.4)
    if fault == "daemon":
        daemonize()


def goodbye(number: int, _frame: object) -> None:
    print("goodbye", flush=True)
    os._exit(0)


def daemonize() -> None:
    """Leave a grandchild in another session, as a careless engine's worker would be."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)


class Handler(BaseHTTPRequestHandler):
    given: argparse.Namespace
    requests = 0

    def do_GET(self) -> None:
        answer = {
            "/health": {"status": "ok"},
            "/v1/models": {"data": [{"id": self.model()}]},
            "/server_info": {"nonce": self.nonce()},
        }.get(self.path)
        self.say(200 if answer else 404, answer or {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).requests += 1
        self.misbehave()
        if self.given.fault == "engine-dies-on-first-request":
            print("(Worker) ERROR [runner.py:7] AssertionError: no sampling here", flush=True)
            self.say(500, {"error": "see the stack trace above"})
            return
        if self.given.fault == "fails-when-measured" and type(self).requests > 1:
            self.say(500, {"error": "the cache is gone"})
            return
        if body.get("stream"):
            self.stream(body)
        else:
            self.say(200, {"choices": [{"message": {"content": "x"}}], "usage": usage(1)})

    def misbehave(self) -> None:
        fault, number = self.given.fault, type(self).requests
        if fault == "dies-on-first-request":
            print("CUDA error: device-side assert triggered", file=sys.stderr, flush=True)
            os._exit(7)
        if fault == "hangs-on-first-request":
            time.sleep(600)
        if fault == "dies-when-measured" and number > 2:
            print("RuntimeError: out of pages", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "hangs-when-measured" and number > 1:
            time.sleep(600)
        if fault in ("slow", "slow-and-deaf"):
            time.sleep(0.3)

    def stream(self, body: dict[str, object]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        count = int(str(body.get("max_completion_tokens") or body.get("max_tokens") or 1))
        for number in range(count):
            end = "length" if number == count - 1 else None
            self.chunk(
                {"choices": [{"index": 0, "delta": {"content": " x"}, "finish_reason": end}]}
            )
        self.chunk({"choices": [], "usage": usage(count)})
        self.wfile.write(b"data: [DONE]\n\n")

    def chunk(self, content: dict[str, object]) -> None:
        self.wfile.write(b"data: " + json.dumps({**CHUNK, **content}).encode() + b"\n\n")

    def say(self, status: int, content: object) -> None:
        if self.given.fault == "error-on-first-request" and self.command == "POST":
            status, content = 500, {"error": "no kernel image is available"}
        if self.given.fault == "no-token" and self.command == "POST":
            content = {"choices": [], "usage": usage(0)}
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def model(self) -> str:
        return "another-model" if self.given.fault == "another-model" else str(self.given.model)

    def nonce(self) -> str:
        return "0" * 16 if self.given.fault == "another-nonce" else str(self.given.nonce)

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet: a growing log counts as progress."""


CHUNK = {"id": "1", "object": "chat.completion.chunk"}


def usage(count: int) -> dict[str, int]:
    return {"prompt_tokens": 64, "completion_tokens": count, "total_tokens": 64 + count}


if __name__ == "__main__":
    threading.stack_size(256 * 1024)
    main()
