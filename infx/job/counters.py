"""The server's own counters over a point: two scrapes and the peaks between them."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from infx.domain.record import EngineCounters
from infx.frameworks.base import Paths
from infx.frameworks.prometheus import note, parse
from infx.job.record import write_whole
from infx.job.server import Server
from infx.job.web import Site

__all__ = ["Scraper", "scrape"]

EVERY_S = 0.5
"""Between two looks at the gauges: a scrape costs the server 2 to 5 ms."""

SHARES = ("kv_cache_usage_peak",)
"""Gauges of a share (0 … 1): replicas that each tell theirs do not add up, the fullest counts."""


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
            self._note(self._server.site.get(self._server.framework.paths.metrics).text)

    def end(self) -> EngineCounters:
        """Scrape after the client ended and return what happened in between."""
        after = self._scrape("metrics-after.txt")
        counters = self._server.framework.counters(self._before, after)
        known = {name: v for name, v in self._peaks.items() if getattr(counters, name) is None}
        return replace(counters, **known)  # type: ignore[arg-type]

    def _scrape(self, name: str) -> str:
        text = ""
        with suppress(OSError):
            text = scrape(self._server.site, self._server.framework.paths)
        write_whole(self._folder / name, text.encode())
        self._note(text)
        return text

    def _note(self, text: str) -> None:
        page = parse(text)
        for name, metric in self._server.framework.gauges.items():
            value = page.largest(metric) if name in SHARES else page.total(metric)
            if value is not None:
                self._peaks[name] = max(value, self._peaks.get(name, 0.0))


def scrape(site: Site, paths: Paths, limit_s: float = 5.0) -> str:
    """Return the text of the metrics page and the notes beside it ("": it answers no 200).

    Raises ConnectionError or TimeoutError.
    """
    answer = site.get(paths.metrics, limit_s)
    if answer.status != 200:
        return ""
    pages = ((path, site.get(path, limit_s)) for path in paths.notes)
    kept = (note(path, told.body) for path, told in pages if told.status == 200)
    return answer.text + "".join(kept)
