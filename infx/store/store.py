"""The store: runs, jobs, attempts and the record of each point, in one SQLite file.

Every method is one transaction, so a process killed at any moment leaves it as it was before or
after, never between. Raw evidence stays in the runs' folders; a lost store is rebuilt from them.
"""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from infx.domain.errors import InfraError, UsageError
from infx.domain.outcome import Ending
from infx.domain.plan import Plan
from infx.domain.record import Attempt, PointRecord
from infx.domain.serial import decode, encode
from infx.domain.status import Status
from infx.store.kept import best
from infx.store.layout import run_dir, unique_name
from infx.store.rows import PointRow, RunRow, RunState
from infx.store.schema import connect, transaction, translated

__all__ = ["FILE", "Rows", "Store"]

Rows = Mapping[str, tuple[Mapping[str, Any], ...]]
"""All rows of a run, by table."""

FILE = "store.sqlite"
"""The store's name in a results folder."""

_ATTEMPT = (
    "run_id, job_id, number, unique_name, scheduler_id, started_s, ended_s, node, batch, task,"
    " repeat"
)
_ENDING = "outcome, code, sentence, fingerprint, node"
_POINT = (
    "p.run_id, p.point_id, p.job_id, p.label, p.mode, p.state, p.code, p.sentence, p.attempt,"
    " j.repeat"
)
_TABLES = {
    "runs": "run_id",
    "jobs": "position",
    "attempts": "unique_name",
    "points": "job_id, position",
}
"""The tables of a run, each after those that it refers to, and the order of their rows."""
_THIS = "run_id = ? AND job_id = ? AND point_id = ?"
_RUN = (
    "run_id, created_s, plan_id, source, project, folder, executor, state, ended_s, host, canary,"
    " fail_fast"
)


