"""A frame around what a script says, so that an answer over ssh is known to be whole.

ssh's own failures and a script that exits with 255 look alike, a login shell may print before the
script, and a lost connection cuts its output anywhere. So the script's two streams begin with a
mark and end with the mark and the exit code; without the last nobody knows how it ended.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from shlex import quote

__all__ = ["Frame", "Inside"]


@dataclass(frozen=True, slots=True)
class Inside:
    """What a stream holds in its frame, and the exit code after it."""

    data: bytes
    code: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The mark is new for each script: none can print another's."""

    mark: str = field(default_factory=lambda: f"infx-{secrets.token_hex(8)}")

    def around(self, script: str, stdin: str = "</dev/null") -> str:
        """Return sh text that runs ``script`` in a frame; ``stdin`` is a redirection or "".

        The script is one quoted word: cut anywhere on its way it is not run at all.
        """
        return (
            f"echo {self.mark}; echo {self.mark} >&2\n"
            f"(eval {quote(script)}) {stdin}\n"
            f"code=$?; echo {self.mark} $code; echo {self.mark} $code >&2\n"
        )

    def began(self, stream: bytes) -> bool:
        """Return True when the script was started."""
        return self._first in stream

    def inside(self, stream: bytes) -> Inside | None:
        """Return what lies in the frame; None while its end is missing."""
        last = re.search(rb"%s (\d+)\n" % self.mark.encode(), stream)
        if last is None:
            return None
        start = stream.find(self._first) + len(self._first)
        return Inside(stream[start : last.start()], int(last[1]))

    @property
    def _first(self) -> bytes:
        return self.mark.encode() + b"\n"
