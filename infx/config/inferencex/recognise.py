"""Whether a file is one of InferenceX's master configurations; importing this costs nothing."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["is_master"]

_SCENARIO = re.compile(rb"^ +[\"']?(fixed-seq-len|agentic-coding)[\"']?:", re.MULTILINE)
_SPACE = re.compile(rb"^[ -]+[\"']?search-space[\"']?:", re.MULTILINE)


def is_master(path: Path) -> bool:
    """Return True for a file with the scenarios and search spaces of InferenceX, which no file of
    infx has; False for one that cannot be read."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError):
        return False
    return bool(_SCENARIO.search(data) and _SPACE.search(data))
