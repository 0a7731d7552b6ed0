"""How infx reaches a cluster: the protocol, and the cluster whose commands are on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Protocol

from infx.domain.errors import InfraError
from infx.launch.transport.child import content, running, written

__all__ = ["Answer", "LocalTransport", "Transport", "first_words", "no_answer"]

FOREIGN = ("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_", "PMI")
"""Inside a job these say what a new job would inherit, and how Slurm's commands write."""

SBIN = ("/usr/sbin", "/sbin")


@dataclass(frozen=True, slots=True)
class Answer:
    """Of a command that ran: its exit code (128 + n for signal n), stdout and stderr."""

    code: int
    out: str
    err: str


class Transport(Protocol):
    """Commands and files there; ``host`` is "" for this machine, else the ssh host."""

    @property
    def host(self) -> str:
        """The ssh host; "" for this machine."""

    def run(self, script: str, *, limit_s: float = 30.0) -> Answer:
        """Run a POSIX sh script there, its stdin empty; return what it said, whatever its code.

        What the script leaves running in the background is not waited for.
        Raises InfraError ``ssh-unreachable`` when the host cannot be reached (nothing ran, or
        nobody knows), ``no-answer`` after ``limit_s``.
        """

    def push(self, source: Path, target: str, names: Sequence[str]) -> None:
        """Copy files and folders ``names`` below source to below target, made if need be.

        Raises InfraError ``transfer-failed``, ``ssh-unreachable``, ``no-answer``.
        """

    def pull(self, source: str, target: Path, names: Sequence[str]) -> None:
        """The other way; a name that is not there is left out. Raises as ``push`` does."""

    def close(self) -> None:
        """End what the transport keeps open."""


class LocalTransport:
    """The commands of this machine; the shell dies with infx, and wholly at its limit."""

    host = ""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """``environment`` is added to this process's own, less what Slurm put there."""
        own = {name: text for name, text in os.environ.items() if not name.startswith(FOREIGN)}
        self._environment = {**own, **environment}
        self._environment["PATH"] = _with_sbin(self._environment.get("PATH", os.defpath))

    def run(self, script: str, *, limit_s: float = 30.0) -> Answer:
        """See `Transport.run`; raises InfraError ``no-answer``, ``launch-failed``."""
        # One quoted word: the shell has read all of it, so its stdin has ended, before it starts.
        text = f"eval {quote(script)}\n"
        with (
            written(text.encode(errors="surrogateescape")) as stdin,
            running(["sh", "-s"], stdin, self._environment) as child,
        ):
            if not child.ended(limit_s):
                raise no_answer(self.host, first_words(script), limit_s)
            code = child.process.returncode
            out, err = (content(file).decode(errors="replace") for file in (child.out, child.err))
        return Answer(code if code >= 0 else 128 - code, out, err)

    def push(self, source: Path, target: str, names: Sequence[str]) -> None:
        """See `Transport.push`; source and target may be one folder, then all is there."""
        _copy(source, Path(target), names, absent=())

    def pull(self, source: str, target: Path, names: Sequence[str]) -> None:
        """See `Transport.pull`; source and target may be one folder, then all is there."""
        _copy(Path(source), target, names, absent=(FileNotFoundError,))

    def close(self) -> None:
        """Nothing is kept open."""


def no_answer(host: str, what: str, limit_s: float) -> InfraError:
    """Return the error of a command that did not end within its limit."""
    return InfraError(
        "no-answer",
        f"{host or 'this machine'}: no answer within {limit_s:g} s from: {what}",
        hint="the host or its scheduler hangs; try the command by hand",
    )


def first_words(script: str) -> str:
    """Return the script's first line, cut at 60 characters, to name it in a message."""
    line = next((line.strip() for line in script.splitlines() if line.strip()), "")
    return line if len(line) <= 60 else f"{line[:59]}…"


def _with_sbin(path: str) -> str:
    folders = path.split(os.pathsep)
    return os.pathsep.join([*folders, *(folder for folder in SBIN if folder not in folders)])


def _copy(
    source: Path, target: Path, names: Sequence[str], absent: tuple[type[OSError], ...]
) -> None:
    """Copy each name; a file that raises one of ``absent`` when it is read is left out."""
    if source.resolve() == target.resolve():
        return
    try:
        for name in names:
            _copy_tree(source / name, target / name, absent)
    except OSError as error:
        message = f"this machine: cannot copy {source} to {target}: {error}"
        raise InfraError("transfer-failed", message) from error


def _copy_tree(source: Path, target: Path, absent: tuple[type[OSError], ...]) -> None:
    with suppress(*absent):
        if source.is_dir() and not source.is_symlink():
            target.mkdir(parents=True, exist_ok=True)
            for path in source.iterdir():
                _copy_tree(path, target / path.name, absent)
            return
        source.lstat()  # before its folder is made
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
        shutil.copy2(source, target, follow_symlinks=False)
