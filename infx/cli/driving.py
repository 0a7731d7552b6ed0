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

__all__ = [
    "asked_again",
    "begun",
    "drive",
    "driven",
    "executor_of",
    "finish",
    "made",
    "start",
    "tell_going",
]


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
    """Make a run of ``plan`` and drive it; return the exit code. ``canary`` as in `begun`."""
    with begun(plan, sources, project, results, canary=canary, fail_fast=fail_fast) as parts:
        return drive(*parts, checked=False, as_json=as_json)


@contextmanager
def begun(
    plan: Plan,
    sources: Sequence[str],
    project: Project,
    results: Path,
    *,
    canary: bool | None,
    fail_fast: bool,
) -> Iterator[tuple[Store, RunRow, Executor, Asked]]:
    """Make a run of ``plan`` that nobody drives yet: its open store, and how it is to be driven.

    Without a word about it a canary goes first where the plan chooses one, and where jobs do not
    run one after another, unless labels made the plan and chose none.
    """
    from infx.cli.reusing import check_reused
    from infx.launch.runs import open_store
    from infx.launch.sweep import Asked

    executor = executor_of(plan, project)
    executor.check(plan.jobs)
    asked = Asked(canary=_wants_canary(plan, executor, canary), fail_fast=fail_fast)
    with open_store(results) as store:
        check_reused(store, plan)
        run = made(store, results, plan, " ".join(sources), project.root, executor, asked)
        yield store, run, executor, asked


def asked_again(
    run: RunRow,
    plan: Plan,
    executor: Executor,
    canary: bool | None = None,
    fail_fast: bool | None = None,
) -> Asked:
    """Return how a run is driven once more: as it was asked when it was made, but for what is said
    now."""
    from infx.launch.sweep import Asked

    said = run.canary if canary is None else canary
    return Asked(
        canary=_wants_canary(plan, executor, said),
        fail_fast=run.fail_fast if fail_fast is None else fail_fast,
    )


def _wants_canary(plan: Plan, executor: Executor, said: bool | None) -> bool:
    if said is not None:
        return said
    by_labels = plan.origin is not None  # which ask for canaries by choosing them
    return bool(plan.canaries) or (executor.durable and not by_labels)


def made(
    store: Store,
    results: Path,
    plan: Plan,
    source: str,
    project: Path,
    executor: Executor,
    asked: Asked,
) -> RunRow:
    """Return a new run of ``plan``, of which people are told; ``source`` is what was asked."""
    from infx.cli.output import say
    from infx.launch.runs import create_run

    run = create_run(
        store,
        results,
        plan,
        source=source,
        project=project,
        executor=executor.name,
        canary=asked.canary,
        fail_fast=asked.fail_fast,
    )
    say(f"run {run.run_id} on {executor.name}; its files: {run.folder}")
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
    from infx.store import find_run

    with driven(store, run, executor, asked, checked=checked) as (plan, _):
        if find_run(store, run.run_id).state == "running":
            return tell_going(store, run.run_id, asked, as_json=as_json)
        return finish(store, run.run_id, plan, as_json=as_json)


@contextmanager
def driven(
    store: Store, run: RunRow, executor: Executor, asked: Asked, *, checked: bool
) -> Iterator[tuple[Plan, bool]]:
    """Hold the run's lock, measured as far as it goes: its plan, and whether that was all of it."""
    from infx.analysis.validity import judge
    from infx.cli.output import say
    from infx.cli.progress import printer
    from infx.launch.sweep import Sweep
    from infx.store import RunLock, gather

    folder = Path(run.folder)
    with RunLock(folder):
        plan = gather(store, folder, judge).plan
        if checked:
            executor.check(_left(store, run, plan, asked))
        if told := _what_stops(executor, asked):
            say(told)
        with printer() as observer:
            whole = Sweep(store, run, plan, executor, judge, observer, asked).run()
        yield plan, whole


def _what_stops(executor: Executor, asked: Asked) -> str:
    """Return what ends a drive that scheduler's jobs outlive; "" where it ends at once, or they
    with it."""
    if not executor.durable or asked.until_s == 0:
        return ""
    if asked.waits:
        return "Ctrl-C ends the wait only; infx cancel stops the jobs"
    return "Ctrl-C stops its jobs; they go on when this terminal closes (infx resume)"


def _left(store: Store, run: RunRow, plan: Plan, asked: Asked) -> list[Job]:
    from infx.launch.runs import to_measure

    statuses = {point.key: point.status for point in store.points(run.run_id)}
    limit_s, again = asked.time_limit_s, asked.retry_failed
    return [*to_measure(plan, statuses, retry_failed=again, time_limit_s=limit_s).values()]


def tell_going(store: Store, run_id: str, asked: Asked, *, as_json: bool) -> int:
    """Say that a run goes on without this process; return the exit code: 0 where it was to be let
    go at once, 6 where its end was waited for, 130 where this process was to drive it to its end.
    """
    from infx.cli.outcome import INTERRUPTED, NOT_ENDED, counted
    from infx.cli.output import emit, say, talking
    from infx.store import find_run

    at_once = asked.until_s == 0
    code = NOT_ENDED if asked.waits else 0 if at_once else INTERRUPTED
    rows = store.points(run_id)
    with talking("stdout"):
        if as_json:
            told = {"run": find_run(store, run_id), "exit_code": code, "points": rows}
            emit("sweep", told | {"verdict": "", "files": []}, ok=code == 0)
        else:
            print(run_id if at_once else counted(rows))
    if asked.waits:
        say(f"run {run_id} has not ended yet; infx ci wait {run_id} waits on")
    elif at_once:
        say(f"infx ci wait {run_id} waits for its end; infx cancel {run_id} stops it")
    return code


def finish(store: Store, run_id: str, plan: Plan, *, as_json: bool) -> int:
    """Report on a run that ended or was cancelled; return the exit code."""
    from infx.cli.outcome import counted, exit_code
    from infx.cli.output import emit, say, talking
    from infx.cli.reporting import stored_run, write_reports
    from infx.cli.reusing import reused_data, reused_statuses
    from infx.store import find_run, writing

    run = find_run(store, run_id)
    whole = run.state == "ended"
    rows, data = store.points(run_id), stored_run(store, run)
    reused = reused_statuses(plan, data.records)
    code = exit_code(rows, data.records, whole=whole, reused=reused)
    verdict = ""
    paths: list[Path] = []
    if whole:  # a stopped run ends at once; `infx report` writes what there is
        with writing(Path(run.folder)):
            model, paths = write_reports(data)
        verdict = model.verdict
    with talking("stdout"):
        if as_json:
            files = [str(path) for path in paths]
            told = {"run": run, "exit_code": code, "points": rows, "verdict": verdict}
            more = {"reused": reused_data(plan, data.records), "files": files}
            emit("sweep", told | more, ok=code == 0)
        else:
            print("\n".join(filter(None, [counted(rows, reused), verdict, *map(str, paths)])))
    if not whole:
        say(f"stopped; infx resume {run_id} measures the rest")
    return code
