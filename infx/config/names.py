"""What names and lines of text look like in the files, as patterns that JSON Schema reads too."""

from __future__ import annotations

import re

__all__ = ["ENV_NAME", "LINE", "NAME", "NAME_HINT", "WEIGHTS", "is_line", "is_name"]

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Of entries, recipes, golden files, clusters, options: parts of file names, never a path."""

NAME_HINT = "use up to 100 letters, digits, dots, hyphens and underscores"

ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"

_PLAIN = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]"

LINE = rf"^{_PLAIN}*$"
"""One line without control characters, which a terminal would obey."""

WEIGHTS = rf"^(package:\w[\w.]*/{_PLAIN}+|random:[0-9]{{1,15}}|hf:{_PLAIN}+|[./~]{_PLAIN}*)$"


def is_name(text: str) -> bool:
    """Return True when ``text`` may be a name."""
    return re.fullmatch(NAME, text) is not None


def is_line(text: str) -> bool:
    """Return True when ``text`` is one line without control characters."""
    return re.fullmatch(LINE, text) is not None
