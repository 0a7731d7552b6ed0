"""The connection that all calls to a host share: ssh's control master."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infx.launch.transport.child import running

__all__ = ["Master"]

PERSIST_S = 60
"""A master that infx could not end (kill -9) goes by itself after this."""

CONTROL_S = 5.0
"""A master that does not answer a word within this hangs."""

SOCKET_BYTES = 107 - 17
"""A Unix socket's path ends at 107 bytes, and ssh first binds one with 17 more."""


class Master:
    """One for each transport, on a socket of its own: ending it disturbs no other infx.

    A master that the user's ssh configuration already keeps open is used instead, and left alone:
    where a login needs a second factor, it is the only way in without a person.
    """

    def __init__(self, host: str, options: Sequence[str], folder: Path | None) -> None:
        self._host = host
        self._ssh = ("ssh", *options)
        self._wanted = folder
        self._made: Path | None = None
        self._sockets: list[Path] = []
        self._users: bool | None = None

    def options(self) -> list[str]:
        """Return ssh's arguments for a call; the first call starts the master."""
        if self._users is None:
            self._users = self._asked("check")
        if self._users:
            return []
        if not self._sockets:
            self._sockets.append(self._folder() / secrets.token_hex(4))
        return [*_path(self._sockets[-1]), "-oControlMaster=auto", f"-oControlPersist={PERSIST_S}"]

    def abandon(self) -> None:
        """Have the next call connect anew; the old master, that may hang, goes by itself."""
        if self._sockets:
            self._sockets.append(self._sockets[-1].with_name(secrets.token_hex(4)))

    def close(self) -> None:
        """End the masters that calls started; the next call would start one again."""
        for socket in self._sockets:
            if socket.exists():
                self._asked("exit", *_path(socket))
            socket.unlink(missing_ok=True)
        if self._made:
            shutil.rmtree(self._made, ignore_errors=True)
        self._sockets, self._made = [], None

    def _asked(self, word: str, *options: str) -> bool:
        argv = [*self._ssh, *options, "-O", word, "--", self._host]
        with running(argv, subprocess.DEVNULL) as child:
            return child.ended(CONTROL_S) and child.process.returncode == 0

    def _folder(self) -> Path:
        """Return a folder that only this user can enter, short enough for a socket in it."""
        folder = self._wanted or _default()
        if len(os.fsencode(folder)) + 9 <= SOCKET_BYTES:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
                return folder
            except OSError:
                pass  # a home that cannot be written
        self._made = Path(tempfile.mkdtemp(prefix="infx-ssh-", dir="/tmp"))
        return self._made


def _default() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime, "infx-ssh") if runtime else Path.home() / ".cache/infx/ssh"


def _path(socket: Path) -> list[str]:
    """Quoted as in ssh's own files; ``%`` would start one of its tokens."""
    return [f'-oControlPath="{str(socket).replace("%", "%%")}"']
