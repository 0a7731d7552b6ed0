"""The tables of the store and how an older store becomes a current one."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from infx.domain.errors import InfraError, UsageError

__all__ = ["MIGRATIONS", "VERSION", "connect", "transaction", "translated"]

BUSY_WAIT_S = 10.0

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE runs (
            run_id TEXT PRIMARY KEY,
            created_s REAL NOT NULL,
            plan_id TEXT NOT NULL,
            source TEXT NOT NULL,
            project TEXT NOT NULL,
            folder TEXT NOT NULL,
            executor TEXT NOT NULL,
            state TEXT NOT NULL,
            ended_s REAL NOT NULL DEFAULT 0
        ) STRICT
        """,
        """
        CREATE TABLE jobs (
            run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
            job_id TEXT NOT NULL,
            position INTEGER NOT NULL,
            name TEXT NOT NULL,
            PRIMARY KEY (run_id, job_id)
        ) STRICT
        """,
        """
        CREATE TABLE attempts (
            unique_name TEXT PRIMARY KEY,
            run_id TEXT NOT NULL,
            job_id TEXT NOT NULL,
            number INTEGER NOT NULL,
            scheduler_id TEXT NOT NULL DEFAULT '',
            intended_s REAL NOT NULL,
            started_s REAL NOT NULL DEFAULT 0,
            ended_s REAL NOT NULL DEFAULT 0,
            FOREIGN KEY (run_id, job_id) REFERENCES jobs ON DELETE CASCADE,
            UNIQUE (run_id, job_id, number)
        ) STRICT
        """,
        """
        CREATE TABLE points (
            run_id TEXT NOT NULL,
            point_id TEXT NOT NULL,
            job_id TEXT NOT NULL,
            position INTEGER NOT NULL,
            label TEXT NOT NULL,
            mode TEXT NOT NULL,
            state TEXT NOT NULL DEFAULT 'pending',
            code TEXT NOT NULL DEFAULT '',
            sentence TEXT NOT NULL DEFAULT '',
            attempt INTEGER NOT NULL DEFAULT 0,
            record TEXT,
            PRIMARY KEY (run_id, point_id),
            FOREIGN KEY (run_id, job_id) REFERENCES jobs ON DELETE CASCADE
        ) STRICT
        """,
        "CREATE INDEX points_by_content ON points (point_id, state)",
        "CREATE INDEX attempts_open ON attempts (run_id, ended_s)",
    ),
    (
        "ALTER TABLE attempts ADD COLUMN batch TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE attempts ADD COLUMN task INTEGER",
        "ALTER TABLE attempts ADD COLUMN node TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE attempts ADD COLUMN outcome TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE attempts ADD COLUMN code TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE attempts ADD COLUMN sentence TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE attempts ADD COLUMN fingerprint TEXT NOT NULL DEFAULT ''",
    ),
    (  # a run may measure a point several times, each time in a job of its own
        "ALTER TABLE jobs ADD COLUMN repeat INTEGER NOT NULL DEFAULT 1",
        "DROP INDEX points_by_content",
        "ALTER TABLE points RENAME TO points_once",
        """
        CREATE TABLE points (
            run_id TEXT NOT NULL,
            point_id TEXT NOT NULL,
            job_id TEXT NOT NULL,
            position INTEGER NOT NULL,
            label TEXT NOT NULL,
            mode TEXT NOT NULL,
            state TEXT NOT NULL DEFAULT 'pending',
            code TEXT NOT NULL DEFAULT '',
            sentence TEXT NOT NULL DEFAULT '',
            attempt INTEGER NOT NULL DEFAULT 0,
            record TEXT,
            PRIMARY KEY (run_id, job_id, point_id),
            FOREIGN KEY (run_id, job_id) REFERENCES jobs ON DELETE CASCADE
        ) STRICT
        """,
        """
        INSERT INTO points SELECT run_id, point_id, job_id, position, label, mode, state, code,
            sentence, attempt, record FROM points_once
        """,
        "DROP TABLE points_once",
        "CREATE INDEX points_by_content ON points (point_id, state)",
    ),
    (  # whoever drives a run after its sweep drives it as that was asked to, and knows from where
        "ALTER TABLE runs ADD COLUMN host TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN canary INTEGER",
        "ALTER TABLE runs ADD COLUMN fail_fast INTEGER NOT NULL DEFAULT 0",
    ),
)
"""``MIGRATIONS[n]`` takes a store of version n to n + 1. Published ones never change."""

VERSION = len(MIGRATIONS)


def connect(path: Path) -> sqlite3.Connection:
    """Return an open store of the current version, made or migrated where needed.

    Raises UsageError ``store-newer`` for a store of a later infx, InfraError ``store-corrupt``,
    ``store-busy`` or ``results-unwritable``.
    """
    with translated(path):
        connection = sqlite3.connect(path, timeout=BUSY_WAIT_S, isolation_level=None)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing: what runs inside is committed once, or rolled back on any error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(
            sqlite3.OperationalError
        ):  # SQLite may have rolled back by itself (full disk)
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about ``path`` into ours."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _translation(error, path) from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    found = _version(connection)
    if found > VERSION:
        raise UsageError(
            "store-newer",
            f"{path} has schema version {found}; this infx knows up to {VERSION}",
            hint="update infx, or name another folder with --results",
        )
    _write_ahead(connection)
    # FULL, not NORMAL: an intent must be on the disk before a scheduler hears of the job, even if
    # the machine loses power right after. A job writes fewer than ten times, so the cost is nil.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if found < VERSION:
        _migrate(connection)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite does not wait for another process that does the same: it says at once
    that the file is locked."""
    deadline = time.monotonic() + BUSY_WAIT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _migrate(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        # Read again under the write lock: another process may have migrated meanwhile.
        for statements in MIGRATIONS[_version(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _translation(error: sqlite3.DatabaseError, path: Path) -> InfraError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return InfraError("store-busy", f"{path} is locked by another process: {text}")
    if "full" in text:
        return InfraError(
            "disk-full", f"no space is left for {path}", hint="free space, then infx resume"
        )
    if "readonly" in text or "unable to open" in text:
        return InfraError("results-unwritable", f"{path} cannot be written: {text}")
    return InfraError(
        "store-corrupt",
        f"{path} cannot be read: {text}",
        hint="move it away and rebuild it with infx gather RUN-FOLDER",
    )
