"""The servers that acceptance is measured on: one that infx starts for a K, or one that runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from infx.domain.acceptance import Acceptance
from infx.domain.axes import AXES, is_computation
from infx.domain.errors import EngineError, MeasurementError, UsageError
from infx.domain.point import Arm
from infx.frameworks.base import Framework
from infx.frameworks.prometheus import parse
from infx.job.agreement import require_acceptance
from infx.job.counters import scrape
from infx.job.ports import free_port
from infx.job.readiness import wait_ready
from infx.job.record import fresh_folder
from infx.job.server import Server, answers
from infx.job.web import Site

__all__ = ["Running", "Told", "connect", "inspect", "quiet", "serving"]

HOST = "127.0.0.1"
SETTLE_LOOKS = 20
SCRAPE_LIMIT_S = 30.0
"""A page that is late costs the whole measurement; on a busy machine it may take seconds."""
INTERRUPTED_S = 1.0
"""Answers that nobody waits for any more are not worth their end."""
QUIET_LOOKS, QUIET_TICK_S = 100, 0.05
"""Five seconds for gauges that an engine writes now and then."""

"""The paths that every framework answers on unless its launch says otherwise."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers. ``server`` is None for one that somebody else started."""

    framework: Framework
    site: Site
    model: str
    server: Server | None = None

    @property
    def metrics(self) -> str:
        """The text of its metrics page. Raises ConnectionError or TimeoutError."""
        return scrape(self.site, self.framework.paths, SCRAPE_LIMIT_S)

    def check(self) -> None:
        """Raise EngineError (``server-died``) when a server of ours has ended."""
        if self.server:
            self.server.check("server-died")

    def silent(self, error: OSError) -> EngineError:
        """Return what it means that the server does not answer."""
        for _ in range(SETTLE_LOOKS):  # a dropped connection is often the first sign of a death
            try:
                self.check()
            except EngineError as died:
                return died
            time.sleep(QUIET_TICK_S if self.server else 0)
        return EngineError("server-hung", f"{self.site.url} does not answer: {error}")


@dataclass(frozen=True, slots=True)
class Told:
    """What the running server says of itself; ``weights`` and ``engine`` are "" when it does not.

    ``computation`` are the axes that decide its answers, as far as it tells them.
    """

    k: int
    method: str
    weights: str = ""
    weights_identity: str = ""
    engine: str = ""
    computation: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def serving(framework: Framework, arm: Arm, folder: Path) -> Iterator[Running]:
    """Start the engine of ``arm``, with its log in ``folder``, and end it afterwards.

    Raises EngineError as `infx.job.readiness` does, ``port-busy``, and InfraError.
    """
    fresh_folder(folder)
    port = free_port(HOST, str(folder))
    server = Server(framework, arm, folder, host=HOST, port=port)
    try:
        server.start(os.environ)
        wait_ready(server, arm.start_limit_s)
        yield Running(framework, server.site, arm.model.name, server)
    except BaseException:
        server.stop(INTERRUPTED_S)
        raise
    finally:
        server.stop()


def connect(framework: Framework, url: str, model: str = "") -> Running:
    """Return the server at ``url`` (http://HOST:PORT), serving ``model`` or its only one.

    Raises UsageError (``bad-option``), EngineError (``server-hung``, ``wrong-model``).
    """
    site = _site(url)
    try:
        answer = site.get(framework.paths.models)
    except OSError as error:
        message, hint = f"{url} does not answer: {error}", "start the server, or correct --url"
        raise EngineError("server-hung", message, hint=hint) from error
    rows = answer.body.get("data", []) if isinstance(answer.body, dict) else []
    names = [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row]
    if model in names or (not model and len(names) == 1):
        return Running(framework, site, model or names[0])
    wanted = f"expected {model!r}" if model else "name one with --model"
    served = ", ".join(names) or f"nothing (HTTP {answer.status})"
    raise EngineError("wrong-model", f"{url}{framework.paths.models} lists {served}; {wanted}")


def inspect(running: Running, k: int | None, method: str = "") -> Told:
    """Return what the server tells, when acceptance can be measured on it.

    Raises EngineError ``acceptance-mode`` unless acceptance is real, ``no-speculation``,
    ``k-differs`` from the asked ``k`` and ``method`` (None and "": what it tells),
    MeasurementError ``counters-missing``.
    """
    try:
        pages, metrics = answers(running.framework, running.site), running.metrics
    except OSError as error:
        raise running.silent(error) from error
    where = running.site.url
    require_acceptance(Acceptance(), running.framework.acceptance(pages), "a golden length")
    resolved = running.framework.resolved(pages)
    if k is None and "k" not in resolved:
        message = f"the server at {where} does not tell its K"
        raise EngineError("k-differs", message, hint="ask the one that it was started with: --k")
    told = _told(resolved, pages, k, method)
    if told.k < 1 or told.method in ("", "none"):
        raise EngineError(
            "no-speculation", f"the server at {where} makes no drafts (K={told.k}, {told.method})"
        )
    if (k or told.k, method or told.method) != (told.k, told.method):
        message = f"the server at {where} runs {told.method} at K={told.k}; asked: {method} K={k}"
        raise EngineError("k-differs", message, hint=f"ask --k {told.k} --method {told.method}")
    if running.framework.counters(metrics, metrics).verify_steps is None:
        message = f"{where}: {running.framework.name} tells no accepted drafts and verify steps"
        raise MeasurementError("counters-missing", message)
    return told


def _told(
    resolved: Mapping[str, Any], pages: Mapping[str, Any], k: int | None, method: str
) -> Told:
    axes = [name for name in AXES if is_computation(name) and name != "k" and name in resolved]
    kept = {name: resolved[name] for name in axes if resolved[name] != AXES[name].default}
    versions = [page.get("version") for page in pages.values() if isinstance(page, dict)]
    return Told(
        k=int(resolved.get("k", k or 0)),
        method=str(resolved.get("method", method)),
        weights=str(resolved.get("weights", "")),
        weights_identity=str(resolved.get("weights_identity", "")),
        engine=next((str(version) for version in versions if version), ""),
        computation=kept,
    )


def quiet(running: Running) -> str:
    """Return the metrics page of a server that holds no request. Raises MeasurementError
    (``server-busy``), ConnectionError or TimeoutError."""
    gauges = [running.framework.gauges.get(name) for name in ("peak_running", "peak_waiting")]
    for _ in range(QUIET_LOOKS):
        text = running.metrics
        page = parse(text)
        if not any(page.total(gauge) for gauge in gauges if gauge):
            return text
        time.sleep(QUIET_TICK_S)
    message = f"{running.site.url} works on requests that are not ours"
    raise MeasurementError("server-busy", message, hint="measure on a server nobody else uses")


def _site(url: str) -> Site:
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise UsageError("bad-option", f"--url {url}: {error}") from error
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        raise UsageError("bad-option", f"--url {url}: expected http://HOST:PORT")
    return Site(parts.hostname, port)
