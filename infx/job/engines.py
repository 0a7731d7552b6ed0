"""The program of an engine that has an environment of its own.

Two engines do not fit into one Python environment, and none fits into infx's. So an engine that an
entry names as a package (``pypi:NAME==VERSION``) is started out of
``$INFX_ENGINES/NAME-VERSION/bin``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from infx.domain.errors import EngineError
from infx.frameworks.own_folders import engine_folder
from infx.job.container import PACKAGE

__all__ = ["located"]


def located(argv: Sequence[str], image: str) -> tuple[str, ...]:
    """Return ``argv`` with its program's path, where a bare name is one of the engine's own
    environment; all others (a path, a container's program) as they are.

    Raises EngineError (``engine-missing``) when the environment or the program is not there.
    """
    program, *words = argv
    if os.sep in program or not image.startswith(PACKAGE):
        return tuple(argv)
    folder = engine_folder(image)
    found = folder / "bin" / program
    if found.is_file() and os.access(found, os.X_OK):
        return (str(found), *words)
    package = image.removeprefix(PACKAGE)
    raise EngineError(
        "engine-missing",
        f"{image} has no program {program!r} in {folder}",
        hint=f"python3 -m venv {folder} && {folder}/bin/pip install {package}",
    )
