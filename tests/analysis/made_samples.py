"""Samples of an evaluation as lm-eval 0.4.13 writes them, made to measure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILTERS = ("strict-match", "flexible-extract")
Rows = list[dict[str, Any]]


def rows_of(right: Sequence[bool], filters: Sequence[str] = FILTERS, text: str = "#### 4") -> Rows:
    """The rows as lm-eval 0.4.13 writes them, a filter after the other."""
    settings = {"until": ["</s>"], "do_sample": False, "temperature": 0}
    return [
        {
            "doc_id": n, "doc": {"question": f"q{n}"}, "target": "4",
            "arguments": {"gen_args_0": {"arg_0": ["[]"], "arg_1": settings}},
            "resps": [[text]], "filtered_resps": ["4"], "filter": name,
            "metrics": ["exact_match"], "doc_hash": f"d{n}", "prompt_hash": f"p{n}",
            "target_hash": "t", "exact_match": float(ok),
        }
        for name in filters
        for n, ok in enumerate(right)
    ]  # fmt: skip


def write(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
