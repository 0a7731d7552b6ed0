"""Driving a run to its end, for `sweep`, `resume` and `eval` alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.config.project import Project
    from infx.domain.plan import Plan
    from infx.launch.executor import Executor
    from infx.store import RunRow, Store

__all__ = ["drive", "executor_named", "executor_of", "start"]


def executor_of(plan: Plan, project: Project) -> Executor:
    """Return a new executor for the plan's clusters. Raises UsageError ``bad-option``."""
    from infx.cli.planning import cluster_named

    clusters = dict.fromkeys(job.cluster for job in plan.jobs)
    executors = {cluster_named(name, project).executor for name in clusters}
    return executor_named("local" if not executors else " and ".join(sorted(executors)))


def executor_named(name: str) -> Executor:
    """Return a new executor. Raises UsageError ``bad-option`` for one that infx lacks."""
    from infx.domain.errors import UsageError
    from infx.launch.local import LocalExecutor

    if name != LocalExecutor.name:
        hint = "choose a cluster with `executor: local` (--on local)"
        raise UsageError("bad-option", f"this infx has no executor `{name}`", hint=hint)
    return LocalExecutor()


def start(
    plan: Plan, sources: Sequence[str], project: Project, results: Path, as_json: bool
) -> int:
    """Make a run of ``plan`` and drive it; return the exit code."""
    from infx.cli.output import say
    from infx.launch.runs import create_run, open_store

    executor = executor_of(plan, project)
    with open_store(results) as store:
        source = " ".join(sources)
        run = create_run(
            store, results, plan, source=source, project=project.root, executor=executor.name
        )
        say(f"run {run.run_id}; its files: {run.folder}")
        return drive(store, run, executor, as_json=as_json)


def drive(
    store: Store, run: RunRow, executor: Executor, *, retry_failed: bool = False, as_json: bool
) -> int:
    """Take the run's lock, gather what is there, measure what is left, report; return the code."""
    from infx.analysis.validity import judge
    from infx.cli.progress import printer
    from infx.launch.sweep import Sweep
    from infx.store import RunLock, gather

    folder = Path(run.folder)
    with RunLock(folder):
        plan = gather(store, folder, judge).plan
        with printer() as observer:
            sweep = Sweep(store, run, plan, executor, judge, observer)
            whole = sweep.run(retry_failed=retry_failed)
        return _finish(store, run.run_id, plan, whole=whole, as_json=as_json)


def _finish(store: Store, run_id: str, plan: Plan, *, whole: bool, as_json: bool) -> int:
    from infx.cli.outcome import counted, exit_code
    from infx.cli.output import emit, say, talking
    from infx.cli.reporting import write_reports
    from infx.store import find_run, writing

    run = find_run(store, run_id)
    records, rows = store.records(run_id), store.points(run_id)
    code = exit_code(rows, records, whole=whole)
    verdict = ""
    paths: list[Path] = []
    if whole:  # a stopped run ends at once; `infx report` writes what there is
        with writing(Path(run.folder)):
            model, paths = write_reports(run, plan, records, Path(run.folder))
        verdict = model.verdict
    with talking("stdout"):
        if as_json:
            files = [str(path) for path in paths]
            told = {"run": run, "exit_code": code, "points": rows, "verdict": verdict}
            emit("sweep", told | {"files": files}, ok=code == 0)
        else:
            print("\n".join(filter(None, [counted(rows), verdict, *map(str, paths)])))
    if not whole:
        say(f"stopped; infx resume {run_id} measures the rest")
    return code
