"""Driving a run to its end, for `sweep`, `resume`, `eval` and `repro` alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.config.project import Project
    from infx.domain.plan import Job, Plan
    from infx.launch.executor import Executor
    from infx.launch.sweep import Asked
    from infx.store import RunRow, Store

__all__ = ["drive", "driven", "executor_of", "made", "start", "wants_canary"]


def executor_of(plan: Plan, project: Project) -> Executor:
    """Return a new executor for the plan's cluster.

    Raises UsageError ``bad-option`` for a plan of several, ConfigError for one that is not in the
    project's cluster file (any more).
    """
    from infx.cli.planning import cluster_named
    from infx.domain.errors import UsageError
    from infx.launch.executors import executor_for

    names = list(dict.fromkeys(job.cluster for job in plan.jobs)) or ["local"]
    if len(names) > 1:
        message = f"the plan's entries are for {len(names)} clusters: {', '.join(names)}"
        hint = "choose one for all with --on, or run them apart with --entry"
        raise UsageError("bad-option", message, hint=hint)
    return executor_for(cluster_named(names[0], project, "the plan"))


def start(
    plan: Plan,
    sources: Sequence[str],
    project: Project,
    results: Path,
    as_json: bool,
    *,
    canary: bool | None = None,
    fail_fast: bool = False,
) -> int:
    """Make a run of ``plan`` and drive it; return the exit code.

    Without a word about it a canary goes first where the plan chooses one, and where jobs do not
    run one after another.
    """
    from infx.launch.runs import open_store
    from infx.launch.sweep import Asked

    executor = executor_of(plan, project)
    executor.check(plan.jobs)
    with open_store(results) as store:
        run = made(store, results, plan, " ".join(sources), project.root, executor)
        asked = Asked(canary=wants_canary(plan, executor, canary), fail_fast=fail_fast)
        return drive(store, run, executor, asked, checked=False, as_json=as_json)


def wants_canary(plan: Plan, executor: Executor, said: bool | None) -> bool:
    """Return whether a canary goes first; ``said`` is what somebody said of it."""
    return said if said is not None else executor.durable or bool(plan.canaries)


def made(
    store: Store, results: Path, plan: Plan, source: str, project: Path, executor: Executor
) -> RunRow:
    """Return a new run of ``plan``, of which people are told; ``source`` is what was asked."""
    from infx.cli.output import say
    from infx.launch.runs import create_run

    run = create_run(store, results, plan, source=source, project=project, executor=executor.name)
    say(f"run {run.run_id} on {executor.name}; its files: {run.folder}")
    if executor.durable:
        say("Ctrl-C stops its jobs; they go on when this terminal closes (infx resume)")
    return run


def drive(
    store: Store,
    run: RunRow,
    executor: Executor,
    asked: Asked,
    *,
    checked: bool = True,
    as_json: bool,
) -> int:
    """Take the run's lock, gather what is there, measure what is left, report; return the code.

    ``checked``: ask the cluster first what it would say to the jobs that are left.
    """
    with driven(store, run, executor, asked, checked=checked) as (plan, whole):
        return _finish(store, run.run_id, plan, whole=whole, as_json=as_json)


@contextmanager
def driven(
    store: Store, run: RunRow, executor: Executor, asked: Asked, *, checked: bool
) -> Iterator[tuple[Plan, bool]]:
    """Hold the run's lock, measured as far as it goes: its plan, and whether that was all of it."""
    from infx.analysis.validity import judge
    from infx.cli.progress import printer
    from infx.launch.sweep import Sweep
    from infx.store import RunLock, gather

    folder = Path(run.folder)
    with RunLock(folder):
        plan = gather(store, folder, judge).plan
        if checked:
            executor.check(_left(store, run, plan, asked))
        with printer() as observer:
            whole = Sweep(store, run, plan, executor, judge, observer, asked).run()
        yield plan, whole


def _left(store: Store, run: RunRow, plan: Plan, asked: Asked) -> list[Job]:
    from infx.launch.runs import to_measure

    statuses = {point.key: point.status for point in store.points(run.run_id)}
    limit_s, again = asked.time_limit_s, asked.retry_failed
    return [*to_measure(plan, statuses, retry_failed=again, time_limit_s=limit_s).values()]


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
