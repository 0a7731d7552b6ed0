"""Ten thousand random requests through the engine's steps, each compared with itself alone."""

from __future__ import annotations

import pytest

from tests.engine.tiny import serve_tiny
from tests.engine.torture import require, torture


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_ten_thousand_requests(monkeypatch, capsys):
    serve_tiny(monkeypatch)
    seen = torture(seed=4, episodes=200, count=50)
    with capsys.disabled():
        print(f"\n{dict(seen.counts)}", *seen.ties, f"{len(seen.ties)} ties", sep="\n")
    require(seen, requests=10_000)
