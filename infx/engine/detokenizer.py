"""Token ids to text as it streams: whole characters only, stop strings found and trimmed."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

__all__ = ["TextStream"]


class TextStream:
    """Text of one output.

    Bytes that may still become a character are held; bytes that cannot are U+FFFD. Text that may
    still become a stop string is held too, whatever tokens it spans.
    """

    def __init__(self, token_bytes: Sequence[bytes], stop: Sequence[str] = ()) -> None:
        self.stopped = False
        self._token_bytes = token_bytes
        self._stop = [text for text in stop if text]
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held, self._begun = "", [0] * len(self._stop)

    def push(self, token: int, *, may_stop: bool = True) -> str:
        """Return the text that ``token`` frees; `stopped` turns true when a stop string is whole.

        With ``may_stop`` false the text is let through unsearched (min_tokens).
        """
        text = self._decoder.decode(self._token_bytes[token])
        if not self._stop:
            return text
        return self._release(text) if may_stop else self._let_through(text)

    def finish(self) -> str:
        """Return what was held, a broken last character as U+FFFD; nothing after a stop string."""
        if self.stopped:
            return ""
        text = self._release(self._decoder.decode(b"", final=True))
        return text if self.stopped else text + self._let_through("")

    def _let_through(self, text: str) -> str:
        text, self._held = self._held + text, ""
        self._begun = [0] * len(self._stop)
        return text

    def _release(self, text: str) -> str:
        # Of a stop string, no more can have begun than had before, and what is new.
        most = [begun + len(text) for begun in self._begun]
        text = self._held + text
        found = [at for at in map(text.find, self._stop) if at >= 0]
        if found:
            self.stopped = True
            return text[: min(found)]
        self._begun = [_overlap(text, *one) for one in zip(self._stop, most, strict=True)]
        keep = max(self._begun, default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str, most: int) -> int:
    """Return the length, up to ``most``, of the longest end of ``text`` that begins ``stop``."""
    longest = min(len(text), len(stop) - 1, most)
    return next((n for n in range(longest, 0, -1) if stop.startswith(text[-n:])), 0)
