"""The real orchestrator with broken servers as jobs of a real Slurm: the same codes as locally."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from infx.domain.identity import content_id
from infx.domain.plan import Job
from tests.job.conftest import PROGRAM
from tests.job.jobs import arm, point, records
from tests.launch.lab_fixture import Lab, until
from tests.launch.slurm import bench
from tests.launch.slurm.driven import Driven, driven
from tests.launch.slurm.scenarios import named

pytestmark = pytest.mark.slow

STRANGER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Healthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy).serve_forever()
"""


def broken(fault: str, *, limit_s: int = 120, start_limit_s: int = 20) -> Job:
    """A job of one point whose server has ``fault``."""
    server = arm(options={"fault": fault}, start_limit_s=start_limit_s)
    measured = point(server)
    return Job(
        job_id=content_id(measured.point_id),
        name=fault,
        arm=server,
        points=(measured,),
        cluster="lab",
        time_limit_s=limit_s,
    )


def prepared(sweep: Driven) -> Driven:
    """Give the sweep's jobs the real orchestrator with the broken engine."""
    python = sweep.results / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -P {PROGRAM} "$4"\n')
    return sweep


def sentences(sweep: Driven) -> list[str]:
    """Return what became of each point, as its job's own record says."""
    found = [r for path in sorted(sweep.results.glob("runs/*/jobs/*/a1")) for r in records(path)]
    return [f"{record.status} {record.status.sentence}" for record in found]


def never_ready(lab: Lab, folder: Path) -> None:
    jobs = [broken("dies-at-start"), broken("silent", start_limit_s=1)]
    with driven(lab, folder / "r", *jobs) as sweep:
        prepared(sweep).finish()
        assert bench.states(folder / "r") == ["failed:server-exited", "failed:server-hung"]
        assert bench.outcomes(folder / "r") == [
            (1, "engine", "server-exited"),
            (1, "hang", "server-hung"),
        ]
        died, hung = sentences(sweep)
        assert "exit code 1): ValueError: the weights are 3 bytes" in died
        assert "silent for 1 s" in hung


def dies_when_measured(lab: Lab, folder: Path) -> None:
    with driven(lab, folder / "r", broken("dies-when-measured")) as sweep:
        prepared(sweep).finish()
        assert bench.outcomes(folder / "r") == [(1, "engine", "server-died")]
        assert "killed by SIGSEGV): RuntimeError: out of pages" in sentences(sweep)[0]


def another_job_answers(lab: Lab, folder: Path) -> None:
    """A job of somebody else listens on the port: the lab's nodes share their ports."""
    with driven(lab, folder / "r", broken("silent")) as sweep:
        prepared(sweep).start()
        [attempt] = sweep.running()
        told = attempt / "server.json"
        until(told.exists, 60, lambda: list(attempt.iterdir()))
        port = json.loads(told.read_text())["port"]
        (folder / "stranger.py").write_text(STRANGER)
        program = f"{sys.executable} {folder}/stranger.py {port}"
        stranger = lab.run(f"sbatch --parsable -J foreign -o /dev/null --wrap '{program}'")
        assert sweep.ended() == 0
        assert bench.outcomes(folder / "r") == [(1, "engine", "wrong-server")]
        assert f"port {port} is answered by a process that infx did not start" in sweep.said
        assert lab.job(stranger)["JobState"] == "RUNNING"
        lab.run(f"scancel {stranger}")


def its_own_time_limit(lab: Lab, folder: Path) -> None:
    """Not tried again, but under a larger limit."""
    with driven(lab, folder / "r", broken("silent", limit_s=4, start_limit_s=6)) as sweep:
        prepared(sweep).finish()
        assert bench.states(folder / "r") == ["failed:time-limit"]
        sweep.finish("retry_failed=1")
        assert bench.outcomes(folder / "r") == [(1, "timeout", "time-limit")]
        sweep.finish("time_limit_s=60")
        assert bench.outcomes(folder / "r") == [
            (1, "timeout", "time-limit"),
            (2, "hang", "server-hung"),
        ]


FAULTS = named(dies_when_measured, another_job_answers, its_own_time_limit, never_ready)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, scenario: Callable[[str], None]) -> None:
    scenario(fault)
