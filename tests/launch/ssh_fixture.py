"""A real sshd on a loopback port: the fixture ``sshd``, taken up by the folder's conftest.

As root the server lets in a user made for the tests, so that nothing works because it is root;
as anyone else it lets in that one.
"""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
TOOLS = ("ssh", "ssh-keygen", "rsync", "tar")

SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
PrintMotd no
"""

CLIENT = """\
Host {host}
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  IdentityAgent none
  StrictHostKeyChecking yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
"""


@dataclass
class Sshd:
    """``SshTransport(sshd.host, options=sshd.options)`` logs in as ``user``.

    ``home`` is a folder that the user can write, and the test too.
    """

    folder: Path
    user: str
    home: Path
    port: int
    host: str = "infx-login"
    server: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def options(self) -> tuple[str, ...]:
        return ("-F", str(self.folder / "config"))

    def start(self) -> None:
        with (self.folder / "sshd.log").open("ab") as log:
            command = [str(SSHD), "-D", "-e", "-f", str(self.folder / "sshd_config")]
            self.server = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.02)
        pytest.fail(f"sshd did not start: {(self.folder / 'sshd.log').read_text()}")

    def processes(self) -> list[psutil.Process]:
        """The server, then what serves its sessions, then what runs in them."""
        if self.server is None or self.server.poll() is not None:
            return []
        with suppress(psutil.NoSuchProcess):
            listener = psutil.Process(self.server.pid)
            return [listener, *listener.children(recursive=True)]
        return []

    def stop(self) -> None:
        """End the server and every session: each connection breaks, new ones are refused."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if self.server:
            self.server.wait()

    def pause(self) -> None:
        """Nothing answers any more, and nothing is refused."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                if process.name() == "sshd":
                    process.send_signal(number)


@pytest.fixture(scope="session")
def ssh_user() -> Iterator[tuple[str, Path]]:
    """A user to log in as, and a folder of theirs."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)] + ([] if SSHD else ["sshd"])
    if missing:
        sentence = f"not on this machine: {', '.join(missing)}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(sentence)
    base = Path(tempfile.mkdtemp(prefix="infx-ssh-user-", dir="/tmp"))
    base.chmod(0o755)
    home = base / "home"
    try:
        if os.getuid():
            home.mkdir()
            yield getpass.getuser(), home
        else:
            user = f"infx-t{os.getpid()}"
            _add_user(user, home)
            try:
                yield user, home
            finally:
                _remove_user(user)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def sshd(ssh_user: tuple[str, Path]) -> Iterator[Sshd]:
    """A running server of the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="infx-sshd-", dir="/tmp"))
    folder.chmod(0o755)
    made = Sshd(folder, *ssh_user, port=_free_port())
    try:
        _configure(made)
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _configure(made: Sshd) -> None:
    for name in ("key", "host_key"):
        make_key(made.folder / name)
    fields = {"folder": made.folder, "port": made.port, "user": made.user, "host": made.host}
    host_key = (made.folder / "host_key.pub").read_text()
    (made.folder / "authorized_keys").write_text((made.folder / "key.pub").read_text())
    (made.folder / "known_hosts").write_text(f"[127.0.0.1]:{made.port} {host_key}")
    (made.folder / "sshd_config").write_text(SERVER.format(**fields))
    (made.folder / "config").write_text(CLIENT.format(**fields))
    if os.getuid() == 0:  # where its unprivileged half is shut in
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)


def make_key(path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _add_user(user: str, home: Path) -> None:
    add = ["useradd", "--create-home", "--home-dir", str(home), "--shell", "/bin/bash", user]
    for _ in range(20):  # another test's useradd may hold the lock
        if subprocess.run(add, capture_output=True).returncode == 0:
            break
        time.sleep(0.2)
    # Without PAM, a user whose password is locked ("!") may not log in by key either.
    subprocess.run(["usermod", "-p", "*", user], check=True)


def _remove_user(user: str) -> None:
    number = pwd.getpwnam(user).pw_uid
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            if process.uids().real == number:
                process.kill()
    subprocess.run(["userdel", "--force", user], check=False, capture_output=True)
