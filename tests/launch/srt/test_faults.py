"""Sweeps through a stub srtctl on a real Slurm: every failure manner, kills, and resumes.

The stub behaves as facts.json records of the real one; sbatch, squeue and scancel are real.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infx.domain.errors import UsageError
from infx.domain.plan import Job
from infx.launch.logs import find_log
from infx.store import FILE, Store
from tests.launch.lab_fixture import Lab, until
from tests.launch.slurm.driven import ROOT, Driven
from tests.launch.slurm.scenarios import named
from tests.launch.srt import bench

pytestmark = pytest.mark.slow


class Swept(Driven):
    """``python -m tests.launch.srt.bench`` of one results folder."""

    jobs_a_name = 1

    def start(self, *words: str) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.launch.srt.bench", str(self.results), *words],
                cwd=ROOT,
                env=self.lab.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def behave(self, word: str) -> None:
        (self.results / "behave").write_text(word)

    def go(self) -> None:
        """Let jobs that are ``slow`` come to their end."""
        (self.results / "go").touch()

    def sbatched(self, count: int = 1) -> list[Path]:
        """Wait until so many jobs were submitted; return their outputs folders."""

        def found() -> list[Path]:
            return sorted(self.results.glob("runs/*/jobs/*/a*/srt/*/config.yaml"))

        until(lambda: len(found()) >= count, 60, lambda: self.said[-3000:])
        return [file.parent for file in found()]

    def playing(self) -> None:
        """Wait until a job's client is about to begin."""
        until(
            lambda: any("Custom" in log.read_text() for log in self.results.rglob("sweep_*.log")),
            60,
            lambda: self.said[-3000:],
        )

    def settled(self, *states: str, measured: int = 1) -> None:
        """Every point has its end, was measured so often, and nothing is open or goes on."""
        assert Counter(bench.states(self.results)) == Counter(states), self.said[-3000:]
        assert not [a for a in self.attempts() if not a.ended_s], self.said[-3000:]
        counts = bench.measured(self.results)
        assert set(counts.values()) <= {measured}, (counts, self.said[-3000:])
        [run] = [path.name for path in self.results.glob("runs/*")]
        left = self.lab.run("squeue -h -r -o '%j %T %r'").splitlines()
        assert not [row for row in left if run in row]
        assert set(self.queue().values()) == {self.jobs_a_name}, self.queue()


@contextmanager
def swept(lab: Lab, results: Path, *jobs: Job, behave: str = "ok", **site: Any) -> Iterator[Swept]:
    bench.prepare(results, *jobs, behave=behave, **site)
    made = Swept(lab, results)
    try:
        yield made
    finally:
        made.go()
        made.kill()
        for run in results.glob("runs/*"):
            lab.ask(f"squeue -h -o '%i %j' | grep {run.name} | cut -d' ' -f1 | xargs -r scancel")


def one_way(behave: str, *states: str, said: str = "") -> Callable[[Lab, Path], None]:
    """A scenario that plays ``behave`` from the beginning to the end."""

    def act(lab: Lab, results: Path) -> None:
        with swept(lab, results, behave=behave) as sweep:
            sweep.jobs_a_name = 2 if behave == "several" else 1
            sweep.finish()
            sweep.settled(*states)
            assert said in sweep.said

    act.__name__ = behave.replace("-", "_")
    return act


def evidence_and_tags(lab: Lab, results: Path) -> None:
    """Outputs lie in the attempt's folder, under the name that Slurm, srt and infx share."""
    with swept(lab, results, bench.job()) as sweep:
        sweep.finish()
        [attempt] = sweep.attempts()
        [job] = sweep.sbatched()
        told = json.loads((job / f"{attempt.scheduler_id}.json").read_text())
        assert told["tags"] == ["infx", attempt.unique_name]
        assert told["job_name"] == attempt.unique_name
        record = bench.records(results)[0]
        run_dir = next(results.glob("runs/*"))
        for name, path in record.artifacts.items():
            assert (run_dir / path).exists(), name
        assert record.measurement


def killed_while_jobs_run(lab: Lab, results: Path) -> None:
    with swept(lab, results, behave="slow") as sweep:
        sweep.start()
        sweep.launched(2)
        sweep.playing()
        sweep.send(signal.SIGKILL)
        sweep.ended()
        sweep.go()
        sweep.finish()
        sweep.settled(*["ok"] * 4)
        assert {attempt.number for attempt in sweep.attempts()} == {1}


def killed_and_jobs_end_without_it(lab: Lab, results: Path) -> None:
    with swept(lab, results, behave="slow") as sweep:
        sweep.start()
        sweep.launched(2)
        sweep.send(signal.SIGKILL)
        sweep.ended()
        sweep.go()
        until(lambda: sum(bench.measured(results).values()) == 4, 60, lambda: sweep.said)
        sweep.finish()
        sweep.settled(*["ok"] * 4)


def killed_between_the_submit_and_its_record(lab: Lab, results: Path) -> None:
    """srtctl accepts, and infx dies before it can write the id: found by its name."""
    with swept(lab, results, bench.job(), behave="slow") as sweep:
        program = results / "srtctl"
        program.write_text(
            program.read_text().replace("exec ", "") + "[ $1 != apply ] || sleep 60\n"
        )
        sweep.start()
        sweep.sbatched()
        sweep.send(signal.SIGKILL)
        sweep.ended()
        [attempt] = sweep.attempts()
        assert not attempt.scheduler_id
        sweep.go()
        sweep.finish()
        sweep.settled("ok", "ok")
        [attempt] = sweep.attempts()
        assert attempt.scheduler_id


