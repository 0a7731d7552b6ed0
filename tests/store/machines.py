"""Machines that share runs: each a results folder with its store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import TracebackType

from infx.domain.outcome import Ending
from infx.domain.plan import Job, Plan
from infx.domain.record import PointRecord
from infx.domain.serial import encode, encode_pretty
from infx.domain.status import OK, Status
from infx.plan.saved import write_plan
from infx.store import PointRow, RunRow, Store, attempt_dir
from infx.store.exchange import Guard, Incoming, Sent, pull, push
from infx.store.exchange.places import Place
from tests.store.tiny_plans import job, judge, plan, record, run_row, write_point

RUN = "20260102-030405-abcd"
MEASURED = Status("measured")
HEAVY = 400 * 1024


class Machine:
    """A results folder, the runs of which are made by hand."""

    def __init__(self, root: Path, project: Path | None = None) -> None:
        self.results = root / "results"
        self.results.mkdir(parents=True)
        self.project = project or root
        self.store = Store(self.results / "store.sqlite")

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.store.close()

    def begins(self, whole: Plan | None = None, run_id: str = RUN, executor: str = "local") -> Plan:
        """Make a run of two jobs, or of ``whole``."""
        whole = whole or plan(job(0), job(1))
        row = replace(run_row(self.results, run_id), project=str(self.project), executor=executor)
        folder = Path(row.folder)
        (folder / "jobs").mkdir(parents=True)
        (folder / "run.json").write_text(encode_pretty(row))
        write_plan(whole, folder / "plan.json")
        self.store.create_run(row, whole)
        return whole

    def launches(self, of: Job, run_id: str = RUN, *, scheduler_id: str = "77") -> str:
        """Open the next attempt of a job; return its name."""
        [attempt] = self.store.next_attempts(run_id, [of.job_id])
        attempt = replace(attempt, batch="b1", task=3)
        self.store.intend([attempt])
        self.store.launched({attempt.unique_name: scheduler_id})
        path = attempt_dir(self.folder(run_id), of, attempt.number)
        path.mkdir(parents=True)
        (path / "job.json").write_text('{"unique_name": "n", "batch": "b1", "task": 3}')
        (path / "server.log").write_text(f"log of {attempt.unique_name}\n")
        return attempt.unique_name

    def ends(self, of: Job, status: Status = OK, run_id: str = RUN, heavy: int = 0) -> None:
        """End the newest attempt of a job, with a record of each of its points."""
        number = max(a.number for a in self.store.attempts(run_id) if a.job_id == of.job_id)
        records = [
            self._writes(of, run_id, number, status, n, heavy) for n in range(len(of.points))
        ]
        name = records[0].attempt.unique_name
        self.store.end_attempt(name, records, Ending(outcome="good", node="n1"))

    def _writes(
        self, of: Job, run_id: str, number: int, status: Status, which: int, heavy: int
    ) -> PointRecord:
        made = record(of.points[which], run_id, of.job_id, number, status)
        if status == OK:
            path = write_point(self.folder(run_id), of, replace(made, status=MEASURED))
            export = path.parent / "aiperf" / "profile_export.jsonl"
            export.parent.mkdir()
            export.write_bytes(bytes(range(256)) * (heavy // 256))
            shown = export.parent.relative_to(self.folder(run_id)).as_posix()
            made = replace(made, artifacts={"aiperf": shown})
            path.write_bytes(encode(replace(made, status=MEASURED)))
        return made

    def measures(self, of: Job, status: Status = OK, run_id: str = RUN, heavy: int = 0) -> None:
        """Launch a job and end it. A failed one leaves no file: only the store knows of it."""
        self.launches(of, run_id)
        self.ends(of, status, run_id, heavy)

    def whole(self, run_id: str = RUN) -> None:
        """Make a run, measured to its end."""
        for one in self.begins(run_id=run_id).jobs:
            self.measures(one, run_id=run_id)
        self.store.set_state(run_id, "ended")

    def row(self, run_id: str = RUN) -> RunRow:
        return next(run for run in self.store.runs() if run.run_id == run_id)

    def folder(self, run_id: str = RUN) -> Path:
        return Path(self.row(run_id).folder)

    def points(self, run_id: str = RUN) -> list[PointRow]:
        return self.store.points(run_id)

    def files(self, run_id: str = RUN) -> dict[str, bytes]:
        """Everything in a run's folder but what is about this machine."""
        folder = self.folder(run_id)
        found = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
        local = ("run.json", "exchange.json", "driver.lock")
        return {name: path.read_bytes() for name, path in found.items() if name not in local}

    def pushes(
        self,
        place: Place,
        *run_ids: str,
        light: bool = False,
        guard: Guard | None = None,
        plan: Plan | None = None,
    ) -> Sent:
        rows = [self.row(run_id) for run_id in run_ids or (RUN,)]
        return push(self.store, place, rows, judge, light=light, guard=guard, plan=plan)

    def pulls(self, place: Place, *names: str) -> Incoming:
        """Raises the error of the first run that could not be brought."""
        found = pull(self.store, place, names, self.project)
        for error in found.refused:
            raise error
        return found


def what(found: Sent | Incoming) -> list[str]:
    """What became of each run."""
    told = found.pushed if isinstance(found, Sent) else found.pulled
    return [one.what for one in told]
