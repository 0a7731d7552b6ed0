"""How every benchmark ends: its results as JSON, printed, and kept when asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

__all__ = ["tell"]


def tell(results: Mapping[str, object], path: Path, *, save: bool) -> None:
    """Print ``results``, and write them to ``path`` when asked."""
    text = json.dumps(results, indent=2)
    print(text)
    if save:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
