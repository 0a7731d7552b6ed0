"""A chat server that streams as many tokens as asked, standard library only: --port N.

Its pages are vLLM's own: /metrics, /v1/models, /server_info.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DRAFTS = "vllm:spec_decode_num_drafts_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    steps = 0

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        steps = Handler.steps
        metrics = f"{DRAFTS} {steps}\n{ACCEPTED} {steps * 1.5}\n"
        pages = {
            "/metrics": metrics,
            "/v1/models": json.dumps({"data": [{"id": "tiny"}]}),
            "/server_info": json.dumps({"vllm_config": {"scheduler_config": {"max_num_seqs": 1}}}),
        }
        self.say(200 if path in pages else 404, pages.get(path, "no such page").encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        count = asked.get("max_completion_tokens") or asked.get("max_tokens") or 1
        Handler.steps += count
        chunks = [{"choices": [{"index": 0, "delta": {"content": "a "}}]} for _ in range(count)]
        usage = {"prompt_tokens": 16, "completion_tokens": count, "total_tokens": 16 + count}
        told = {"object": "chat.completion.chunk"}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in [*chunks, {"choices": [], "usage": usage}]:
            time.sleep(0.005)
            self.wfile.write(f"data: {json.dumps(told | chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(
        ("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler
    )
    print("listening", flush=True)
    server.serve_forever()
