"""Weka traces made to measure: sessions of an agent that grow, each with a subagent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BLOCK = 64


def session(number: int, turns: int = 4, think_s: float = 0.05) -> dict[str, Any]:
    """A session of ``turns`` requests that grow by two blocks, and a subagent's one request."""
    own = range(100 * number, 100 * number + 2 * turns)
    made = {"type": "s", "model": "tiny", "out": 12, "api_time": 0.1, "think_time": think_s}
    requests = [
        made | {"t": 0.2 * at, "in": 2 * BLOCK * (at + 1), "hash_ids": list(own[: 2 * (at + 1)])}
        for at in range(turns)
    ]
    inner = made | {"t": 1.0, "in": 2 * BLOCK, "hash_ids": [100 * number + 50, 100 * number + 51]}
    subagent = {
        "type": "subagent", "t": 1.0, "agent_id": f"a{number}", "subagent_type": "explore",
        "status": "completed", "models": ["tiny"], "requests": [inner],
    }  # fmt: skip
    return {
        "id": f"t{number}", "models": ["tiny"], "block_size": BLOCK, "hash_id_scope": "local",
        "requests": [*requests, subagent],
    }  # fmt: skip


def write_traces(folder: Path, count: int = 3, **session_fields: Any) -> Path:
    """Write ``count`` sessions into ``folder`` (made), and return it."""
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"t{number}.json").write_text(json.dumps(session(number, **session_fields)))
    return folder
