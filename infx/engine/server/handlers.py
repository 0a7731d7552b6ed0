"""The endpoints."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from aiohttp import web

from infx.engine.loop import Engine, RequestRefusedError
from infx.engine.metrics import render
from infx.engine.request import Request
from infx.engine.server.answers import Answer, ChatChoice, TextChoice, error_body, write_json
from infx.engine.server.bodies import (
    Call,
    read_chat,
    read_completion,
    read_json,
    read_tokenize,
    read_tokens,
)
from infx.engine.server.delivery import Gathered, Mailbox, Sink
from infx.engine.server.events import EventStream
from infx.engine.server.fields import BodyError
from infx.engine.server.info import Info
from infx.engine.server.prompts import too_many
from infx.engine.shapes import NULL

__all__ = ["Handlers"]

# HTTP status of each refusal; everything else about a body is 400.
STATUS = {
    "unknown-model": 404,
    "synthetic-acceptance": 409,
    "queue-full": 429,
    "draining": 503,
    "loading": 503,
    "engine-failed": 500,
}
# Bodies over this are read in a thread of their own, so that streams go on meanwhile.
LARGE_BODY_BYTES = 1 << 16
REQUIRE = "X-Infx-Require"

Reader = Callable[..., Any]
ChoiceType = type[ChatChoice] | type[TextChoice]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Handlers:
    """Request handlers over one engine. Made inside the event loop that serves them."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._config = engine, engine.config
        self._info = Info(engine.config)
        engine.metrics.synthetic_acceptance = self._synthetic
        self._mailbox = Mailbox(asyncio.get_running_loop())

    def routes(self) -> list[web.RouteDef]:
        """Return every route of the server."""
        return [
            web.post("/v1/chat/completions", self._answering(self._chat)),
            web.post("/v1/completions", self._answering(self._completion)),
            web.post("/tokenize", self._answering(self._tokenize)),
            web.post("/detokenize", self._answering(self._detokenize)),
            web.get("/tokenizer_info", self._tokenizer_info),
            web.get("/v1/models", self._models),
            web.get("/v1/models/{model:.+}", self._answering(self._model)),
            web.get("/health", self._health),
            web.get("/metrics", self._metrics),
            web.get("/server_info", self._server_info),
        ]

    def _answering(self, handler: Handler) -> Handler:
        """Return ``handler`` with its refusals answered."""

        async def answer(http: web.Request) -> web.StreamResponse:
            """Return the handler's response, or the error that its refusal means."""
            try:
                return await handler(http)
            except BodyError as error:
                return self._refuse(error.code, error.message, error.field)
            except RequestRefusedError as error:
                return self._refuse(error.code, str(error))

        return answer

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        return await self._generate(http, read_chat, ChatChoice)

    async def _completion(self, http: web.Request) -> web.StreamResponse:
        return await self._generate(http, read_completion, TextChoice)

    async def _tokenize(self, http: web.Request) -> web.StreamResponse:
        tokens = await self._read(http, read_tokenize)
        return _json(
            {"tokens": tokens, "count": len(tokens), "max_model_len": self._config.context}
        )

    async def _detokenize(self, http: web.Request) -> web.StreamResponse:
        tokens = await self._read(http, read_tokens)
        return _json({"prompt": self._engine.tokenizer.decode(tokens, special=True)})

    async def _tokenizer_info(self, _: web.Request) -> web.Response:
        return _json(self._info.tokenizer())

    async def _models(self, _: web.Request) -> web.Response:
        return _json(self._info.models())

    async def _model(self, http: web.Request) -> web.Response:
        self._check_model(http.match_info["model"])
        return _json(self._info.models()["data"][0])

    async def _health(self, _: web.Request) -> web.Response:
        state = "failed" if self._engine.failed else self._engine.state
        return _json({"status": state}, status=200 if state == "ready" else 503)

    async def _metrics(self, _: web.Request) -> web.Response:
        text = render(self._engine.metrics)
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _server_info(self, _: web.Request) -> web.Response:
        # The first time it hashes the checkpoint's files.
        engine = self._engine
        told = (engine.pids, engine.layers, engine.refusal, engine.metrics.mono.snapshot())
        return _json(await asyncio.to_thread(self._info.server, *told))

    async def _generate(
        self, http: web.Request, read: Reader, choice: ChoiceType
    ) -> web.StreamResponse:
        self._check_required(http)
        call: Call = await self._read(http, read)
        self._check_places(call)
        self._check_probabilities(call)
        answer = Answer(self._config.served_model_name, choice is ChatChoice, self._synthetic)
        return await (self._stream if call.stream else self._whole)(http, call, answer, choice)

    async def _stream(
        self, http: web.Request, call: Call, answer: Answer, choice: ChoiceType
    ) -> web.StreamResponse:
        stream = EventStream(answer, call.include_usage, self._engine.metrics.write_delay)
        with self._submitted(call, stream) as requests:
            return await stream.run(http, self._choices(requests, call, choice), requests)

    async def _whole(
        self, _: web.Request, call: Call, answer: Answer, choice: ChoiceType
    ) -> web.Response:
        gathered = Gathered(len(call.prompts))
        with self._submitted(call, gathered) as requests:
            emissions = await gathered.all()
        if any(emission.finish_reason == "error" for emission in emissions):
            return self._refuse("engine-failed", f"a step failed: {self._engine.failed}")
        choices = self._choices(requests, call, choice)
        whole = [one.whole(emission) for one, emission in zip(choices, emissions, strict=True)]
        return _json(answer.whole(whole, requests))

    @contextlib.contextmanager
    def _submitted(self, call: Call, sink: Sink) -> Iterator[list[Request]]:
        """Queue the call for the length of a block: who leaves it early frees the pages."""
        requests = self._engine.submit(call.prompts, call.params, self._mailbox.to(sink))
        try:
            yield requests
        finally:
            self._engine.abort(requests)

    def _choices(
        self, requests: list[Request], call: Call, choice: ChoiceType
    ) -> Sequence[ChatChoice | TextChoice]:
        tokenizer = self._engine.tokenizer
        return [choice(at, request, call, tokenizer) for at, request in enumerate(requests)]

    async def _read(self, http: web.Request, read: Reader) -> Any:
        """Return what ``read`` makes of the body. Raises BodyError."""
        try:
            data = await http.read()
        except web.RequestPayloadError as error:
            raise BodyError("bad-request", f"the body cannot be read: {error}", "body") from error
        if len(data) < LARGE_BODY_BYTES:
            return self._understand(data, read)
        return await asyncio.to_thread(self._understand, data, read)

    def _understand(self, data: bytes, read: Reader) -> Any:
        body = read_json(data)
        self._check_model(body.get("model"))
        return read(body, self._engine.tokenizer, self._config.context)

    def _check_model(self, model: Any) -> None:
        served = self._config.served_model_name
        if model not in (None, served):
            message = f"model {model!r} is not served here; expected {served!r}"
            raise BodyError("unknown-model", message[:300], "model")

    def _check_required(self, http: web.Request) -> None:
        """Refuse what the caller's header forbids. Raises BodyError."""
        required = http.headers.get(REQUIRE)
        if required not in (None, "real-acceptance"):
            raise BodyError("bad-request", f"{REQUIRE}: expected real-acceptance", REQUIRE)
        if required and self._synthetic:
            raise self._decided_by_law(REQUIRE)

    def _check_places(self, call: Call) -> None:
        """Refuse what no empty queue would hold: a 429 would have it tried for ever."""
        most = self._config.queue_limit + self._config.max_num_seqs
        if len(call.prompts) > most:
            raise too_many(len(call.prompts), most)

    def _check_probabilities(self, call: Call) -> None:
        """Refuse probabilities that would mean nothing. Raises BodyError."""
        if call.params.prompt_logprobs is not None and self._synthetic:
            raise self._decided_by_law("logprobs")
        if call.params.logprobs is not None and self._config.model == NULL:
            raise BodyError("unsupported-field", "the null model has no probabilities", "logprobs")

    def _decided_by_law(self, field: str) -> BodyError:
        message = (
            "this server's acceptance is synthetic, so its text is no answer of the model; "
            "evaluate on a server without --synthetic-acceptance-length"
        )
        return BodyError("synthetic-acceptance", message, field)

    @property
    def _synthetic(self) -> bool:
        return self._config.acceptance.mode == "synthetic"

    def _refuse(self, code: str, message: str, field: str | None = None) -> web.Response:
        self._engine.metrics.refusals[code] += 1
        status = STATUS.get(code, 400)
        headers = {"Retry-After": "1"} if status in (429, 503) else None
        return _json(error_body(status, code, message, field), status, headers)


def _json(
    body: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    data = write_json(body)
    return web.Response(body=data, status=status, headers=headers, content_type="application/json")
