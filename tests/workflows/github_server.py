"""A GitHub on loopback: what infx asks of its REST interface, and every way in which it says no."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

TOKEN = "token-of-the-test"
BOT = {"login": "github-actions[bot]", "type": "Bot"}


@dataclass(frozen=True)
class Answer:
    """What is said instead of the truth, once; ``done``: what was asked happens all the same."""

    status: int
    message: str = ""
    heads: dict[str, str] = field(default_factory=dict)
    done: bool = False
    text: str | None = None


@dataclass
class Repository:
    """The state of ``example/lab``, and what was asked: ``(method, path)``."""

    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    dispatched: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    login: str = ""
    url: str = ""

    def said(self, body: str, user: dict[str, str], association: str = "NONE") -> dict[str, Any]:
        """Add a comment of somebody; return it."""
        number = 100 + len(self.comments)
        self.comments.append(
            {
                "id": number,
                "body": body,
                "user": user,
                "author_association": association,
                "created_at": f"2026-10-08T10:{number - 100:02}:00Z",
                "html_url": f"https://github.com/example/lab/pull/17#issuecomment-{number}",
            }
        )
        return self.comments[-1]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        """Return status, body and heads of a request below the repository."""
        where, _, query = path.partition("?")
        for (verb, pattern), reply in _ROUTES.items():
            if verb == method and (found := re.fullmatch(pattern, where)):
                return reply(self, found[1], body, query)
        return 404, {"message": "Not Found"}, {}


def _user(repository: Repository, *_: Any) -> Any:
    if repository.login:
        return 200, {"login": repository.login}, {}
    return 403, {"message": "Resource not accessible by integration"}, {}


def _pull(repository: Repository, number: str, *_: Any) -> Any:
    found = repository.pulls.get(int(number))
    return (200, found, {}) if found else (404, {"message": "Not Found"}, {})


def _comments(repository: Repository, _number: str, _body: Any, query: str) -> Any:
    page = int(dict(part.split("=") for part in query.split("&"))["page"])
    items = repository.comments[100 * (page - 1) : 100 * page]
    more = len(repository.comments) > 100 * page
    return 200, items, {"Link": f'<{repository.url}/x?page={page + 1}>; rel="next"'} if more else {}


def _create(repository: Repository, _number: str, body: Any, _query: str) -> Any:
    if len(body["body"]) > 65_536:
        return 422, {"message": "body is too long (maximum is 65536 characters)"}, {}
    user = {"login": repository.login, "type": "User"} if repository.login else BOT
    return 201, repository.said(body["body"], user), {}


def _change(repository: Repository, number: str, body: Any, _query: str) -> Any:
    for comment in repository.comments:
        if comment["id"] == int(number):
            comment["body"] = body["body"]
            return 200, comment, {}
    return 404, {"message": "Not Found"}, {}


def _status(repository: Repository, sha: str, body: Any, _query: str) -> Any:
    repository.statuses.append((sha, body))
    return 201, {}, {}


def _dispatch(repository: Repository, name: str, body: Any, _query: str) -> Any:
    repository.dispatched.append((name, body))
    return 204, None, {}


_HERE = "/repos/example/lab"
_ROUTES: dict[tuple[str, str], Any] = {
    ("GET", "(/user)"): _user,
    ("GET", rf"{_HERE}/pulls/(\d+)"): _pull,
    ("GET", rf"{_HERE}/issues/(\d+)/comments"): _comments,
    ("POST", rf"{_HERE}/issues/(\d+)/comments"): _create,
    ("PATCH", rf"{_HERE}/issues/comments/(\d+)"): _change,
    ("POST", rf"{_HERE}/statuses/([0-9a-f]{{40}})"): _status,
    ("POST", rf"{_HERE}/actions/workflows/([\w.-]+)/dispatches"): _dispatch,
}


@contextmanager
def served(repository: Repository) -> Iterator[Repository]:
    """Serve the repository on a free port of loopback, while the context lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(repository))
    repository.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield repository
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(repository: Repository) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"null")
            repository.asked.append((self.command, self.path))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._send(401, {"message": "Bad credentials"}, {})
            elif repository.answers:
                self._say(repository.answers.pop(0), body)
            else:
                self._send(*repository.answer(self.command, self.path, body))

        do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - http.server's names

        def _say(self, answer: Answer, body: Any) -> None:
            if answer.done:
                repository.answer(self.command, self.path, body)
            if not answer.status:  # hangs up
                self.close_connection = True
                return
            told = answer.text if answer.text is not None else {"message": answer.message}
            self._send(answer.status, told, answer.heads)

        def _send(self, status: int, body: Any, heads: dict[str, str]) -> None:
            text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
            data = text.encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **heads}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
