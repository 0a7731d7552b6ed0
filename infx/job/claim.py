"""Who runs an attempt: the file `claim` in its folder, made by whoever comes first.

A scheduler may start a job again under its id, or start late one that infx has given up. Who cannot
create the file (O_EXCL, which NFS keeps too) does not run.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from infx.domain.errors import ConfigError
from infx.domain.serial import decode, encode
from infx.job.record import sync_folder, writing

__all__ = ["FILE", "TAKEN", "Claim", "abandon", "abandon_script", "holder", "take"]

FILE = "claim"

TAKEN = 75
"""The exit code of a job whose attempt is somebody else's (EX_TEMPFAIL)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """``by`` infx: given up, never to run. Empty (unknown) while its maker still writes it."""

    by: Literal["job", "infx", ""] = ""
    scheduler_id: str = ""
    host: str = ""
    pid: int = 0
    started_s: float = 0.0

    def __str__(self) -> str:
        if self.by == "infx":
            return "infx gave this attempt up"
        who = f"job {self.scheduler_id}" if self.scheduler_id else "another execution"
        where = f" (process {self.pid} on {self.host})" if self.pid else ""
        return f"{who}{where} has this attempt"


ABANDONED = Claim(by="infx")


def take(folder: Path, claim: Claim) -> bool:
    """Create the claim; False when there is one already.

    Raises InfraError (``disk-full``, ``results-unwritable``).
    """
    path = folder / FILE
    with writing(path):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        with os.fdopen(handle, "wb") as file:
            file.write(encode(claim) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(folder)
    return True


def abandon(folder: Path) -> bool:
    """Give the attempt up: True when it is now sure never to run, False when a job has it."""
    if take(folder, ABANDONED):
        return True
    claim = holder(folder)
    return claim is not None and claim.by == "infx"


def abandon_script(folder: str) -> str:
    """Return POSIX sh that does what `abandon` does: it exits 0 for True, 1 for False."""
    path, line = shlex.quote(f"{folder}/{FILE}"), shlex.quote(encode(ABANDONED).decode())
    return f"(set -C; printf '%s\\n' {line} > {path}) 2>/dev/null || grep -qxF {line} {path}\n"


def holder(folder: Path) -> Claim | None:
    """Return who has the attempt in ``folder``; None when nobody has."""
    try:
        data = (folder / FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return decode(data, Claim)
    except ConfigError:
        return Claim()
