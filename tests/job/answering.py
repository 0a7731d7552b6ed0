"""A chat server that knows the answers, or fails in a chosen way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

__all__ = ["CUT", "Answer", "Chat", "answering"]

CUT = "…"
"""An answer that ends so was cut at its limit."""

Answer = Callable[[int, str], str | web.Response | None]
"""Given the number of the request and its question: the content, or a whole response."""


class Chat:
    """The bodies that were received, and where to send them."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.url = ""


@contextmanager
def answering(answer: Answer) -> Iterator[Chat]:
    """Serve ``POST /v1/chat/completions`` on a free port; an answer ``hang`` never comes."""
    chat, loop, started = Chat(), asyncio.new_event_loop(), threading.Event()

    async def complete(request: web.Request) -> web.Response:
        body = await request.json()
        chat.bodies.append(body)
        question = body["messages"][-1]["content"]
        question = question.removeprefix("Question: ").removesuffix("\nAnswer:")
        content = answer(len(chat.bodies), question)
        if isinstance(content, web.Response):
            return content
        if content == "hang":
            await asyncio.sleep(3600)
        message = {"role": "assistant", "content": content}
        end = "length" if content and content.endswith(CUT) else "stop"
        choice = {"index": 0, "message": message, "finish_reason": end}
        return web.json_response({"choices": [choice]})

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", complete)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        chat.url = f"http://{host}:{port}"
        return runner

    async def end(runner: web.AppRunner) -> None:
        hanging = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        await runner.cleanup()

    def serve() -> None:
        runner = loop.run_until_complete(start())
        started.set()
        loop.run_forever()
        loop.run_until_complete(end(runner))

    thread = threading.Thread(target=serve)
    thread.start()
    started.wait()
    try:
        yield chat
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
