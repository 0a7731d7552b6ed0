"""Sweeps from a laptop: the scheduler's commands over a real ssh, files in a folder there."""

from __future__ import annotations

import shutil
import signal
import stat
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from infx.config.sites import Cluster, SlurmSite
from infx.domain.errors import InfraError, UsageError
from infx.domain.findings import Where
from infx.domain.plan import Plan
from infx.job.result import damage, read_result
from infx.launch.lab import MAIN
from infx.launch.prepare import prepare
from infx.launch.prepare.bundle import own_wheel
from infx.launch.runs import create_run, open_store
from infx.launch.slurm.executor import SlurmExecutor
from infx.launch.slurm.watch import Pace
from infx.launch.sweep import Asked, Sweep
from infx.launch.transport.ssh import SshTransport
from infx.store import FILE, RunLock, Store, gather
from tests.launch.drive import Quiet
from tests.launch.lab_fixture import Lab
from tests.launch.slurm.bench import STAND_IN, measured, states
from tests.launch.ssh_fixture import Sshd
from tests.store.tiny_plans import arm, job, judge, plan

pytestmark = pytest.mark.slow


@pytest.fixture
def login(sshd: Sshd, lab: Lab) -> Sshd:
    """A login node: its users find the scheduler, and Python in a folder that nodes see."""
    with (sshd.folder / "sshd_config").open("a") as file:
        file.write(f"SetEnv SLURM_CONF={lab.conf}\n")
    sshd.stop()
    sshd.start()
    shutil.copy(STAND_IN, sshd.home / "stand_in_job.py")
    python = sshd.home / "python"
    python.write_text(f'#!/bin/sh\nexec /usr/bin/python3 -S {sshd.home}/stand_in_job.py "$4"\n')
    for path in (python, sshd.home / "stand_in_job.py"):
        path.chmod(0o755)
    return sshd


def sockets(login: Sshd) -> Path:
    return login.folder / "c"


def shared(login: Sshd) -> Path:
    return login.home / f"shared space {login.port}"


def cluster(login: Sshd, **site: object) -> Cluster:
    settings = {"python": str(login.home / "python"), "folder": str(shared(login))}
    made = SlurmSite(ssh=login.host, partition=MAIN, gpus="none", **settings | site)  # type: ignore[arg-type]
    where = Where("configs/clusters.yaml", 1, 1)
    return Cluster(name="remote", executor="slurm", hardware="cpu", slurm=made, where=where)


def executor(login: Sshd, **site: object) -> SlurmExecutor:
    transport = SshTransport(login.host, options=login.options, control_dir=sockets(login))
    made = SlurmExecutor(cluster(login, **site), transport, pace=Pace(1.0, 2.0), patience_s=10.0)
    made.tick_s = 0.1
    return made


def drive(
    results: Path, whole: Plan, run_by: SlurmExecutor, observer: Quiet, **asked: float
) -> bool:
    with open_store(results) as store:
        run_by.check(whole.jobs)
        runs = store.runs()
        run = (
            runs[-1]
            if runs
            else create_run(
                store, results, whole, source="tiny", project=results, executor="remote"
            )
        )
        with RunLock(Path(run.folder)):
            gather(store, Path(run.folder), judge)
            return Sweep(store, run, whole, run_by, judge, observer, Asked(**asked)).run()


class Heard(Quiet):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def notice(self, sentence: str) -> None:
        super().notice(sentence)
        self.sentences.append(sentence)

    def hear(self, text: str, limit_s: float = 60.0) -> None:
        deadline = time.monotonic() + limit_s
        while not any(text in sentence for sentence in self.sentences):
            assert time.monotonic() < deadline, (text, self.sentences)
            time.sleep(0.05)


def counted(login: Sshd) -> Counter[str]:
    """Return how often each point was measured there."""
    logs = shared(login).glob("runs/*/measured.txt")
    return Counter(line for log in logs for line in log.read_text().split())


def test_a_sweep_over_ssh_brings_every_result_home(login: Sshd, tmp_path: Path) -> None:
    whole = plan(*[job(n, points=2) for n in range(5)], job(7, points=1, behave="fail"))
    assert drive(tmp_path, whole, executor(login), Heard())
    assert Counter(states(tmp_path)) == {"ok": 10, "failed:server-died": 1}
    assert set(counted(login).values()) == {1}
    assert not measured(tmp_path)  # the jobs saw the folder there, not this one
    found = [path.parent for path in tmp_path.glob("runs/*/jobs/*/a1/result.json")]
    assert len(found) == 6
    for folder in found:
        result = read_result(folder)
        assert result is not None
        assert not damage(folder, result)
    with Store(tmp_path / FILE) as store:
        [run] = store.runs()
        assert {a.batch for a in store.attempts(run.run_id)} != {""}


def test_what_the_scheduler_wrote_of_a_job_that_could_not_start_comes_home(
    login: Sshd, tmp_path: Path
) -> None:
    nowhere = executor(login, python="/nowhere/python", retries=0)
    assert drive(tmp_path, plan(*[job(n, points=1) for n in range(2)]), nowhere, Heard())
    assert states(tmp_path) == ["failed:launch-failed"] * 2
    logs = [path.read_text() for path in tmp_path.glob("runs/*/batches/*/*.log")]
    assert len(logs) == 2
    assert all("infx: job " in log for log in logs)


