"""The accounts of a lab: its database's own tables, its users, its QOS."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from infx.launch.lab import packages
from infx.launch.lab.commands import ask
from infx.launch.lab.conf import ACCOUNT, LabSpec, Place
from infx.launch.lab.daemons import database_options

__all__ = ["add_account", "add_qos", "add_user", "make_database"]

_THERE_ALREADY = r"Nothing new added\.|This cluster \S+ already exists\.\s+Not adding\."


def make_database(spec: LabSpec, place: Place) -> None:
    """Give a new database its own tables: without them it keeps no stored procedure of Slurm's.

    A fifth of what mariadb-install-db takes (4 to 5 s), which fills tables that nobody asks. In a
    process of its own that ends in order: a database killed in its first minute is unreadable.
    """
    folder = spec.folder / "database"
    made = folder / "made"
    if made.exists():
        return
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    tables = packages.system_tables().read_text()
    script = f"CREATE DATABASE mysql;\nUSE mysql;\n{tables}"
    ask(spec, "mariadbd", *database_options(spec, place), "--bootstrap", given=script)
    made.touch()


def add_account(spec: LabSpec, place: Place) -> None:
    """Register the cluster and its one account, with the user who runs the daemons."""
    _manage(spec, "add", "cluster", place.cluster)
    _manage(spec, "add", "account", ACCOUNT, f"cluster={place.cluster}")
    add_user(spec, place.user)
    if place.user == "root":  # whom Slurm gives an account of his own
        _manage(spec, "modify", "user", "root", "set", f"defaultaccount={ACCOUNT}")


def add_user(spec: LabSpec, name: str) -> None:
    """Let the user ``name`` submit to the account. One who may already stays as he is."""
    _manage(spec, "add", "user", name, f"account={ACCOUNT}")


def add_qos(spec: LabSpec, name: str, limits: Mapping[str, str]) -> None:
    """Make or change a QOS that every user may name, such as one with MaxSubmitJobsPerUser."""
    _manage(spec, "add", "qos", name)
    words = [f"{limit}={value}" for limit, value in limits.items()]
    _manage(spec, "modify", "qos", name, "set", *words)
    _manage(spec, "modify", "account", ACCOUNT, "set", f"qos+={name}")


def _manage(spec: LabSpec, *words: str) -> None:
    ask(spec, "sacctmgr", "--immediate", "--quiet", *words, fine=_THERE_ALREADY)