def killed_before_the_submit(lab: Lab, results: Path) -> None:
    """The intent is written and nothing submitted: given up for good, then submitted anew."""
    with swept(lab, results, bench.job()) as sweep:
        program = results / "srtctl"
        before = program.read_text()
        program.write_text(f"#!/bin/sh\n[ $1 != apply ] || sleep 60\n{before}")
        sweep.start()
        until(lambda: bool(sweep.attempts()), 60, lambda: sweep.said)
        until(lambda: any(results.rglob("srt.yaml")), 60, lambda: sweep.said)
        sweep.send(signal.SIGKILL)
        sweep.ended()
        program.write_text(before)
        sweep.finish()
        sweep.settled("ok", "ok")
        [first, second] = sweep.attempts()
        assert (first.number, second.number) == (1, 2)
        given_up = next(results.glob("runs/*/jobs/*/a1/srt"))
        assert given_up.is_file()
        late = lab.ask(
            f"sbatch --parsable --wait -o {given_up}/%j/logs/x.log --wrap 'touch {results}/late'"
        )
        assert late.returncode  # Slurm cannot open its log, so it runs nothing
        assert not (results / "late").exists()


def stopped(lab: Lab, results: Path) -> None:
    """Ctrl-C cancels the jobs, once; the run can be resumed."""
    with swept(lab, results, behave="slow") as sweep:
        sweep.start()
        sweep.launched(2)
        sweep.playing()
        sweep.send(signal.SIGINT)
        assert sweep.ended() == 130
        sweep.settled(*["cancelled"] * 4)
        sweep.go()
        sweep.finish()
        assert bench.states(results) == ["ok"] * 4


def let_go(lab: Lab, results: Path) -> None:
    """SIGHUP: the jobs go on, and a resume follows the same attempts."""
    with swept(lab, results, behave="slow") as sweep:
        sweep.start()
        sweep.launched(2)
        sweep.send(signal.SIGHUP)
        assert sweep.ended() == 130
        sweep.go()
        sweep.finish()
        sweep.settled(*["ok"] * 4)
        assert {attempt.number for attempt in sweep.attempts()} == {1}


def cancelled_by_someone(lab: Lab, results: Path) -> None:
    with swept(lab, results, bench.job(), behave="slow") as sweep:
        sweep.start()
        [attempt] = sweep.launched(1)
        sweep.playing()
        lab.run(f"scancel {attempt.scheduler_id}")
        assert sweep.ended() == 0
        sweep.settled(*["cancelled:cancelled-outside"] * 2)


def outputs_are_gone(lab: Lab, results: Path) -> None:
    """Their disk does not answer: waited for, then lost, tried anew, and not for ever."""
    with swept(lab, results, bench.job(), behave="slow") as sweep:
        sweep.start()
        sweep.launched(1)
        sweep.playing()
        for folder in sweep.sbatched():
            shutil.move(folder, results / "elsewhere")
        sweep.behave("ok")
        sweep.go()
        assert sweep.ended() == 0
        assert "its outputs folder is not there" in sweep.said
        assert bench.states(results) == ["ok", "ok"]
        assert [attempt.number for attempt in sweep.attempts()] == [1, 2]


FAULTS = named(
    one_way("ok", *["ok"] * 4),
    one_way("config", *["ok"] * 4, said="unknown key default_container, file ignored"),
    one_way("server-dies", *["failed:server-exited"] * 4, said="Engine core initialization failed"),
    one_way("client-fails", *["failed:client-failed"] * 4, said="no module named aiperf"),
    one_way("nothing", *["failed:srt-no-export"] * 4, said="srt says that the job succeeded"),
    one_way("zero", *["invalid:no-tokens"] * 4),
    one_way("half", *["ok", "failed:client-failed"] * 2),
    one_way("foreign", *["ok"] * 4),
    one_way("several", *["failed:srt-refused"] * 4, said="of one recipe"),
    one_way("garbage", *["ok"] * 4, said="looking for"),
    one_way("silent", *["ok"] * 4, said="looking for"),
    one_way("lost", *["ok"] * 4, said="ended by signal 9"),
    one_way("limit", *["ok"] * 4, said="Job violates accounting/QOS policy"),
    one_way("hopeless", *["failed:never-scheduled"] * 4, said="PartitionNodeLimit"),
    evidence_and_tags,
    killed_while_jobs_run,
    killed_and_jobs_end_without_it,
    killed_between_the_submit_and_its_record,
    killed_before_the_submit,
    stopped,
    let_go,
    cancelled_by_someone,
    outputs_are_gone,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, scenario: Callable[[str], None]) -> None:
    scenario(fault)


@pytest.mark.parametrize(
    ("behave", "code"), [("refused", "UsageError srt-refused"), ("old", "UsageError srtctl-old")]
)
def test_no_run_is_made_of_what_srtctl_refuses(
    behave: str, code: str, lab: Lab, tmp_path: Path
) -> None:
    with swept(lab, tmp_path, behave=behave) as sweep:
        sweep.start()
        assert sweep.ended() == 2
        assert code in sweep.said
        assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())


def test_the_logs_of_a_point_are_found(lab: Lab, tmp_path: Path) -> None:
    with swept(lab, tmp_path, bench.job(), behave="server-dies") as sweep:
        sweep.finish()
        with Store(tmp_path / FILE) as store:
            [run] = store.runs()
            point = store.points(run.run_id)[0]
            place = partial(find_log, store, run, point, cluster=lambda _: bench.cluster())
            assert place("server").path.name == "node1_agg_w0.out"
            assert "Engine core" in place("").path.read_text()
            with pytest.raises(UsageError, match="no client log"):
                place("client")
