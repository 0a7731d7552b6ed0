"""What an export says it was told to do."""

from __future__ import annotations

from typing import Any

import pytest

from infx.analysis.asked import Asked, read_asked

PHASES = [
    {"kind": "warmup", "requests": 1, "concurrency": 2},
    {"kind": "profiling", "requests": 12, "concurrency": 2, "duration": None},
]


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (
            {"type": "synthetic", "prompts": {"osl": {"mean": 24.0, "stddev": 0.0}}},
            Asked(conc=2, requests=12, osl=24),
        ),
        (
            {"type": "file", "format": "single_turn", "osl": {"mean": 24.0}, "prompts": {}},
            Asked(conc=2, requests=12, osl=24),
        ),
        (
            {"type": "synthetic", "prompts": {"osl": {"mean": 24.0, "stddev": 3.0}}},
            Asked(conc=2, requests=12),
        ),
        ({"type": "file", "format": "mooncake_trace", "osl": {"mean": 24.0}}, Asked(requests=12)),
    ],
)
def test_load_and_length_are_known_where_requests_have_no_pauses(
    dataset: dict[str, Any], expected: Asked
) -> None:
    assert read_asked({"phases": PHASES, "datasets": [dataset]}) == expected


def test_another_form_is_said_to_be_unknown() -> None:
    assert "not of a known form" in read_asked({"phases": None}).unread
    assert "0 profiling phases" in read_asked({"phases": PHASES[:1], "datasets": [{}]}).unread
