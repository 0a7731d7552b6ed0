"""A server that speaks as infx's engine does, for what a real one does not do on purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

METRICS = """\
infx:num_requests_running {running}
infx:num_requests_waiting 0
infx:spec_verify_steps_total {steps}
infx:spec_accepted_tokens_total {accepted}
"""


@dataclass
class Behaviour:
    """What it says and does; each request takes ten steps that accept as ``accepts`` says."""

    acceptance: dict[str, Any] = field(default_factory=lambda: {"mode": "real", "k": 3})
    config: dict[str, Any] = field(default_factory=lambda: {"k": 3, "method": "eagle3"})
    accepts: tuple[int, ...] = (10, 20, 15, 12)
    steps: int = 10
    running: int = 0
    counters: bool = True
    thinking: str = "distinct"
    status: int = 200
    hang_up_after: int = 10**9
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def broken_engine(behaviour: Behaviour) -> Iterator[str]:
    """Serve on a free port; yield the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(behaviour))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(behaviour: Behaviour) -> type[BaseHTTPRequestHandler]:
    lock = Lock()
    counts = {"steps": 0, "accepted": 0}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            if self.path == "/metrics":
                page = METRICS.format(running=behaviour.running, **counts)
                self._answer(200, page if behaviour.counters else "infx:other 1\n")
            elif self.path == "/server_info":
                config = {**behaviour.config, "acceptance": behaviour.acceptance}
                self._answer(200, {"version": "9.9", "config": config})
            else:
                self._answer(200, {"data": [{"id": "stub"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kwargs = body.get("chat_template_kwargs", {})
            if self.path == "/tokenize":
                text = json.dumps(kwargs) if behaviour.thinking == "distinct" else ""
                self._answer(200, {"tokens": [*text.encode()]})
            elif behaviour.thinking == "refused" and kwargs.get("thinking_mode") == "enabled":
                self._answer(400, {"error": {"message": "no thinking here"}})
            elif body["max_tokens"] == 1:
                self._answer(200, {})
            else:
                self._generate(body)

        def _generate(self, body: dict[str, Any]) -> None:
            with lock:
                if len(behaviour.asked) >= behaviour.hang_up_after:
                    self.connection.close()
                    return
                counts["steps"] += behaviour.steps
                turn = len(behaviour.asked) % len(behaviour.accepts)
                counts["accepted"] += behaviour.accepts[turn] if behaviour.steps else 0
                behaviour.asked.append(body)
                behaviour.headers.append(dict(self.headers))
            self._answer(behaviour.status, {"error": {"message": "not today"}})

        def _answer(self, status: int, content: Any) -> None:
            text = content if isinstance(content, str) else json.dumps(content)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    return Handler
