"""A real Slurm on this machine: up, down, and how it stands."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from infx.domain.errors import InfraError, UsageError
from infx.launch.lab import accounting, daemons, hosts, packages, processes
from infx.launch.lab.claims import folder_claim, port_claim, usual_port
from infx.launch.lab.commands import ask
from infx.launch.lab.conf import MAIN, LabSpec, Place
from infx.launch.lab.folders import checked, cluster_name, lay_out, recorded

__all__ = ["LabState", "Tell", "add_qos", "add_user", "down", "existing", "status", "up"]

Tell = Callable[[str, float], None]
"""Is told each step that is done, and the seconds that it took."""

REGISTERED_LIMIT_S = 30.0
JOBS_LIMIT_S = 15.0
"""What the jobs of a lab that goes down have to stop their servers; then they are killed."""
KEPT_PORTS_LIMIT_S = 5.0
"""How long the ports of a lab whose daemons have died may still be held by what is ending."""


@dataclass(frozen=True, slots=True)
class LabState:
    """A lab and its daemons' pids by name (``slurmctld``, ``slurmd-node1``), 0 for a dead one."""

    spec: LabSpec
    place: Place
    pids: dict[str, int]

    @property
    def is_up(self) -> bool:
        """Whether every daemon runs."""
        return all(self.pids.values())


def status(folder: Path) -> LabState | None:
    """Return the lab in ``folder``, whether or not it runs; None when there is none."""
    found = recorded(folder.expanduser().resolve())
    return _state(*found) if found else None


def existing(folder: Path) -> LabState:
    """Return the lab in ``folder``. Raises UsageError ``no-lab`` when there is none."""
    found = status(folder)
    if found is None:
        hint = f"start one: infx cluster up --dir {folder}"
        raise UsageError("no-lab", f"there is no lab in {folder}", hint=hint)
    return found


def add_user(folder: Path, name: str) -> None:
    """Let the user ``name`` of this machine submit jobs to a lab with accounting."""
    accounting.add_user(existing(folder).spec, name)


def add_qos(folder: Path, name: str, limits: Mapping[str, str]) -> None:
    """Make or change a QOS of a lab with accounting, that every user may name."""
    accounting.add_qos(existing(folder).spec, name, limits)


def up(spec: LabSpec, tell: Tell = lambda step, seconds: None) -> LabState:
    """Start a lab, or what has died of it, and return it once every node has registered.

    A lab that runs already is left as it is. Raises UsageError ``lab-differs`` when another runs in
    the folder, ``bad-option``; InfraError ``slurm-missing``, and ``lab-failed`` after stopping what
    it had started.
    """
    spec = checked(spec)
    _check_packages(spec)
    with folder_claim(spec.folder):
        found = status(spec.folder)
        if found is None or not any(found.pids.values()):
            return _from_nothing(spec, found, tell)
        if found.spec != spec:
            message = f"a lab of {_shape(found.spec)} runs in {spec.folder}"
            hint = f"infx cluster down --dir {spec.folder}, or name another folder with --dir"
            raise UsageError("lab-differs", message, hint=hint)
        return found if found.is_up else _start(spec, found.place, tell)


def down(folder: Path, tell: Tell = lambda step, seconds: None) -> bool:
    """End a lab with all its jobs and remove its folder; return False when there is none."""
    folder = folder.expanduser().resolve()
    with folder_claim(folder):
        found = status(folder)
        if found is None:
            return False
        with _timed(tell, "jobs ended"):
            _end_jobs(found)
        with _timed(tell, "daemons stopped"):
            _end_processes(found.spec, found.place)
        shutil.rmtree(folder)
        return True


