"""Where builds of this machine are kept."""

from __future__ import annotations

import os
from pathlib import Path

from infx.domain.errors import InfraError

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Return where builds are kept: INFX_MONO_CACHE, or infx/mono in the user's cache.

    Raises InfraError (``builds-unwritable``) for a user without a home.
    """
    if given := os.environ.get("INFX_MONO_CACHE"):
        return Path(given)
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:
        raise InfraError(
            "builds-unwritable", f"{error}: name a folder for compiled layers in INFX_MONO_CACHE"
        ) from error
    return Path(home) / "infx" / "mono"
