"""The daemons of a lab: how each is started, how one knows that it answers, how it is stopped."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from infx.domain.errors import InfraError
from infx.launch.lab import packages, processes
from infx.launch.lab.conf import LabSpec, Place

__all__ = [
    "Daemon",
    "daemon_pid",
    "database_options",
    "environment",
    "last_line",
    "roster",
    "start",
    "stop",
]

READY_LIMIT_S = 30.0
STOP_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Daemon:
    """One process that stays: ``address`` is the socket or port on which it answers when ready."""

    name: str
    command: tuple[str, ...]
    pid_file: Path
    log: Path
    address: Path | int


def roster(spec: LabSpec, place: Place) -> tuple[Daemon, ...]:
    """Return the daemons in the order in which they start."""
    accounting = (_mariadbd(spec, place), _slurmdbd(spec, place)) if spec.accounting else ()
    nodes = (_slurmd(spec, place, number) for number in range(1, spec.nodes + 1))
    return (_munged(spec), *accounting, _slurmctld(spec, place), *nodes)


def environment(spec: LabSpec) -> dict[str, str]:
    """Return the environment of the daemons and of Slurm's commands: nothing of the caller's."""
    return {
        "PATH": packages.search_path(),
        "LC_ALL": "C.UTF-8",
        "SLURM_CONF": str(spec.conf),
        "MYSQL_UNIX_PORT": str(_database(spec) / "socket"),
    }


def database_options(spec: LabSpec, place: Place) -> tuple[str, ...]:
    """Return what mariadbd is told: no users, no network, no waiting for the disk.

    Only who may enter the folder reaches its socket. What was written survives the end of the
    process, though not that of the machine; a lab does not survive that either.
    """
    return (
        "--no-defaults",  # first, or it is refused
        f"--datadir={_database(spec)}",
        f"--user={place.user}",
        "--skip-grant-tables",
        "--skip-networking",
        "--innodb-buffer-pool-size=64M",
        "--innodb-lock-wait-timeout=900",  # as slurmdbd recommends
        "--innodb-flush-log-at-trx-commit=2",
        "--innodb-flush-method=nosync",
    )


def daemon_pid(spec: LabSpec, daemon: Daemon) -> int:
    """Return the daemon's pid by its pid file, 0 when that is absent, stale or a stranger's."""
    try:
        pid = int(daemon.pid_file.read_text())
    except (OSError, ValueError):
        return 0
    return pid if processes.is_daemon(pid, spec.conf) else 0


def start(spec: LabSpec, daemons: Iterable[Daemon]) -> None:
    """Start those of ``daemons`` that do not run, all at once, and wait until they answer.

    Raises InfraError ``lab-failed`` with the last line of the log of the first that does not.
    """
    absent = [daemon for daemon in daemons if not daemon_pid(spec, daemon)]
    starting = [(daemon, _launch(spec, daemon)) for daemon in absent]
    for daemon, process in starting:
        _await_detached(daemon, process)
    for daemon in absent:
        if not processes.poll(partial(_answers, daemon), READY_LIMIT_S):
            raise _failed(daemon, f"does not answer after {READY_LIMIT_S:.0f} s")


def stop(spec: LabSpec, daemons: Iterable[Daemon]) -> None:
    """Stop ``daemons`` together, by force after 10 s."""
    pids = (daemon_pid(spec, daemon) for daemon in daemons)
    processes.stop([pid for pid in pids if pid], STOP_LIMIT_S)


def last_line(log: Path) -> str:
    """Return the last line of a log that says something, or ``""``."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _launch(spec: LabSpec, daemon: Daemon) -> subprocess.Popen[bytes]:
    daemon.pid_file.unlink(missing_ok=True)
    with daemon.log.open("a") as log:
        return subprocess.Popen(
            daemon.command,
            env=environment(spec),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=spec.folder,
            start_new_session=True,
        )


def _await_detached(daemon: Daemon, process: subprocess.Popen[bytes]) -> None:
    """Wait for the process that goes once the daemon has left it."""
    try:
        code = process.wait(READY_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise _failed(daemon, f"does not detach after {READY_LIMIT_S:.0f} s") from None
    if code:
        raise _failed(daemon, f"ended with exit code {code}")


def _failed(daemon: Daemon, how: str) -> InfraError:
    said = last_line(daemon.log) or "its log is empty"
    return InfraError("lab-failed", f"{daemon.name} {how}: {said}", hint=f"read {daemon.log}")


def _answers(daemon: Daemon) -> bool:
    family, address = (
        (socket.AF_INET, ("127.0.0.1", daemon.address))
        if isinstance(daemon.address, int)
        else (socket.AF_UNIX, str(daemon.address))
    )
    with socket.socket(family) as tried:
        return daemon.pid_file.exists() and tried.connect_ex(address) == 0


def _munged(spec: LabSpec) -> Daemon:
    own, log = spec.folder / "munge", spec.folder / "log" / "munged.log"
    pid_file = spec.folder / "run" / "munged.pid"
    command = (
        packages.find("munged"),
        "--force",  # a socket below a folder of an ordinary user is fine for a lab
        f"--key-file={own}/key",
        f"--seed-file={own}/seed",
        f"--socket={spec.munge_socket}",
        f"--pid-file={pid_file}",
        f"--log-file={log}",
        "--num-threads=2",
    )
    return Daemon("munged", command, pid_file, log, spec.munge_socket)


def _database(spec: LabSpec) -> Path:
    return spec.folder / "database"


def _mariadbd(spec: LabSpec, place: Place) -> Daemon:
    own, log = _database(spec), spec.folder / "log" / "mariadbd.log"
    detach = ("setsid", "--fork")  # it does not by itself
    here = (f"--socket={own}/socket", f"--pid-file={own}/pid")
    command = (*detach, packages.find("mariadbd"), *database_options(spec, place), *here)
    return Daemon("mariadbd", command, own / "pid", log, own / "socket")


def _slurmdbd(spec: LabSpec, place: Place) -> Daemon:
    return _of_slurm(spec, "slurmdbd", ("slurmdbd",), place.accounting_port)


def _slurmctld(spec: LabSpec, place: Place) -> Daemon:
    return _of_slurm(spec, "slurmctld", ("slurmctld", "-f", str(spec.conf)), place.controller_port)


def _slurmd(spec: LabSpec, place: Place, number: int) -> Daemon:
    name = spec.node_names[number - 1]
    command = ("slurmd", "-N", name, "-f", str(spec.conf))
    return _of_slurm(spec, f"slurmd-{name}", command, place.node_port(number))


def _of_slurm(spec: LabSpec, name: str, command: tuple[str, ...], port: int) -> Daemon:
    program = packages.find(command[0])
    pid_file, log = spec.folder / "run" / f"{name}.pid", spec.folder / "log" / f"{name}.log"
    return Daemon(name, (program, *command[1:]), pid_file, log, port)
