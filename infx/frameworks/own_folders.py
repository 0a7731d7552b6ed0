"""Where this machine keeps the engines that have an environment of their own, and models made for
them.

INFX_ENGINES/NAME-VERSION/   the virtual environment of an engine (`pypi:NAME==VERSION`)
INFX_ENGINES/models/NAME/    a model in Hugging Face's layout, in a recipe ``weights: engines:NAME``
"""

from __future__ import annotations

import os
from pathlib import Path

from infx.domain.errors import EngineError

__all__ = ["ENGINES", "engine_folder", "engines_folder", "model_folder"]

ENGINES = "engines:"
"""The form of weights that lie among the engines."""

VARIABLE = "INFX_ENGINES"


def engines_folder() -> Path:
    """Return INFX_ENGINES, by default ``infx/engines`` in the user's cache."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "infx" / "engines"


def engine_folder(image: str) -> Path:
    """Return the environment's folder of ``pypi:NAME==VERSION``."""
    name, _, version = image.removeprefix("pypi:").partition("==")
    return engines_folder() / f"{name}-{version}"


def model_folder(weights: str) -> Path:
    """Return the folder of ``engines:NAME``. Raises EngineError (``weights-missing``)."""
    folder = engines_folder() / "models" / weights.removeprefix(ENGINES)
    if (folder / "config.json").is_file():
        return folder
    raise EngineError(
        "weights-missing",
        f"weights {weights!r}: no model in {folder}",
        hint=f"make it there, or name its place in {VARIABLE}",
    )