class Store:
    """An open store; also a context manager that closes it."""

    def __init__(self, path: Path) -> None:
        """Open ``path``, making it where it does not exist. Errors: see `schema.connect`."""
        self.path = path
        self._db = connect(path)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the store is not used again."""
        self._db.close()

    # Runs

    def create_run(self, run: RunRow, plan: Plan) -> None:
        """Write the run, its jobs and its points as pending. A run that is there stays as it is."""
        jobs = [(run.run_id, j.job_id, n, j.name, j.repeat) for n, j in enumerate(plan.jobs)]
        points = [
            (run.run_id, point.point_id, job.job_id, n, point.label, point.mode)
            for job in plan.jobs
            for n, point in enumerate(job.points)
        ]
        with translated(self.path), transaction(self._db):
            self._db.execute(
                f"INSERT OR IGNORE INTO runs ({_RUN}) VALUES ({', '.join('?' * 12)})",
                _run_values(run),
            )
            self._db.executemany("INSERT OR IGNORE INTO jobs VALUES (?, ?, ?, ?, ?)", jobs)
            self._db.executemany(
                "INSERT OR IGNORE INTO points (run_id, point_id, job_id, position, label, mode)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                points,
            )

    def runs(self) -> list[RunRow]:
        """Return every run, the newest last."""
        rows = self._all(f"SELECT {_RUN} FROM runs ORDER BY created_s, run_id")
        return [_run_row(row, self._folder(row)) for row in rows]

    def _folder(self, row: Mapping[str, Any]) -> str:
        """Return where the run is: beside the store, which may have been moved or copied since, or
        where it was gathered from."""
        beside = run_dir(self.path.parent.absolute(), row["run_id"])
        return str(beside) if beside.is_dir() else str(row["folder"])

    def set_state(self, run_id: str, state: RunState) -> None:
        """Say how the run stands, and that this machine says so; one that is not ``running`` has
        ended now."""
        ended_s = 0.0 if state == "running" else time.time()
        self._write(
            "UPDATE runs SET state = ?, ended_s = ?, host = ? WHERE run_id = ?",
            (state, ended_s, socket.gethostname(), run_id),
        )

    # Attempts

    def next_attempts(self, run_id: str, job_ids: Sequence[str]) -> list[Attempt]:
        """Return the next attempt of each job; nothing is written (see `intend`)."""
        rows = self._all(
            "SELECT job_id, repeat, coalesce(max(number), 0) + 1 AS number FROM jobs"
            " LEFT JOIN attempts USING (run_id, job_id) WHERE run_id = ? GROUP BY job_id",
            (run_id,),
        )
        following = {row["job_id"]: row for row in rows}
        return [_attempt(run_id, **following[job_id]) for job_id in job_ids]

    def intend(self, attempts: Sequence[Attempt]) -> None:
        """Write, all at once, that these attempts are about to be launched.

        Written before the launch, so that whatever happens next they can be looked for by name.
        """
        now_s = time.time()
        with translated(self.path), transaction(self._db):
            self._db.executemany(
                "INSERT INTO attempts (unique_name, run_id, job_id, number, batch, task,"
                " intended_s) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (a.unique_name, a.run_id, a.job_id, a.number, a.batch, a.task, now_s)
                    for a in attempts
                ],
            )

    def withdraw(self, names: Sequence[str]) -> None:
        """Forget attempts that were surely not launched: the scheduler refused them for now."""
        with translated(self.path), transaction(self._db):
            self._db.executemany(
                "DELETE FROM attempts WHERE unique_name = ?", [(name,) for name in names]
            )

    def launched(self, ids: Mapping[str, str]) -> None:
        """Write the scheduler's names of attempts that it accepted, by unique name."""
        now_s = time.time()
        with translated(self.path), transaction(self._db):
            self._db.executemany(
                "UPDATE attempts SET scheduler_id = ?, started_s = ? WHERE unique_name = ?",
                [(scheduler_id, now_s, name) for name, scheduler_id in ids.items()],
            )

    def end_attempt(self, name: str, records: Iterable[PointRecord], ending: Ending) -> None:
        """Write, at once, that an attempt is over, how, and what became of its points."""
        with translated(self.path), transaction(self._db):
            self._db.execute(
                "UPDATE attempts SET ended_s = ?, outcome = ?, code = ?, sentence = ?,"
                " fingerprint = ?, node = ? WHERE unique_name = ?",
                (
                    time.time(),
                    ending.outcome,
                    ending.code,
                    ending.sentence,
                    ending.fingerprint,
                    ending.node,
                    name,
                ),
            )
            for record in records:
                self._keep(record)

    def endings(self, run_id: str) -> dict[str, list[Ending]]:
        """Return how the run's ended attempts ended, by job id, the oldest first."""
        rows = self._all(
            f"SELECT job_id, {_ENDING} FROM attempts WHERE run_id = ? AND outcome != ''"
            " ORDER BY number",
            (run_id,),
        )
        found: dict[str, list[Ending]] = {}
        for row in rows:
            found.setdefault(row.pop("job_id"), []).append(Ending(**row))
        return found

    def attempts(self, run_id: str, *, open_only: bool = False) -> list[Attempt]:
        """Return the run's attempts, or those that nobody has seen end, in order of intent."""
        only = " AND ended_s = 0" if open_only else ""
        rows = self._all(
            f"SELECT {_ATTEMPT}, intended_s FROM attempts JOIN jobs USING (run_id, job_id)"
            f" WHERE run_id = ?{only}"
            " ORDER BY intended_s, number",
            (run_id,),
        )
        return [_launched_attempt(**row) for row in rows]

    def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Write attempts that a folder tells of and the store does not."""
        rows = [asdict(attempt) for attempt in attempts]
        with translated(self.path), transaction(self._db):
            self._db.executemany(
                "INSERT OR IGNORE INTO attempts (unique_name, run_id, job_id, number, scheduler_id,"
                " batch, task, intended_s, started_s, ended_s) VALUES (:unique_name, :run_id,"
                " :job_id, :number, :scheduler_id, :batch, :task, :started_s, :started_s,"
                " :ended_s)",
                rows,
            )

    # Points

    def points(self, run_id: str) -> list[PointRow]:
        """Return the run's points in the plan's order, without opening their records."""
        rows = self._all(
            f"SELECT {_POINT} FROM points p"
            " JOIN jobs j USING (run_id, job_id) WHERE run_id = ? ORDER BY j.position, p.position",
            (run_id,),
        )
        return [_point_row(row) for row in rows]

    def save(self, record: PointRecord) -> None:
        """Keep ``record`` unless a better one of the point stands (see `kept.best`)."""
        with translated(self.path), transaction(self._db):
            self._keep(record)

    def replace(self, records: Sequence[PointRecord]) -> None:
        """Write the records as they are, all at once: what gathering found to stand."""
        with translated(self.path), transaction(self._db):
            for record in records:
                self._put(record)

    def records(self, run_id: str) -> list[PointRecord]:
        """Return every record of the run, in the plan's order: several of a point that it repeats,
        told apart by ``attempt.repeat``."""
        rows = self._all(
            "SELECT p.record FROM points p JOIN jobs j USING (run_id, job_id)"
            " WHERE run_id = ? AND p.record IS NOT NULL ORDER BY j.position, p.position",
            (run_id,),
        )
        return [decode(row["record"], PointRecord, source=str(self.path)) for row in rows]

    # Whole runs

    def rows(self, run_id: str) -> Rows:
        """Return all rows of a run, table by table, as they are at one moment; see `restore`."""
        with translated(self.path), transaction(self._db):
            return {
                table: tuple(
                    self._all(f"SELECT * FROM {table} WHERE run_id = ? ORDER BY {order}", (run_id,))
                )
                for table, order in _TABLES.items()
            }

    def restore(self, run_id: str, rows: Rows) -> None:
        """Put ``rows`` in the place of all that is known of a run; columns of a later infx are left
        out. Raises UsageError ``bad-parcel`` for rows that cannot be of one run."""
        try:
            with translated(self.path), transaction(self._db):
                self._db.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
                for table in _TABLES:
                    self._insert(table, rows.get(table, ()))
        except InfraError as error:
            if not isinstance(error.__cause__, sqlite3.IntegrityError):
                raise
            text = f"what is said of run {run_id} cannot be: {error.__cause__}"
            raise UsageError("bad-parcel", text, hint="push the run again") from error

    def _insert(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        known = {column[1] for column in self._db.execute(f"PRAGMA table_info({table})")}
        for row in rows:
            names = [name for name in row if name in known]
            places = ", ".join("?" * len(names))
            statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"
            self._db.execute(statement, [row[name] for name in names])

    # One statement or row at a time

    def _keep(self, record: PointRecord) -> None:
        found = self._db.execute(
            f"SELECT record FROM points WHERE {_THIS} AND record IS NOT NULL", _this(record)
        ).fetchone()
        standing = [decode(found[0], PointRecord, source=str(self.path))] if found else []
        self._put(best([record, *standing]))

    def _put(self, record: PointRecord) -> None:
        status = record.status
        self._db.execute(
            "UPDATE points SET state = ?, code = ?, sentence = ?, attempt = ?, record = ?"
            f" WHERE {_THIS}",
            (
                status.state,
                status.code,
                status.sentence,
                record.attempt.number,
                encode(record).decode(),
                *_this(record),
            ),
        )

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        with translated(self.path), transaction(self._db):
            self._db.execute(statement, values)

    def _all(self, query: str, values: tuple[object, ...] = ()) -> list[dict[str, Any]]:
        with translated(self.path):
            cursor = self._db.execute(query, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]


def _this(record: PointRecord) -> tuple[str, str, str]:
    return record.attempt.run_id, record.attempt.job_id, record.point.point_id


def _attempt(run_id: str, job_id: str, number: int, repeat: int) -> Attempt:
    name = unique_name(run_id, job_id, number)
    return Attempt(run_id=run_id, job_id=job_id, number=number, unique_name=name, repeat=repeat)


def _launched_attempt(intended_s: float, **row: Any) -> Attempt:
    """One of which nobody knows when it was launched was meant to be just before."""
    return Attempt(**row | {"started_s": row["started_s"] or intended_s})


def _run_values(run: RunRow) -> tuple[object, ...]:
    return tuple(getattr(run, name) for name in _RUN.split(", "))


def _run_row(row: Mapping[str, Any], folder: str) -> RunRow:
    canary = None if row["canary"] is None else bool(row["canary"])
    told = {"folder": folder, "canary": canary, "fail_fast": bool(row["fail_fast"])}
    return RunRow(**{**row, **told})


def _point_row(row: Mapping[str, Any]) -> PointRow:
    state, code, sentence = row["state"], row["code"], row["sentence"]
    rest = {name: value for name, value in row.items() if name not in ("state", "code", "sentence")}
    return PointRow(status=Status(state, code, sentence), **rest)
