"""Is the server up, is it ours, does it serve what was planned, and can it make one token?

A server that answers /health may still die on its first request, and what answers on the port may
be another job's server: each has spoiled published measurements (512 requests to the neighbour).
"""

from __future__ import annotations

import time

from infx.domain.errors import EngineError
from infx.job.server import Server
from infx.job.web import Answer

__all__ = ["wait_ready"]

TICK_S = 0.1
LOOKS = 5
SERVERS_FAULT = 500
PROGRESS_CAP = 4
"""A log that keeps growing (weights, graph capture) buys time up to this many limits."""


def wait_ready(server: Server, limit_s: float) -> float:
    """Return the seconds until the server generated its first token.

    ``limit_s`` is how long it may be silent: while its log grows the deadline moves on, up to four
    limits. Raises EngineError: ``server-exited``, ``server-hung``, ``wrong-server``,
    ``wrong-model``, ``first-request``.
    """
    started = time.monotonic()
    _wait_healthy(server, limit_s)
    _check_ours(server)
    _check_model(server)
    _check_nonce(server)
    _generate(server, limit_s)
    return time.monotonic() - started


def _wait_healthy(server: Server, limit_s: float) -> None:
    cap = time.monotonic() + PROGRESS_CAP * limit_s
    deadline, seen = time.monotonic() + limit_s, server.log_bytes
    while not _healthy(server):
        server.check("server-exited")
        now, size = time.monotonic(), server.log_bytes
        if size > seen:
            deadline, seen = now + limit_s, size
        if now > min(deadline, cap):
            silent = f"not ready, silent for {limit_s:g} s" if now < cap else _over(limit_s)
            raise EngineError("server-hung", f"{silent}; its log: {server.since(0)}")
        time.sleep(TICK_S)


def _over(limit_s: float) -> str:
    return f"not ready after {PROGRESS_CAP * limit_s:g} s though its log still grows"


def _healthy(server: Server) -> bool:
    try:
        return server.site.get(server.framework.paths.health).status == 200
    except OSError:
        return False


def _check_ours(server: Server) -> None:
    """The kernel's list of sockets may miss one while many come and go: so it is read again."""
    for _ in range(LOOKS):
        if server.listens:
            return
        server.check("server-exited")
        time.sleep(TICK_S)
    where = f"port {server.site.port}"
    raise EngineError("wrong-server", f"{where} is answered by a process that infx did not start")


def _check_model(server: Server) -> None:
    answer = _asked(server, server.framework.paths.models)
    rows = answer.body.get("data", []) if isinstance(answer.body, dict) else []
    names = [str(row.get("id")) for row in rows if isinstance(row, dict)]
    wanted = server.arm.model.name
    if wanted not in names:
        served = ", ".join(names) or f"nothing (HTTP {answer.status})"
        message = f"{server.framework.paths.models} lists {served}, expected {wanted!r}"
        raise EngineError("wrong-model", message)


def _check_nonce(server: Server) -> None:
    told = server.framework.nonce(server.answers())
    if told is not None and told != server.nonce:
        message = f"the server repeats nonce {told!r}, not {server.nonce!r}: it is another start"
        raise EngineError("wrong-server", message)


def _asked(server: Server, path: str) -> Answer:
    try:
        return server.site.get(path)
    except OSError as error:
        server.check("server-exited")
        raise EngineError("server-hung", f"healthy, but {path} does not answer: {error}") from error


def _generate(server: Server, limit_s: float) -> None:
    start = server.log_bytes
    try:
        answer = server.site.post("/v1/chat/completions", _question(server), limit_s)
    except TimeoutError as error:
        message = f"ready, but its first request had no answer in {limit_s:g} s"
        raise EngineError("server-hung", f"{message}; its log: {server.since(start)}") from error
    except OSError as error:
        _await_exit(server, start)
        raise EngineError("first-request", f"the first request failed: {error}") from error
    if answer.status != 200 or _tokens(answer) < 1:
        raise EngineError("first-request", _unserved(server, answer, start))


def _unserved(server: Server, answer: Answer, start: int) -> str:
    """Return what is told of an answer without a token: where the server is at fault, what its log
    says too, for the answer then names no cause. Raises EngineError when it ends of it."""
    said = f"the first request got HTTP {answer.status}: {' '.join(answer.text.split())[:200]}"
    if answer.status < SERVERS_FAULT:
        return said
    _await_exit(server, start)
    return f"{said}; its log: {server.since(start)}"


def _question(server: Server) -> dict[str, object]:
    text = [{"role": "user", "content": "Say one word."}]
    return {"model": server.arm.model.name, "messages": text, "max_tokens": 1}


def _await_exit(server: Server, start: int) -> None:
    """A dropped connection is often the first sign of a death: give it a second to show."""
    for _ in range(10):
        server.check("first-request", start)
        time.sleep(TICK_S)


def _tokens(answer: Answer) -> int:
    usage = answer.body.get("usage") if isinstance(answer.body, dict) else None
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) else 0
