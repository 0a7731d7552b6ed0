"""The endpoints."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web

from infx import __version__
from infx.engine.config import EngineConfig
from infx.engine.loop import Engine, RequestRefusedError
from infx.engine.metrics import render
from infx.engine.request import Emission, FinishReason, Request
from infx.engine.server.answers import Answer, error_body, sse
from infx.engine.server.bodies import (
    BodyError,
    Call,
    read_chat,
    read_completion,
    read_text,
    read_tokens,
)

__all__ = ["Handlers", "server_info"]

# HTTP status of each refusal; everything else about a body is 400.
STATUS = {
    "unknown-model": 404,
    "queue-full": 429,
    "draining": 503,
    "loading": 503,
    "engine-failed": 500,
}

Reader = Callable[..., Call]


class Handlers:
    """Request handlers over one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._config = engine, engine.config
        self._started_s = int(time.time())

    def routes(self) -> list[web.RouteDef]:
        """Return every route of the server."""
        return [
            web.post("/v1/chat/completions", self._chat),
            web.post("/v1/completions", self._completion),
            web.post("/tokenize", self._tokenize),
            web.post("/detokenize", self._detokenize),
            web.get("/v1/models", self._models),
            web.get("/health", self._health),
            web.get("/metrics", self._metrics),
            web.get("/server_info", self._info),
        ]

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        return await self._generate(http, read_chat, chat=True)

    async def _completion(self, http: web.Request) -> web.StreamResponse:
        return await self._generate(http, read_completion, chat=False)

    async def _tokenize(self, http: web.Request) -> web.StreamResponse:
        try:
            body = await _json_object(http)
            tokens = read_text(body, self._engine.tokenizer, self._config.context)
        except BodyError as error:
            return self._refuse(error.code, error.message, error.field)
        answer = {"tokens": tokens, "count": len(tokens), "max_model_len": self._config.context}
        return web.json_response(answer)

    async def _detokenize(self, http: web.Request) -> web.StreamResponse:
        tokenizer = self._engine.tokenizer
        try:
            tokens = read_tokens(await _json_object(http), tokenizer)
        except BodyError as error:
            return self._refuse(error.code, error.message, error.field)
        return web.json_response({"prompt": tokenizer.decode(tokens)})

    async def _models(self, _: web.Request) -> web.Response:
        model = {
            "id": self._config.served_model_name,
            "object": "model",
            "created": self._started_s,
            "owned_by": "infx",
            "max_model_len": self._config.context,
            "synthetic_acceptance": self._synthetic,
            "acceptance": _acceptance(self._config),
        }
        return web.json_response({"object": "list", "data": [model]})

    async def _health(self, _: web.Request) -> web.Response:
        state = "failed" if self._engine.failed else self._engine.state
        return web.json_response({"status": state}, status=200 if state == "ready" else 503)

    async def _metrics(self, _: web.Request) -> web.Response:
        text = render(self._engine.metrics)
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _info(self, _: web.Request) -> web.Response:
        return web.json_response(server_info(self._config))

    @property
    def _synthetic(self) -> bool:
        return self._config.acceptance.mode == "synthetic"

    async def _generate(self, http: web.Request, read: Reader, *, chat: bool) -> web.StreamResponse:
        emissions: asyncio.Queue[tuple[int, Emission]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def deliver(index: int, emission: Emission) -> None:
            loop.call_soon_threadsafe(emissions.put_nowait, (index, emission))

        try:
            body = await _json_object(http)
            self._check_model(body.get("model"))
            call = read(body, self._engine.tokenizer, self._config.context)
            requests = self._engine.submit(call.prompts, call.params, deliver)
        except BodyError as error:
            return self._refuse(error.code, error.message, error.field)
        except RequestRefusedError as error:
            return self._refuse(error.code, error.message)
        answer = Answer(self._config.served_model_name, chat, self._synthetic)
        try:
            feed = _until_done(emissions, len(requests))
            if call.stream:
                return await self._stream(http, answer, call, requests, feed)
            return await self._whole(answer, requests, feed)
        finally:
            self._engine.abort(requests)

    async def _whole(
        self, answer: Answer, requests: list[Request], feed: AsyncIterator[tuple[int, Emission]]
    ) -> web.Response:
        texts = [""] * len(requests)
        reasons: list[FinishReason | None] = [None] * len(requests)
        async for index, emission in feed:
            texts[index] += emission.text
            reasons[index] = emission.finish_reason
        if "error" in reasons:
            return self._refuse("engine-failed", f"a step failed: {self._engine.failed}")
        return web.json_response(answer.whole(texts, reasons, requests))

    async def _stream(
        self,
        http: web.Request,
        answer: Answer,
        call: Call,
        requests: list[Request],
        feed: AsyncIterator[tuple[int, Emission]],
    ) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        await response.prepare(http)
        opened: set[int] = set()
        async for index, emission in feed:
            events = b""
            if index not in opened and (opening := answer.opening(index)):
                events += sse(opening)
            opened.add(index)
            events += sse(answer.piece(index, emission.text, emission.finish_reason))
            await response.write(events)
        if call.include_usage:
            await response.write(sse(answer.closing(requests)))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def _check_model(self, model: Any) -> None:
        served = self._config.served_model_name
        if model not in (None, served):
            message = f"model {model!r} is not served here; expected {served!r}"
            raise BodyError("unknown-model", message[:300], "model")

    def _refuse(self, code: str, message: str, field: str | None = None) -> web.Response:
        self._engine.metrics.refusals[code] += 1
        status = STATUS.get(code, 400)
        headers = {"Retry-After": "1"} if status in (429, 503) else None
        body = error_body(status, code, message, field)
        return web.json_response(body, status=status, headers=headers)


def server_info(config: EngineConfig) -> dict[str, Any]:
    """Return the resolved configuration in the names of `infx.domain.axes`, and who answers."""
    return {
        "engine": "infx",
        "version": __version__,
        "pid": os.getpid(),
        "nonce": config.nonce,
        "served_model_name": config.served_model_name,
        "config": {
            "shape": config.model,
            "weights": config.weights,
            "dtype": config.dtype,
            "tp": config.tp,
            "pp": 1,
            "ep": 1,
            "dp_attention": False,
            "mono": config.mono,
            "kv_cache_dtype": "fp32",
            "index_cache_dtype": "fp32",
            "k": config.k,
            "method": config.method,
            "block_size": config.block_size,
            "num_blocks": config.pages,
            "max_num_seqs": config.max_num_seqs,
            "max_num_batched_tokens": config.max_num_batched_tokens,
            "max_model_len": config.context,
            "capture_sizes": list(config.capture_sizes),
            "capture_sizes_unit": "rows",
            "prefix_caching": config.prefix_caching,
            "kv_offload": "none",
            "queue_limit": config.queue_limit,
            "threads": config.threads,
            "acceptance": _acceptance(config),
        },
    }


def _acceptance(config: EngineConfig) -> dict[str, Any]:
    acceptance = config.acceptance
    told = {"mode": acceptance.mode, "length": acceptance.length, "k": acceptance.k}
    if acceptance.mode == "real":
        return told
    return told | {"law": acceptance.law, "seed": config.acceptance_seed}


async def _json_object(http: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await http.read())
    except (ValueError, RecursionError, web.RequestPayloadError) as error:
        # A ValueError is no JSON, no UTF-8, or a number of more digits than Python reads.
        raise BodyError("bad-request", f"the body is not JSON: {error}", "body") from error
    if not isinstance(body, dict):
        raise BodyError("bad-request", "the body is not a JSON object", "body")
    return body


async def _until_done(
    emissions: asyncio.Queue[tuple[int, Emission]], going: int
) -> AsyncIterator[tuple[int, Emission]]:
    while going:
        index, emission = await emissions.get()
        going -= emission.finish_reason is not None
        yield index, emission
