"""Runs without a terminal: let go of as they begin, and waited for by whoever comes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.config.project import Project
    from infx.domain.errors import InfxError
    from infx.domain.plan import Plan
    from infx.store import RunRow, RunState, Store

__all__ = ["LOG", "start", "wait"]

LOG = "driver.log"
"""In a run's folder: what a driver of its own prints."""

PROGRAM = (sys.executable, "-P", "-m", "infx")

RUNNERS_OWN = ("RUNNER_TRACKING_ID",)
"""Whatever has this variable of GitHub's runner is killed by it when its job ends."""


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
    """Make a run of ``plan`` that goes on without this process; return the exit code.

    A scheduler is given what may go now: what waits for it goes when somebody drives the run. Jobs
    of this machine get a driver of their own. ``canary`` as in `driving.begun`.
    """
    from infx.cli.driving import begun, driven, finish, tell_going

    how = begun(plan, sources, project, results, canary=canary, fail_fast=fail_fast)
    with how as (store, run, executor, asked):
        at_once = replace(asked, until_s=0)
        if executor.durable:
            with driven(store, run, executor, at_once, checked=False) as (plan, _):
                if _state(store, run) == "cancelled":
                    return finish(store, run.run_id, plan, as_json=as_json)
        else:
            driver = _driver(store, run)
            if _unfinished(store, run) and driver.poll() is not None:
                raise _died(run, driver.returncode)
        return tell_going(store, run.run_id, at_once, as_json=as_json)


def wait(store: Store, run: RunRow, until_s: float, *, as_json: bool) -> int:
    """Wait for the end of a run, at most until ``until_s`` (seconds since the epoch), and report;
    return the exit code of `infx sweep`, or 6 where the run goes on.

    Another process that drives it is followed. Where nobody does, this one drives a scheduler's
    jobs and lets them go in the end; jobs of this machine get a driver that stays. A run that was
    cancelled is not begun again. Raises InfraError ``driver-died``.
    """
    from infx.cli.driving import finish
    from infx.store import holder, read_run

    plan = read_run(Path(run.folder))[1]
    while True:
        code = None
        if holder(Path(run.folder)):
            code = _followed(store, run, plan, until_s, as_json)
        elif _unfinished(store, run):
            code = _taken_over(store, run, plan, until_s, as_json)
        else:
            return finish(store, run.run_id, plan, as_json=as_json)
        if code is not None:
            return code


def _taken_over(store: Store, run: RunRow, plan: Plan, until_s: float, as_json: bool) -> int | None:
    """See to it that the run is driven; return None when it has a driver no more."""
    from infx.cli.driving import asked_again, drive, executor_of
    from infx.cli.options import project_of
    from infx.domain.errors import UsageError

    executor = executor_of(plan, project_of(run))
    if not executor.durable:
        return _with_driver(store, run, plan, until_s, as_json)
    asked = replace(asked_again(run, plan, executor), until_s=until_s, waits=True)
    try:
        return drive(store, run, executor, asked, as_json=as_json)
    except UsageError as error:
        if error.code != "run-active":  # somebody was quicker, and is followed
            raise
        return None


def _with_driver(
    store: Store, run: RunRow, plan: Plan, until_s: float, as_json: bool
) -> int | None:
    driver = _driver(store, run)
    code = _followed(store, run, plan, until_s, as_json)
    if code is None and _unfinished(store, run):
        raise _died(run, driver.wait())
    return code


def _followed(store: Store, run: RunRow, plan: Plan, until_s: float, as_json: bool) -> int | None:
    """Watch the run until nobody drives it; a signal ends the watching alone."""
    from infx.cli.driving import tell_going
    from infx.cli.following import looks
    from infx.cli.output import say
    from infx.cli.progress import printer
    from infx.launch.stop import SIGNALS, Stop
    from infx.launch.sweep import Asked
    from infx.store import holder

    folder = Path(run.folder)
    if not (by := holder(folder)):
        return None
    say(f"run {run.run_id} is driven by {by}; Ctrl-C ends the wait only")
    with Stop(folder, letting_go=SIGNALS, until_s=until_s) as stop, printer() as observer:
        for _, driven in looks(store, run, plan, observer):
            if not driven:
                return None
            if stop.detached:
                break
    return tell_going(store, run.run_id, Asked(waits=True), as_json=as_json)


def _unfinished(store: Store, run: RunRow) -> bool:
    return _state(store, run) == "running"


def _state(store: Store, run: RunRow) -> RunState:
    from infx.store import find_run

    return find_run(store, run.run_id).state


def _driver(store: Store, run: RunRow) -> subprocess.Popen[bytes]:
    """Start a process that drives the run to its end, whatever becomes of this one and of its
    terminal; return it when it holds the run's lock, or has ended.

    A runner that is gone took its jobs with it; whether another machine is gone nobody can see.
    """
    from infx.cli.output import say
    from infx.store import holder, writing

    if run.host not in ("", socket.gethostname()):
        say(f"run {run.run_id} was driven on {run.host}: what had not ended there begins anew here")
    folder = Path(run.folder)
    words = ["resume", run.run_id, "--results", str(store.path.parent.absolute())]
    with writing(folder), (folder / LOG).open("ab") as log:
        driver = subprocess.Popen(
            [*PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={name: text for name, text in os.environ.items() if name not in RUNNERS_OWN},
        )
    say(f"pid {driver.pid} drives run {run.run_id} and prints to {folder / LOG}")
    while not holder(folder) and driver.poll() is None:
        time.sleep(0.05)
    return driver


def _died(run: RunRow, code: int) -> InfxError:
    """Return the error of a driver that ended before its run; it says what the driver did last,
    and ends this process with the driver's exit code."""
    from infx.domain.errors import InfraError

    log = Path(run.folder) / LOG
    last = log.read_text(errors="replace").strip().splitlines()[-3:]
    error = InfraError(
        "driver-died",
        f"the driver of run {run.run_id} ended before it (exit code {code}): {' / '.join(last)}",
        hint=f"all it said is in {log}; infx ci wait {run.run_id} starts another",
    )
    error.exit_code = code if code > 0 else error.exit_code
    return error
