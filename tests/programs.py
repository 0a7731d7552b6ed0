"""Programs that a test needs: without one it skips and says so, and in CI it runs and fails."""

from __future__ import annotations

import os
import shutil

import pytest

__all__ = ["needs"]


def needs(program: str) -> pytest.MarkDecorator:
    """Return the mark of tests that call ``program``."""
    absent = shutil.which(program) is None and os.environ.get("CI") != "true"
    return pytest.mark.skipif(absent, reason=f"{program} is not installed")
