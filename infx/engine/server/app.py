"""The server's life: listen, load, serve, drain, end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import signal
import socket
import sys
import time
import uuid

from aiohttp import web
from aiohttp.typedefs import Handler

from infx.domain.errors import InfraError, InfxError, UsageError
from infx.engine.arguments import Address
from infx.engine.config import EngineConfig
from infx.engine.deployment import refuse_compiled
from infx.engine.loop import Engine
from infx.engine.server.answers import error_body
from infx.engine.server.handlers import Handlers

__all__ = ["serve"]

DRAIN_LIMIT_S = 30.0
BODY_LIMIT_BYTES = 16 << 20
REQUEST_ID = "X-Request-ID"


async def serve(config: EngineConfig, address: Address) -> int:
    """Serve until SIGTERM or SIGINT, then let running requests end; return the exit code.

    A second signal ends at once. Listens before it loads, so that /health answers (503) from the
    first moment. Raises InfraError (``port-busy``) when the address is taken, UsageError when the
    host has none, RefusalError when the cache does not fit.
    """
    listener = _listen(address)
    changed = asyncio.Event()
    stopping, hurried = _stop_signals()
    loop = asyncio.get_running_loop()

    def announce() -> None:
        loop.call_soon_threadsafe(changed.set)

    engine = Engine(config, announce)
    site = await _start_site(engine, listener)
    began_s = time.monotonic()
    host, port = listener.getsockname()[:2]
    _say(f"listening on http://{host}:{port}, loading {config.model} {config.weights}")
    engine.start()
    try:
        await _either(changed, stopping)
        if engine.state == "ready":
            gc.freeze()  # walking what loading made, a collection stops every stream for 60 ms
            _say(f"ready in {time.monotonic() - began_s:.1f} s{_computing(engine)}")
            changed.clear()
            if engine.failed is None:  # it may have failed since it became ready
                await _either(changed, stopping)
        return await _end(engine, hurried)
    finally:
        await site.cleanup()


def _listen(address: Address) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(1024)
    except socket.gaierror as error:
        listener.close()
        raise UsageError("bad-option", f"--host {address.host}: {error.strerror}") from error
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            sentence = f"--host {address.host}: no address of this machine; 127.0.0.1 always is"
            raise UsageError("bad-option", sentence) from error
        busy = error.errno == errno.EADDRINUSE
        why = "is taken" if busy else f"cannot be listened on: {error}"
        message = f"{address.host}:{address.port} {why}; choose another with --host and --port"
        raise InfraError("port-busy", message) from error
    return listener


async def _start_site(engine: Engine, listener: socket.socket) -> web.AppRunner:
    app = web.Application(client_max_size=BODY_LIMIT_BYTES, middlewares=[_errors_as_json])
    app.on_response_prepare.append(_name_response)
    app.add_routes(Handlers(engine).routes())
    runner = web.AppRunner(
        app, handler_cancellation=True, access_log=None, shutdown_timeout=2.0, handle_signals=False
    )
    await runner.setup()
    await web.SockSite(runner, listener).start()
    return runner


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer what aiohttp refuses (paths, methods, huge bodies) in the API's own shape."""
    try:
        return await handler(request)
    except web.HTTPException as refused:
        if refused.status < 400:
            raise
        huge = refused.status == 413
        message = f"{request.method} {request.path[:100]}: {refused.reason}"
        if refused.status == 404:
            message += f"; served are {', '.join(_paths(request.app))}"
        body = error_body(refused.status, "bad-request", message, "body" if huge else None)
        allow = {"Allow": refused.headers["Allow"]} if "Allow" in refused.headers else None
        return web.json_response(body, status=refused.status, headers=allow)


def _paths(app: web.Application) -> list[str]:
    return sorted({resource.canonical for resource in app.router.resources()})


async def _name_response(http: web.Request, response: web.StreamResponse) -> None:
    """Repeat the caller's X-Request-ID, or give one, so that both ends' logs can be matched."""
    asked = http.headers.get(REQUEST_ID, "")
    plain = asked.isascii() and asked.isprintable() and 0 < len(asked) <= 256
    response.headers[REQUEST_ID] = asked if plain else uuid.uuid4().hex


def _stop_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Return what the first SIGTERM or SIGINT sets, and what every later one sets."""
    stopping, hurried = asyncio.Event(), asyncio.Event()

    def told() -> None:
        (hurried if stopping.is_set() else stopping).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told)
    return stopping, hurried


async def _either(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await wait


async def _end(engine: Engine, hurried: asyncio.Event) -> int:
    """Drain, unless hurried, and stop the engine; its failure becomes the exit code of its kind."""
    if engine.failed is None:
        await _drain(engine, hurried)
    if isinstance(engine.failed, InfxError):
        raise engine.failed
    return 0 if engine.failed is None else 4


async def _drain(engine: Engine, hurried: asyncio.Event) -> None:
    engine.drain()
    _say("draining")
    deadline = time.monotonic() + DRAIN_LIMIT_S
    while not (engine.idle or engine.failed or hurried.is_set()) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    await asyncio.to_thread(engine.stop)


def _computing(engine: Engine) -> str:
    """Return what computes where it is not what was asked for, and why."""
    if engine.refusal:
        return f", mono is off: {engine.refusal}"
    if engine.layers == "reference" != engine.config.layers:
        return f", layers in plain torch: {refuse_compiled(engine.config)}"
    return ""


def _say(text: str) -> None:
    print(f"infx engine: {text}", file=sys.stderr, flush=True)
