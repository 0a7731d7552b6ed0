"""The folder of a lab: where it is, whether it will do, what lies in it."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from infx.domain.errors import InfraError, UsageError
from infx.launch.lab.claims import MOST_NODES
from infx.launch.lab.conf import (
    LabSpec,
    Place,
    gres_conf_text,
    slurm_conf_text,
    slurmdbd_conf_text,
)

__all__ = ["checked", "cluster_name", "lab_folder", "lay_out", "recorded", "slurm_conf"]

RECORD = "lab.json"
ANOTHER = "name another folder with --dir or INFX_LAB"
MOST_GPUS = 64
"""More than any node has; each is a file in the lab's folder."""
SOCKET_BYTES = 107
"""Linux's limit on the path of a socket, without its closing zero."""


def lab_folder() -> Path:
    """Return where the user's lab is: INFX_LAB, else ``infx/lab`` in the state folder (XDG)."""
    if named := os.environ.get("INFX_LAB"):
        return Path(named).expanduser().resolve()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return (Path(base).expanduser() / "infx" / "lab").resolve()


def slurm_conf(folder: Path) -> Path:
    """Return the file that SLURM_CONF must name for Slurm's commands to reach the lab."""
    return LabSpec(folder).conf


def cluster_name(folder: Path) -> str:
    """Return a name that no other folder's lab has."""
    return "lab" + hashlib.sha256(str(folder).encode()).hexdigest()[:7]  # sacct shows 10 characters


def checked(spec: LabSpec) -> LabSpec:
    """Return ``spec`` with an absolute folder.

    Raises UsageError ``bad-option`` for a size or a folder that cannot be.
    """
    if not 1 <= spec.nodes <= MOST_NODES:
        raise UsageError("bad-option", f"a lab of {spec.nodes} nodes", hint=f"1 to {MOST_NODES}")
    if not 0 <= spec.gpus <= MOST_GPUS:
        raise UsageError("bad-option", f"{spec.gpus} GPUs a node", hint=f"0 to {MOST_GPUS}")
    folder = spec.folder.expanduser().resolve()
    _check_path(folder, spec.nodes)
    _check_content(folder)
    return replace(spec, folder=folder)


def recorded(folder: Path) -> tuple[LabSpec, Place] | None:
    """Return what the lab in ``folder`` is, or None when there is none.

    Raises InfraError ``lab-failed`` when its record cannot be read, UsageError ``bad-option`` where
    it is another user's, whose daemons this one cannot see or end.
    """
    path = folder / RECORD
    with _usable(folder, "read"):
        if not path.is_file():
            return None
        owner = path.stat().st_uid
    if os.geteuid() not in (0, owner):
        message = f"the lab in {folder} is of another user ({_name_of(owner)})"
        raise UsageError("bad-option", message, hint=ANOTHER)
    try:
        plain = json.loads(path.read_text())
        return LabSpec(**{**plain["spec"], "folder": folder}), Place(**plain["place"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        hint = "end its processes by hand and remove the folder"
        raise InfraError("lab-failed", f"{path} cannot be read: {error}", hint=hint) from None


def lay_out(spec: LabSpec, place: Place) -> None:
    """Make the folder with all that the daemons read; what a lab left there is kept.

    A root's lab is for every user. That of an ordinary user is closed to others: his daemons
    cannot change user, so that others' jobs would run as him.
    """
    folder = spec.folder
    with _usable(folder, "made"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755 if os.getuid() == 0 else 0o700)
    plain = {"spec": {**asdict(spec), "folder": str(folder)}, "place": asdict(place)}
    _write(folder / RECORD, json.dumps(plain, indent=2))
    for name in ("etc", "run", "log", "state", "spool", "dev"):
        _folder(folder / name, 0o755)
    for name in ("munge", "database"):
        _folder(folder / name, 0o700)
    for name in spec.node_names:
        _folder(folder / "spool" / name, 0o755)
    _key(folder / "munge" / "key")
    _devices(spec)
    _configuration(spec, place)


@contextmanager
def _usable(folder: Path, what: str) -> Iterator[None]:
    """Turn an OSError into UsageError ``bad-option``: the folder that was named cannot be one."""
    try:
        yield
    except OSError as error:
        message = f"the lab's folder {folder} cannot be {what}: {error.strerror}"
        raise UsageError("bad-option", message, hint=ANOTHER) from None


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _check_path(folder: Path, nodes: int) -> None:
    if not re.fullmatch(r"[A-Za-z0-9/._+@-]+", str(folder)):
        hint = "Slurm's files take letters, digits and ._+@- only: name another with --dir"
        raise UsageError("bad-option", f"the lab's folder {folder} cannot be", hint=hint)
    longest = f"/spool/node{nodes}/node{nodes}_67108863.4294967291"  # of a job's step
    room = SOCKET_BYTES - len(longest)
    if len(str(folder)) > room:
        found = f"the lab's folder {folder} has {len(str(folder))} characters"
        hint = f"sockets must fit below it: {room} at most, name another with --dir or INFX_LAB"
        raise UsageError("bad-option", found, hint=hint)


def _check_content(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError("bad-option", f"{folder} is a file", hint="name a folder with --dir")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RECORD).is_file():
        hint = "down removes the folder: name a new or an empty one with --dir"
        raise UsageError("bad-option", f"{folder} holds files that are no lab's", hint=hint)


def _folder(path: Path, mode: int) -> None:
    path.mkdir(exist_ok=True)
    path.chmod(mode)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.write_text(text)
    path.chmod(mode)


def _key(path: Path) -> None:
    if not path.exists():
        path.write_bytes(secrets.token_bytes(128))
        path.chmod(0o400)


def _devices(spec: LabSpec) -> None:
    for number in range(spec.gpus):
        link = spec.folder / "dev" / f"nvidia{number}"
        if not link.is_symlink():
            link.symlink_to("/dev/null")


def _configuration(spec: LabSpec, place: Place) -> None:
    etc = spec.conf.parent
    _write(spec.conf, slurm_conf_text(spec, place))
    _write(etc / "gres.conf", gres_conf_text(spec))
    if spec.accounting:
        _write(etc / "slurmdbd.conf", slurmdbd_conf_text(spec, place), 0o600)
