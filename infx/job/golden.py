"""Acceptance measured on a running server: batches of prompts between readings of its counters."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from infx.domain.errors import EngineError, InfxError, MeasurementError, UsageError
from infx.golden.curve import Sampling
from infx.golden.estimate import Batch
from infx.golden.prompts import Chat, Prompts
from infx.job.agreement import REAL_ACCEPTANCE
from infx.job.golden_server import Running, quiet
from infx.job.web import Answer

__all__ = ["check_thinking", "measure"]

CHAT = "/v1/chat/completions"
REQUEST_LIMIT_S = 1800.0
TICK_S = 0.5


def measure(
    running: Running,
    sampling: Sampling,
    prompts: Prompts,
    thinking: str,
    tell: Callable[[Sequence[Batch]], None],
) -> tuple[Batch, ...]:
    """Return what the counters grew by over each batch of prompts; ``tell`` is given those so far.

    Raises EngineError (``server-died``, ``server-hung``, ``acceptance-mode``), MeasurementError
    (``request-failed``, ``server-busy``, ``counters-missing``).
    """
    bodies = [_body(running, sampling, prompts, thinking, n) for n in range(len(prompts.chats))]
    found: list[Batch] = []
    try:
        before = quiet(running)
        for group in _groups(bodies, sampling.batch):
            _ask_all(running, group)
            after = quiet(running)
            found.append(_growth(running, before, after))
            tell(found)
            before = after
    except OSError as error:
        raise running.silent(error) from error
    if not sum(batch.steps for batch in found):
        message = f"{running.site.url} counted no verify step over {len(bodies)} requests"
        raise MeasurementError("counters-missing", message)
    return tuple(found)


def check_thinking(running: Running, sampling: Sampling, modes: Sequence[str]) -> None:
    """Raise UsageError (``thinking-unsupported``) for a mode that the model's template lacks.

    It lacks one that the server refuses where it takes the same request without the mode's
    arguments; and thinking, where both modes become the same tokens (asked where the server has
    /tokenize). MeasurementError (``request-failed``) when the request fails either way.
    """
    chat: Chat = ({"role": "user", "content": "Say one word."},)
    try:
        for mode in modes:
            _probe(running, _asking(running, chat, sampling.thinking[mode]), mode)
        if "on" in modes and _same_tokens(running, chat, sampling):
            arguments = sampling.thinking["on"]
            message = f"{arguments} changes no token of {running.model}'s chat: it ignores it"
            raise _lacks("on", message)
    except OSError as error:
        raise running.silent(error) from error


def _probe(running: Running, body: Mapping[str, Any], mode: str) -> None:
    short = {**body, "max_tokens": 1}
    answer = running.site.post(CHAT, short, REQUEST_LIMIT_S, REAL_ACCEPTANCE)
    if answer.status == 200:
        return
    if answer.status == 400:
        bare = {name: short[name] for name in short if name != "chat_template_kwargs"}
        if running.site.post(CHAT, bare, REQUEST_LIMIT_S, REAL_ACCEPTANCE).status == 200:
            raise _lacks(mode, f"{running.model} refuses it: {_said(answer)}")
    raise _failed(answer)


def _same_tokens(running: Running, chat: Chat, sampling: Sampling) -> bool:
    seen = []
    for mode in ("on", "off"):
        answer = running.site.post(
            "/tokenize", _asking(running, chat, sampling.thinking.get(mode, {})), REQUEST_LIMIT_S
        )
        body = answer.body if answer.status == 200 else None
        seen.append(body.get("tokens") if isinstance(body, dict) else None)
    return seen[0] is not None and seen[0] == seen[1]


def _lacks(mode: str, why: str) -> UsageError:
    other = "off" if mode == "on" else "on"
    return UsageError(
        "thinking-unsupported",
        f"thinking {mode}: {why}",
        hint=f"measure --thinking {other}, or name the template's arguments with --kwargs-{mode}",
    )


def _asking(running: Running, chat: Chat, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"model": running.model, "messages": list(chat)}
    return body | ({"chat_template_kwargs": dict(kwargs)} if kwargs else {})


def _body(
    running: Running, sampling: Sampling, prompts: Prompts, thinking: str, number: int
) -> dict[str, Any]:
    body = _asking(running, prompts.chats[number], sampling.thinking[thinking])
    body |= {
        "max_tokens": sampling.output_len,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop": list(prompts.stop),
    }
    drawn = {"seed": sampling.seed + number} if sampling.temperature else {}
    return body | drawn | ({"top_k": sampling.top_k} if sampling.top_k else {})


def _groups(bodies: Sequence[dict[str, Any]], size: int) -> Iterator[Sequence[dict[str, Any]]]:
    for first in range(0, len(bodies), size):
        yield bodies[first : first + size]


def _growth(running: Running, before: str, after: str) -> Batch:
    """Return accepted drafts and steps between two pages, from what the framework reads there."""
    counters = running.framework.counters(before, after)
    steps, length = counters.verify_steps, counters.acceptance_length
    if steps is None or (steps and length is None):
        name = running.framework.name
        raise MeasurementError("counters-missing", f"{name} stopped telling its verify steps")
    # the product of a mean and its count: a whole number but for the last bits
    return Batch(round(((length or 1.0) - 1) * steps, 6), steps)


def _ask_all(running: Running, bodies: Sequence[Mapping[str, Any]]) -> None:
    """Send all at once and wait for every answer; the server's death ends the wait."""
    done: queue.Queue[Answer | OSError] = queue.Queue()

    def ask(body: Mapping[str, Any]) -> None:
        try:
            done.put(running.site.post(CHAT, body, REQUEST_LIMIT_S, REAL_ACCEPTANCE))
        except OSError as error:
            done.put(error)

    for body in bodies:
        # Daemons: what is interrupted must not wait for answers.
        threading.Thread(target=ask, args=(body,), daemon=True).start()
    for _ in bodies:
        _check_answer(_next(done, running))


def _next(done: queue.Queue[Answer | OSError], running: Running) -> Answer:
    while True:
        try:
            answer = done.get(timeout=TICK_S)
        except queue.Empty:
            running.check()
            continue
        if isinstance(answer, OSError):
            raise answer
        return answer


def _check_answer(answer: Answer) -> None:
    if answer.status != 200:
        raise _failed(answer)


def _failed(answer: Answer) -> InfxError:
    if answer.status == 409:
        return EngineError("acceptance-mode", f"the server refuses: {_said(answer)}")
    return MeasurementError("request-failed", f"HTTP {answer.status}: {_said(answer)}")


def _said(answer: Answer) -> str:
    body = answer.body
    error = body.get("error") if isinstance(body, dict) else None
    told = error.get("message") if isinstance(error, dict) else None
    return " ".join(str(told or answer.text).split())[:300]
