"""The server's own counters over a point: two scrapes and the peaks between them."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from infx.domain.record import EngineCounters
from infx.frameworks.prometheus import parse
from infx.job.record import write_whole
from infx.job.server import Server

__all__ = ["Scraper"]

EVERY_S = 0.5
"""Between two looks at the gauges: a scrape costs the server 2 to 5 ms."""


class Scraper:
    """Reads /metrics around one point. The window holds its warm-up requests too."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._before, self._last = "", 0.0
        self._peaks: dict[str, float] = {}

    def begin(self) -> None:
        """Scrape before the client starts."""
        self._before = self._scrape("metrics-before.txt")

    def look(self) -> None:
        """Note the gauges, at most twice a second."""
        if time.monotonic() - self._last < EVERY_S:
            return
        self._last = time.monotonic()
        with suppress(OSError):
            self._note(self._server.site.get(self._server.launch.metrics).text)

    def end(self) -> EngineCounters:
        """Scrape after the client ended and return what happened in between."""
        after = self._scrape("metrics-after.txt")
        counters = self._server.framework.counters(self._before, after)
        known = {name: v for name, v in self._peaks.items() if getattr(counters, name) is None}
        return replace(counters, **known)  # type: ignore[arg-type]

    def _scrape(self, name: str) -> str:
        text = ""
        with suppress(OSError):
            text = self._server.site.get(self._server.launch.metrics).text
        write_whole(self._folder / name, text.encode())
        self._note(text)
        return text

    def _note(self, text: str) -> None:
        page = parse(text)
        for name, metric in self._server.framework.gauges.items():
            value = page.total(metric)
            if value is not None:
                self._peaks[name] = max(value, self._peaks.get(name, 0.0))
