"""GitHub's REST interface, as far as CI needs it: a few requests, patient where GitHub is busy."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.request import HTTPErrorProcessor, Request, build_opener

from infx.domain.errors import InfraError, InfxError, UsageError

__all__ = ["GitHub", "RefusedError", "github"]

_TIMEOUT_S = 30.0
_PAUSES_S = (1.0, 3.0, 9.0)
"""Before each further try of a request that GitHub could not answer."""

_LIMITS = 2
_PATIENCE_S = 300.0
"""How often, and for how long at most, a limit is waited for: a secondary one asks a minute."""

_UNREACHED = 0
_BUSY = (_UNREACHED, 500, 502, 503, 504)
_LIMITED = (403, 429)

_HINTS = {
    301: "the repository was renamed: name it as it is called now",
    401: "GITHUB_TOKEN is not valid, or has expired: hand over ${{ github.token }}",
    403: "the job's permissions lack it (permissions: …: write), or the event is of a fork, whose"
    " token may only read",
    404: "nothing is there, or the token may not see it: the job's permissions, the number, the"
    " repository's name",
}

_HEADS = {
    "Accept": "application/vnd.github+json",
    "Content-Type": "application/json",
    "User-Agent": "infx",
    "X-GitHub-Api-Version": "2022-11-28",
}


class RefusedError(UsageError):
    """GitHub answered that it will not; ``status`` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        hint = _HINTS.get(status, "see what GitHub says")
        super().__init__("github-refused", message, hint=hint)
        self.status = status


class _AsItIs(HTTPErrorProcessor):
    """Hands over every answer, one that says no too, and follows none: a token is sent to no
    address but the one that was named."""

    def http_response(self, request: Request, response: Any) -> Any:
        return response

    https_response = http_response


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came back: ``status`` of HTTP, heads in lower case, the parsed body, and for one that
    says no its message."""

    status: int
    heads: Mapping[str, str] = field(default_factory=dict)
    data: Any = None

    @property
    def message(self) -> str:
        said = self.data.get("message", "") if isinstance(self.data, dict) else ""
        return " ".join(str(said).split())[:300]

    def pause_s(self, now_s: float) -> float | None:
        """Return how long a limit asks to wait; None where no limit is the reason."""
        if self.status not in _LIMITED:
            return None
        if (after := _whole(self.heads.get("retry-after"))) is not None:
            return after
        if self.heads.get("x-ratelimit-remaining") == "0":
            return max(1, (_whole(self.heads.get("x-ratelimit-reset")) or 0) - now_s)
        limited = self.status == 429 or "secondary rate limit" in self.message
        # a minute is what GitHub's documentation asks for where an answer names no time
        return 60 if limited else None


@dataclass(frozen=True, slots=True)
class GitHub:
    """The interface at ``url`` for one ``repository`` (``owner/name``).

    Every request raises `RefusedError` for an answer that says no, and InfraError
    ``github-unreachable`` where GitHub is not there, or busy for longer than is waited.
    """

    url: str
    repository: str
    token: str = field(repr=False)
    wait: Callable[[float], None] = time.sleep

    def get(self, path: str) -> Any:
        """Return what is at ``path`` of the repository, which begins with ``/``."""
        return self._sent("GET", self._here(path)).data

    def pages(self, path: str) -> list[Any]:
        """Return all items of a list, which GitHub hands over a hundred at a time."""
        found: list[Any] = []
        number = 0
        more = True
        while more:
            number += 1
            answer = self._sent("GET", self._here(f"{path}?per_page=100&page={number}"))
            found += answer.data
            more = 'rel="next"' in answer.heads.get("link", "")
        return found

    def change(self, path: str, body: Mapping[str, Any]) -> Any:
        """Change what is at ``path``; asking twice does no harm, so it is asked again."""
        return self._sent("PATCH", self._here(path), body).data

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        """Make something new at ``path``. It is asked once, as GitHub may have made it although
        the answer was lost; only what a limit kept GitHub from doing is asked again."""
        return self._sent("POST", self._here(path), body).data

    def login(self) -> str:
        """Return who the token speaks for; ``""`` for one of a workflow or an app, which are not
        told."""
        try:
            return str(self._sent("GET", "/user").data["login"])
        except RefusedError as error:
            if error.status != 403:
                raise
            return ""

    def _here(self, path: str) -> str:
        return f"/repos/{self.repository}{path}"

    def _sent(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> _Answer:
        pauses = list(_PAUSES_S) if method != "POST" else []
        limits = _LIMITS
        while True:
            answer = self._asked(method, path, body)
            if 200 <= answer.status < 300:
                return answer
            pause = answer.pause_s(time.time())
            if pause is not None:
                limits -= 1
            elif answer.status in _BUSY and pauses:
                pause = pauses.pop(0)
            if pause is None or pause > _PATIENCE_S or limits < 0:
                raise self._refusal(f"{method} {path}", answer)
            self.wait(pause)

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None) -> _Answer:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, dict(_HEADS), method=method)
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            with build_opener(_AsItIs).open(request, timeout=_TIMEOUT_S) as answer:
                return _read(answer)
        except (OSError, HTTPException) as error:  # URLError is an OSError
            why = getattr(error, "reason", error)
            return _Answer(_UNREACHED, {}, {"message": f"cannot be reached: {why}"})

    def _refusal(self, asked: str, answer: _Answer) -> InfxError:
        said = answer.message
        if answer.status == _UNREACHED:
            hint = "is GITHUB_API_URL right, and is there a network?"
            return InfraError("github-unreachable", f"{self.url} {said}", hint=hint)
        sentence = f"{asked}: GitHub answers {answer.status} {said}".rstrip()
        if answer.status in _BUSY or answer.pause_s(time.time()) is not None:
            return InfraError("github-unreachable", sentence, hint="run the step again later")
        return RefusedError(answer.status, sentence)


def github(repository: str) -> GitHub:
    """Return the interface that GITHUB_API_URL and GITHUB_TOKEN name (GitHub's runners set the
    first). Raises UsageError ``bad-option`` without a token."""
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    if not token:
        hint = "in a workflow: env: GITHUB_TOKEN: ${{ github.token }}"
        raise UsageError("bad-option", "GITHUB_TOKEN is not set", hint=hint)
    url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    if not url.startswith(("https://", "http://")):
        raise UsageError("bad-option", f"GITHUB_API_URL={url} is no address", hint="https://…")
    return GitHub(url.rstrip("/"), repository, token)


def _read(answer: Any) -> _Answer:
    """Return an answer with its body; what is no JSON comes from something before GitHub."""
    heads = {name.lower(): value for name, value in answer.headers.items()}
    status, text = answer.status, answer.read()
    try:
        data = json.loads(text) if text else None
    except ValueError:
        status = status if status >= 300 else _UNREACHED
        data = {"message": "answers what is not JSON"}
    return _Answer(status, heads, data)


def _whole(text: str | None) -> int | None:
    """Return the seconds that a head says; None where it says a date, or is not there."""
    return int(text) if text and text.isdecimal() else None
