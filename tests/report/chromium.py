"""Debian's Chromium, driven over its debugging pipe: no driver, no port, no package."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--window-size=1280,1600",
)  # fmt: skip


def executable() -> str:
    """The browser's path; without it a skip says so, and in CI it is a failure."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail("chromium is not installed, and in CI a skip is a failure")
    pytest.skip("chromium is not installed")


class Page:
    """One tab: navigates, evaluates, and keeps what the page complained about."""

    def __init__(self, read: int, write: int) -> None:
        self._reader = os.fdopen(read, "rb")
        self._writer = os.fdopen(write, "wb", buffering=0)
        self._number = 0
        self._session: str | None = None
        self._pending = b""
        self._loaded: set[str] = set()
        self.complaints: list[str] = []
        self.requested: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result; events in between are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._writer.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file and wait until it is complete."""
        for url in ("about:blank", path.as_uri() + fragment):  # never a same-document jump
            loader = self.call("Page.navigate", url=url)["loaderId"]
            while loader not in self._loaded:
                self._next()

    def scripts(self, *, disabled: bool) -> None:
        """Switch the page's own scripts off or on."""
        self.call("Emulation.setScriptExecutionDisabled", value=disabled)

    def dark(self, value: str) -> None:
        """Ask for a colour scheme: ``dark`` or ``light``."""
        scheme = {"name": "prefers-color-scheme", "value": value}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key on what has the focus."""
        codes = {"Tab": 9, "Enter": 13, "ArrowRight": 39}
        common = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def hover(self, query: str) -> None:
        """Move the mouse onto the middle of an element."""
        box = f"document.querySelector({json.dumps(query)}).getBoundingClientRect()"
        self.run(f"document.querySelector({json.dumps(query)}).scrollIntoView({{block: 'center'}})")
        middle = self.run(
            f"(() => {{ const b = {box}; return [b.x + b.width/2, b.y + b.height/2] }})()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=middle[0], y=middle[1])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            chunk = self._reader.read1(65536)
            assert chunk, "chromium ended"
            self._pending += chunk
        line, self._pending = self._pending.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, parameters: dict[str, Any]) -> None:
        if event == "Page.lifecycleEvent" and parameters["name"] == "load":
            self._loaded.add(parameters["loaderId"])
        if event in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.complaints.append(json.dumps(parameters)[:400])
        if event == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])


@contextmanager
def page(folder: Path) -> Iterator[Page]:
    """Start Chromium with a profile of its own in ``folder``; it ends with the block."""
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()
    # The pipe protocol is spoken on descriptors 3 and 4.
    shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    argv = [executable(), *ARGUMENTS, f"--user-data-dir={folder / 'profile'}"]
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *argv],
        pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Page(to_us, from_us)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
