"""Errors of writing below a results folder, as what they are: the machine's."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infx.domain.errors import InfraError

__all__ = ["writing"]

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an OSError into InfraError ``disk-full`` or ``results-unwritable`` about ``folder``."""
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        if error.errno in _FULL:
            raise InfraError(
                "disk-full", f"no space is left for {where}", hint="free space, then infx resume"
            ) from error
        told = "it is gone" if not folder.exists() else error.strerror or str(error)
        raise InfraError(
            "results-unwritable",
            f"cannot write {where}: {told}",
            hint="name another folder with --results",
        ) from error
