"""SQLite store of runs, and gathering what the jobs wrote."""

from infx.store.gather import Gathered, Judge, gather, read_attempt, read_run
from infx.store.kept import best, kept, rank
from infx.store.layout import attempt_dir, job_dir, point_files, run_dir, unique_name
from infx.store.lock import RunLock, holder
from infx.store.names import find_point, find_recorded, find_run, newest_unfinished
from infx.store.rows import REPRO, PointKey, PointRow, RunRow, RunState
from infx.store.store import FILE, Store
from infx.store.writing import writing

__all__ = [
    "FILE",
    "REPRO",
    "Gathered",
    "Judge",
    "PointKey",
    "PointRow",
    "RunLock",
    "RunRow",
    "RunState",
    "Store",
    "attempt_dir",
    "best",
    "find_point",
    "find_recorded",
    "find_run",
    "gather",
    "holder",
    "job_dir",
    "kept",
    "newest_unfinished",
    "point_files",
    "rank",
    "read_attempt",
    "read_run",
    "run_dir",
    "unique_name",
    "writing",
]
