"""The public data that some tests read: INFX_SHARED names its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["shared"]


def shared(path: str = "") -> Path:
    """Return a place in the public data; without it a skip says why, and in CI it is a failure."""
    root = os.environ.get("INFX_SHARED")
    if not root:
        if os.environ.get("CI") == "true":
            pytest.fail("INFX_SHARED must name the public data in CI")
        pytest.skip("INFX_SHARED does not name the public data")
    return Path(root) / path
