"""Debian's Chromium, driven by Playwright: nothing from the network, no word to the console."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["Tab", "browser", "executable", "tab"]


def executable() -> str:
    """The browser's path; without it a skip says so, and in CI it is a failure."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail("chromium is not installed, and in CI a skip is a failure")
    pytest.skip("chromium is not installed")


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium; it ends with the block."""
    path = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Tab:
    """A page in a context of its own, 1280 by 800 unless ``options`` say otherwise, that keeps what
    it said to the console and what it asked for."""

    def __init__(self, chromium: Browser, **options: Any) -> None:
        self.scripts = options.get("java_script_enabled", True)
        options = {"viewport": {"width": 1280, "height": 800}} | options
        self.context = chromium.new_context(**options)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.add(request.url.split("#")[0]))

    @contextmanager
    def showing(self, path: Path, fragment: str = "") -> Iterator[Page]:
        """Open a file. At the end the page must have said nothing, and asked for itself alone."""
        self.page.goto("about:blank")  # or a fragment would be a jump within the page before
        self.said.clear()
        self.asked.clear()
        self.page.goto(path.as_uri() + fragment)
        if self.scripts:
            self.page.wait_for_selector("html.scripted")
        yield self.page
        assert self.said == []
        assert self.asked == {path.as_uri()}


@contextmanager
def tab(chromium: Browser, path: Path, fragment: str = "", **options: Any) -> Iterator[Page]:
    """Open a file in a tab of its own."""
    opened = Tab(chromium, **options)
    with opened.showing(path, fragment) as page:
        yield page
    opened.context.close()
