"""How the Slurm executor stops attempts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from infx.job import claim
from infx.launch.transport import Answer
from tests.launch.slurm.executor_bench import IN_ORDER, Bench
from tests.launch.slurm.played import SILENCE

TIMEOUT = Answer(1, "", "scancel: error: Kill job error: Socket timed out on send/recv operation")
GONE = Answer(1, "", "scancel: error: Unable to contact slurm controller")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_all_of_an_array_is_cancelled_by_its_name(bench: Bench) -> None:
    bench.submit(3)
    bench.queue("RUNNING", "RUNNING", "PENDING")
    bench.look()
    bench.executor.cancel(bench.open)
    name = bench.open[0].attempt.batch
    assert bench.cancels() == [f'scancel --user="$user" --name={name} {how}' for how in IN_ORDER]
    bench.executor.cancel(bench.open, at_once=True)
    assert bench.cancels()[2:] == [f'scancel --user="$user" --name={name}']


def test_a_job_that_does_not_end_in_a_minute_is_cancelled_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.submit()
    bench.queue("RUNNING")
    bench.look()
    bench.executor.cancel(bench.open)
    bench.look()
    assert len(bench.cancels()) == 2  # it is given time
    later = time.monotonic() + 61
    monkeypatch.setattr("infx.launch.slurm.cancel.time.monotonic", lambda: later)
    bench.look()
    assert len(bench.cancels()) == 3
    assert "--signal" not in bench.cancels()[-1]


def test_a_part_of_an_array_is_looked_up_and_cancelled_by_bare_ids(bench: Bench) -> None:
    bench.submit(3)
    bench.queue("RUNNING", "RUNNING", "PENDING")
    bench.look()
    bench.executor.cancel(bench.open[1:])
    name = bench.open[0].attempt.batch
    pending, running = (line for line in bench.transport.asked[-1].splitlines() if "ids=" in line)
    assert pending == f"ids=$(pick PENDING {name} '1|2'); [ -z \"$ids\" ] || scancel $ids"
    assert running.startswith(f"ids=$(pick RUNNING {name} '1|2')")
    assert running.endswith("scancel --batch --signal=TERM $ids")
    assert bench.cancels() == []  # nothing by a name that others have too


def test_a_lost_jobs_cancel_is_sent_until_it_arrives(bench: Bench) -> None:
    bench.submit(2)
    claim.take(bench.open[1].folder, claim.Claim(by="job"))
    bench.queue("RUNNING", "")
    bench.transport.answers["scancel"] = GONE
    assert [state.code for state in bench.look()] == ["", "job-lost"]
    bench.open = bench.open[:1]  # the lost one has ended for infx
    bench.look()
    assert bench.transport.count("|| scancel $ids") == 2
    bench.transport.answers["scancel"] = ""
    bench.look()
    bench.look()
    assert bench.transport.count("|| scancel $ids") == 3


@pytest.mark.parametrize("said", [GONE, SILENCE, TIMEOUT])
def test_a_cancel_that_did_not_arrive_is_sent_again(bench: Bench, said: Any) -> None:
    bench.submit()
    bench.queue("RUNNING")
    bench.look()
    bench.transport.answers["scancel"] = said
    bench.executor.cancel(bench.open)
    assert any("cannot cancel yet" in told for told in bench.executor.notices())
    bench.look()
    assert len(bench.cancels()) == 4
    bench.transport.answers["scancel"] = ""
    bench.look()
    bench.look()
    assert len(bench.cancels()) == 6
    assert sum("--batch --signal=TERM" in line for line in bench.cancels()) == 3


def test_a_cancel_hurries_the_next_question(bench: Bench) -> None:
    bench.submit()
    bench.queue("RUNNING")
    for _ in range(8):
        bench.look()
    bench.executor.cancel(bench.open)
    bench.clock.now_s += 10
    asked = bench.transport.count("squeue")
    bench.executor.poll(bench.open)
    assert bench.transport.count("squeue") == asked + 1
