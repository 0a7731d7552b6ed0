"""Questions to the server under test: plain HTTP on one address, no proxy, no redirect."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "Site"]


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of a response."""

    status: int
    text: str

    @property
    def body(self) -> Any:
        """The parsed body; None when it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Site:
    """A host and a port. Methods raise ConnectionError or TimeoutError when nothing answers."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        return f"http://{self.host}:{self.port}"

    def get(self, path: str, limit_s: float = 5.0) -> Answer:
        """Return the answer to GET ``path``."""
        return self._ask("GET", path, None, limit_s)

    def post(
        self,
        path: str,
        content: Mapping[str, Any],
        limit_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Return the answer to POST ``path`` with ``content`` as JSON."""
        return self._ask("POST", path, json.dumps(content), limit_s, headers)

    def _ask(
        self,
        method: str,
        path: str,
        content: str | None,
        limit_s: float,
        more: Mapping[str, str] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=limit_s)
        headers = {"Content-Type": "application/json", "Connection": "close", **(more or {})}
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            return Answer(response.status, response.read().decode(errors="replace"))
        except http.client.HTTPException as error:
            raise ConnectionError(
                f"no HTTP answer: {type(error).__name__} {error}".rstrip()
            ) from error
        finally:
            connection.close()