def test_jobs_run_as_the_user_who_logged_in(login: Sshd, tmp_path: Path) -> None:
    assert drive(tmp_path, plan(job(0, points=1)), executor(login), Heard())
    [claim] = shared(login).glob("runs/*/jobs/*/a1/claim")
    assert claim.owner() == login.user


def test_who_does_not_know_what_a_lost_drive_submitted_measures_nothing_twice(
    login: Sshd, tmp_path: Path
) -> None:
    """Its folder is gone, and the store was pushed before: the other drive submits the same
    attempts, and waits for the jobs that have them. Longer than its patience."""
    whole = plan(*[job(n, points=1, seconds=16) for n in range(2)])
    first, second = tmp_path / "first", tmp_path / "second"
    with open_store(first) as store:
        create_run(store, first, whole, source="tiny", project=first, executor="remote")
    shutil.copytree(first, second)
    assert not drive(first, whole, executor(login), Heard(), until_s=0.0)
    assert drive(second, whole, executor(login), Heard())
    assert states(second) == ["ok"] * 2
    assert list(counted(login).values()) == [1, 1]
    with Store(second / FILE) as store:
        assert [a.number for a in store.attempts(store.runs()[0].run_id)] == [1, 1]


def test_a_lost_connection_changes_no_job(login: Sshd, tmp_path: Path) -> None:
    """The ssh master is killed, then the server is gone for a while; the jobs go on."""
    whole = plan(*[job(n, points=1, seconds=6) for n in range(3)])
    heard = Heard()
    sweep = threading.Thread(target=drive_in_thread, args=(tmp_path, whole, login, heard))
    sweep.start()
    heard.hear("measuring")
    masters = [p for p in psutil.process_iter(["cmdline"]) if is_master(p, login)]
    assert masters
    for process in masters:
        process.send_signal(signal.SIGKILL)
    login.stop()
    heard.hear("does not answer")
    login.start()
    heard.hear("answers again")
    sweep.join(60)
    assert not sweep.is_alive()
    assert states(tmp_path) == ["ok"] * 3
    assert set(counted(login).values()) == {1}


def drive_in_thread(results: Path, whole: Plan, login: Sshd, heard: Heard) -> None:
    with pytest.MonkeyPatch.context() as patch:  # signals are the main thread's
        patch.setattr("infx.launch.stop.signal.signal", lambda *_: signal.SIG_DFL)
        drive(results, whole, executor(login), heard)


def is_master(process: psutil.Process, login: Sshd) -> bool:
    """A master that has gone into the background calls itself ``ssh: SOCKET [mux]``."""
    words = " ".join(process.info["cmdline"] or [])
    return words.startswith("ssh:") and str(sockets(login)) in words


def test_a_host_that_does_not_answer_is_an_error_before_a_run(login: Sshd, tmp_path: Path) -> None:
    login.stop()
    with pytest.raises(InfraError, match=login.host) as caught:
        drive(tmp_path, plan(job(0)), executor(login), Heard())
    assert (caught.value.code, caught.value.exit_code) == ("ssh-unreachable", 3)
    assert not list(tmp_path.glob("runs/*"))


def test_a_cluster_without_an_interpreter_is_told_what_to_do(login: Sshd, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="infx cluster prepare remote") as caught:
        drive(tmp_path, plan(job(0)), executor(login, python=""), Heard())
    assert caught.value.code == "not-prepared"
    assert not list(tmp_path.glob("runs/*"))


def test_files_that_cannot_be_brought_there_wait_and_are_no_failure(
    login: Sshd, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infx.launch.slurm.backlog.HELD_BACK_S", (1.0, 4.0))
    folder = shared(login)
    folder.mkdir()
    folder.chmod(stat.S_IRUSR)
    heard = Heard()
    mend = threading.Thread(target=lambda: (heard.hear("cannot be brought"), folder.chmod(0o777)))
    mend.start()
    assert drive(tmp_path, plan(job(0, points=1)), executor(login), heard)
    mend.join()
    assert states(tmp_path) == ["ok"]


def test_a_prepared_cluster_runs_infx_from_its_bundle(
    login: Sshd, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As a user who cannot read this infx: its jobs find all that they need in the folder."""
    remote = cluster(login, python="/usr/bin/python3")
    transport = SshTransport(login.host, options=login.options, control_dir=sockets(login))
    cache = tmp_path_factory.mktemp("cache")
    made = prepare(remote, transport, own_wheel(cache), cache, extras=(), say=print)
    assert made.python.startswith(str(shared(login)))
    assert (
        prepare(remote, transport, own_wheel(cache), cache, extras=(), say=print).pushed_bytes == 0
    )
    transport.close()
    unserved = replace(arm(), framework="llamacpp", model=replace(arm().model, weights="/no/file"))
    single = job(0, points=1)
    points = tuple(replace(point, arm=unserved) for point in single.points)
    whole = plan(replace(single, arm=unserved, points=points))
    assert drive(tmp_path, whole, executor(login, python=""), Heard())
    assert states(tmp_path) == ["failed:weights-missing"]
    [path] = tmp_path.glob("runs/*/jobs/*/a1/result.json")
    result = read_result(path.parent)
    assert result is not None
    assert result.node.startswith("node")
    assert not damage(path.parent, result)