def _from_nothing(spec: LabSpec, found: LabState | None, tell: Tell) -> LabState:
    """Start a new lab, or one whose daemons have all died: its jobs and its ports are kept."""
    preferred = found.place.first_port if found else usual_port(spec.folder)
    if found and found.spec != spec:
        _end_processes(found.spec, found.place)
        shutil.rmtree(spec.folder)
    patience_s = KEPT_PORTS_LIMIT_S if found else 0.0
    with port_claim(spec.nodes + 2, preferred, patience_s) as first:
        place = Place(cluster_name(spec.folder), _host(), _user(), first)
        try:
            lay_out(spec, place)
            return _start(spec, place, tell)
        except BaseException:
            _end_processes(spec, place)  # its logs stay: the error names one
            raise


def _start(spec: LabSpec, place: Place, tell: Tell) -> LabState:
    if hosts.may_write():
        hosts.write(place.cluster, spec.node_names)
    roster = {daemon.name: daemon for daemon in daemons.roster(spec, place)}
    with _timed(tell, "munged"):
        daemons.start(spec, [roster.pop("munged")])
    if spec.accounting:
        with _timed(tell, "mariadbd"):
            accounting.make_database(spec, place)
            daemons.start(spec, [roster.pop("mariadbd")])
        with _timed(tell, "slurmdbd"):
            daemons.start(spec, [roster.pop("slurmdbd")])
            accounting.add_account(spec, place)
    with _timed(tell, "slurmctld"):
        daemons.start(spec, [roster.pop("slurmctld")])
    with _timed(tell, f"slurmd of {spec.nodes} nodes"):
        daemons.start(spec, roster.values())
        _await_nodes(spec)
    return _state(spec, place)


def _await_nodes(spec: LabSpec) -> None:
    if not processes.poll(lambda: not _absent(spec), REGISTERED_LIMIT_S):
        log = spec.folder / "log" / "slurmctld.log"
        message = f"{', '.join(_absent(spec))}: not registered: {daemons.last_line(log)}"
        raise InfraError("lab-failed", message, hint=f"read {log}")


def _absent(spec: LabSpec) -> list[str]:
    """Return the nodes that are down, unknown or do not answer (Slurm's ``*``)."""
    rows = ask(spec, "sinfo", "-h", "-N", "-p", MAIN, "-o", "%N %T").splitlines()
    states = dict(row.split() for row in rows)
    return [name for name, state in states.items() if state.startswith(_NOT_HERE) or "*" in state]


_NOT_HERE = ("down", "unknown", "unk", "inval")


def _end_jobs(lab: LabState) -> None:
    """Let jobs end in order, where a controller answers; what stays is killed afterwards."""
    if not lab.pids["slurmctld"]:
        return
    with suppress(InfraError):
        _cancel_jobs(lab)


def _cancel_jobs(lab: LabState) -> None:
    ids = sorted(set(ask(lab.spec, "squeue", "-h", "-a", "-o", "%F").split()))
    if ids:
        ask(lab.spec, "scancel", "--quiet", *ids)
        processes.poll(lambda: not ask(lab.spec, "squeue", "-h", "-a"), JOBS_LIMIT_S)


def _end_processes(spec: LabSpec, place: Place) -> None:
    processes.kill(processes.belonging(spec.conf, place.cluster))
    if hosts.may_write():
        hosts.remove(place.cluster)


def _state(spec: LabSpec, place: Place) -> LabState:
    roster = daemons.roster(spec, place)
    return LabState(spec, place, {one.name: daemons.daemon_pid(spec, one) for one in roster})


def _check_packages(spec: LabSpec) -> None:
    needed = packages.DAEMONS | (packages.ACCOUNTING if spec.accounting else {})
    missing = packages.missing(needed)
    if missing:
        message = f"a lab needs {', '.join(missing)}, which this machine lacks"
        raise InfraError("slurm-missing", message, hint=packages.apt_line(needed))


def _shape(spec: LabSpec) -> str:
    extra = " with accounting" if spec.accounting else ""
    return f"{spec.nodes} nodes with {spec.gpus} {spec.gpu_type} each{extra}"


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        message = f"user {os.getuid()} has no name, and Slurm needs one"
        raise InfraError("lab-failed", message, hint="add the user to /etc/passwd") from None


@contextmanager
def _timed(tell: Tell, step: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    tell(step, time.monotonic() - started)
