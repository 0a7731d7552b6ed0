"""A cluster behind ssh: the system's own, one connection for all calls."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join, quote
from typing import IO

from infx.domain.errors import InfraError
from infx.launch.transport.child import Child, content, running, written
from infx.launch.transport.frame import Frame
from infx.launch.transport.local import Answer, first_words, no_answer
from infx.launch.transport.ssh_master import Master

__all__ = ["SshTransport"]

SETTINGS = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "15",  # a connection that is gone is noticed after 45 s
    "ServerAliveCountMax": "3",
    "RemoteCommand": "none",
    "ClearAllForwardings": "yes",
    "LogLevel": "ERROR",  # no banner among the errors
}

TRANSFER_S = 1800.0
"""Files may take as long as this; a connection that is gone ends them sooner."""

SILENCE_S = 120
"""rsync gives up when no byte has come for so long."""

LOOK_S = 30.0
NO_FOLDER = 3

# Files of a job that runs change and go while they are copied.
TAR_CHANGED, RSYNC_VANISHED = 1, 24
RSYNC_NO_SSH = (12, 255)
RSYNC_NOISE = 2
"""Its word for a login shell that prints; a frame takes no harm from that."""
RSYNC_SILENCE = (30, 35)


@dataclass(frozen=True, slots=True)
class _Said:
    code: int
    out: bytes
    err: bytes


class SshTransport:
    """Runs scripts and copies files through the system's ssh and what ~/.ssh/config says.

    **A script is sent once**, never again on failure: it may hold an sbatch, and when a
    connection breaks nobody knows whether that ran. Nothing needs a second try here: ssh itself
    replaces the socket of a master that was killed, before it sends anything. A call whose master
    dies under it raises ``ssh-unreachable``; whoever called looks first, then decides.
    """

    def __init__(
        self, host: str, *, options: Sequence[str] = (), control_dir: Path | None = None
    ) -> None:
        """``options`` are arguments of ssh and win over infx's own.

        ``control_dir`` holds the socket of the shared connection, by default a private folder in
        $XDG_RUNTIME_DIR or ~/.cache.
        """
        self.host = host
        self._options = tuple(options)
        self._master = Master(host, self._options, control_dir)

    def run(self, script: str, *, limit_s: float = 30.0) -> Answer:
        """See `Transport.run`; raises InfraError ``ssh-unreachable``, ``no-answer``."""
        said = self._say(script, first_words(script), limit_s)
        out, err = (stream.decode(errors="replace") for stream in (said.out, said.err))
        return Answer(said.code, out, err)

    def push(self, source: Path, target: str, names: Sequence[str]) -> None:
        """See `Transport.push`; one round trip with a tar stream."""
        if not names:
            return
        what = f"copy of {source} to {target}"
        pack = ["tar", "-c", "-f", "-", "-C", str(source), "--null", "-T", "-"]
        folder = quote(target)
        unpack = f"mkdir -p -- {folder} && tar -x -o -f - -C {folder}"
        with written(_listed(names)) as listing, running(pack, listing, piped=True) as tar:
            said = self._say(unpack, what, TRANSFER_S, stdin=tar.out)
            # Where nobody reads on, it does not end.
            tar.ended(0.0 if said.code else SILENCE_S)
            if said.code or tar.process.returncode:
                raise self._failed(what, content(tar.err) or said.err)

    def pull(self, source: str, target: Path, names: Sequence[str]) -> None:
        """See `Transport.pull`; by rsync where both sides have it, else with a tar stream."""
        if not names:
            return
        what = f"copy of {source} to {target}"
        look = f"[ -d {quote(source)} ] || exit {NO_FOLDER}; command -v rsync"
        found = self._say(look, what, LOOK_S).code
        if found == NO_FOLDER:
            return
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed(what, str(error).encode()) from error
        if found == 0 and shutil.which("rsync"):
            self._rsync(source, target, names, what)
        else:
            self._untar(source, target, names, what)

    def close(self) -> None:
        """End the shared connection, if it is infx's own."""
        self._master.close()

    def _say(self, script: str, what: str, limit_s: float, stdin: IO[bytes] | None = None) -> _Said:
        """Return a script's answer once it is whole; with ``stdin`` the script is an argument."""
        frame = Frame()
        if stdin:
            command = f"sh -c {quote(frame.around(script, stdin=''))}"
            return self._answer(command, frame, stdin, what, limit_s)
        with written(frame.around(script).encode(errors="surrogateescape")) as text:
            return self._answer("sh -s", frame, text, what, limit_s)

    def _answer(
        self, command: str, frame: Frame, stdin: IO[bytes], what: str, limit_s: float
    ) -> _Said:
        with running([*self._ssh(), "--", self.host, command], stdin) as child:
            # sshd keeps a session open while any process holds its output: ssh may not end.
            if not child.ended(limit_s, lambda: _whole(child, frame) is not None):
                self._master.abandon()
                raise no_answer(self.host, what, limit_s)
            said = _whole(child, frame)
            if said is None:
                raise self._broken(what, content(child.err) or content(child.out), frame)
            return said

    def _ssh(self) -> list[str]:
        settings = [f"-o{name}={value}" for name, value in SETTINGS.items()]
        return ["ssh", "-T", *self._options, *settings, *self._master.options()]

    def _rsync(self, source: str, target: Path, names: Sequence[str], what: str) -> None:
        # Nanoseconds count (modify-window): a file may be written twice within one second.
        argv = [
            *("rsync", "-a", "-r", "-s", "--no-owner", "--no-group", "--partial"),
            *("--modify-window=-1", f"--timeout={SILENCE_S}", "--ignore-missing-args"),
            *("--from0", "--files-from=-", "-e", join(self._ssh())),
            *("--", f"{self.host}:{source}/", f"{target}/"),
        ]
        with written(_listed(names)) as listing, running(argv, listing) as child:
            ended, err = child.ended(TRANSFER_S), content(child.err)
            code = child.process.returncode
        if code == RSYNC_NOISE:
            return self._untar(source, target, names, what)
        if not ended or code in RSYNC_SILENCE:
            raise no_answer(self.host, what, SILENCE_S if ended else TRANSFER_S)
        if code in RSYNC_NO_SSH:
            raise self._broken(what, err)
        if code not in (0, RSYNC_VANISHED):
            raise self._failed(what, err)
        return None

    def _untar(self, source: str, target: Path, names: Sequence[str], what: str) -> None:
        listed = " ".join(quote(f"./{name}") for name in names)
        pack = (
            f"cd -- {quote(source)} || exit\n"
            f'for name in {listed}; do if [ -e "$name" ] || [ -L "$name" ]; then '
            "printf '%s\\000' \"$name\"; fi; done | tar -c -f - --null -T -"
        )
        said = self._say(pack, what, TRANSFER_S)
        if said.code not in (0, TAR_CHANGED):
            raise self._failed(what, said.err)
        unpack = ["tar", "-x", "-o", "-f", "-", "-C", str(target)]
        with written(said.out) as stream, running(unpack, stream) as tar:
            if not tar.ended(TRANSFER_S) or tar.process.returncode:
                raise self._failed(what, content(tar.err))

    def _failed(self, what: str, err: bytes) -> InfraError:
        line = next(iter(_lines(err)), "no reason given")
        return InfraError("transfer-failed", f"{self.host}: {what} failed: {line}")

    def _broken(self, what: str, err: bytes, frame: Frame | None = None) -> InfraError:
        """Return what ssh said: first of all when it did not connect, last when it broke."""
        began = frame is not None and frame.began(err)
        lines = _lines(err)[began:] or ["nothing"]
        if began:
            message = f"{self.host}: the connection broke, so nobody knows how this ended: {what}"
            return InfraError("ssh-unreachable", f"{message} (ssh said: {lines[-1]})")
        message = f"{self.host} cannot be reached: {lines[0]}"
        return InfraError("ssh-unreachable", message, hint=_advice(self.host, lines))


def _whole(child: Child, frame: Frame) -> _Said | None:
    err = frame.inside(content(child.err))
    out = frame.inside(content(child.out)) if err else None
    return _Said(out.code, out.data, err.data) if out and err else None


def _advice(host: str, lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    if "ermission denied" in text:
        return f"`ssh {host} true` must work without a password"
    if "ost key" in text or "HOST IDENTIFICATION" in text:
        return f"connect once by hand, `ssh {host} true`, and see to its host key"
    return f"try `ssh {host} true`"


def _lines(text: bytes) -> list[str]:
    """Return the lines that say something; ssh frames its gravest warning in @."""
    lines = [line.strip("@ \r\t") for line in text.decode(errors="replace").splitlines()]
    return [line for line in lines if line]


def _listed(names: Sequence[str]) -> bytes:
    """Return names for --null -T and --from0."""
    return b"".join(name.encode(errors="surrogateescape") + b"\0" for name in names)
