"""Four engines by their stubs: launch, readiness, a real aiperf, the realised length, the verdict.
What they are asked is what their parsers were read to take."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from infx import frameworks
from infx.domain.acceptance import Acceptance
from infx.domain.record import PointRecord
from infx.frameworks.own_folders import VARIABLE
from infx.job.agreement import check_acceptance
from infx.job.golden_server import connect
from infx.job.ports import free_port
from infx.job.readiness import wait_ready
from infx.job.server import Server
from tests.frameworks.stub_jobs import LIMIT_S, STUB, make_programs, run, stub_arm
from tests.frameworks.test_atom import M3_AXES, M3_OPTIONS
from tests.job.jobs import point, write_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ENGINES = ("atom", "sglang", "trtllm", "vllm")
UNTOLD = ("sglang", "trtllm")
"""The engines whose acceptance is a variable, which a job may inherit from its user."""

FORCED = {
    "SGLANG_SIMULATE_ACC_LEN": "2.78",
    "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": "1.78",
}
LOAD = {"isl": 64, "osl": 64, "requests": 10, "warmup_requests": 2}


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of engines, with the stubs' programs."""
    folder = tmp_path_factory.mktemp("engines")
    make_programs(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer for aiperf."""
    folder = tmp_path_factory.mktemp("tokenizer")
    frameworks.get("infx").tokenizer(stub_arm("infx", folder, model=_engines_own()), folder)
    return folder


def _engines_own() -> object:
    return replace(stub_arm("atom", Path()).model, tokenizer="engine")


@pytest.fixture(scope="module")
def measured(
    engines: Path, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[PointRecord]]:
    """The records of one job an engine: a synthetic point, and an evaluation on the same server."""
    folders = [tmp_path_factory.mktemp(engine) for engine in ENGINES]
    for engine, folder in zip(ENGINES, folders, strict=True):
        arm = stub_arm(engine, tokenizer)
        points = point(arm, conc=2, **LOAD), point(arm, mode="evaluation")
        write_job(folder, *points, time_limit_s=LIMIT_S)
    return dict(zip(ENGINES, run(engines, *folders), strict=True))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_synthetic_point_is_measured(engine: str, measured: dict[str, list[PointRecord]]) -> None:
    record = next(r for r in measured[engine] if r.point.mode == "throughput")
    assert str(record.status) == "ok", record.status
    assert record.counters is not None
    assert record.counters.acceptance_length == pytest.approx(2.78, abs=0.15)
    # 12 requests of 64 tokens, 63 of them verified, and the probe's one token.
    assert record.counters.verify_steps == pytest.approx(12 * 63 / 2.78, rel=0.1)
    assert record.counters.peak_running
    assert record.counters.prefix_cache_hit_share == 0
    assert record.provenance.server_argv[0].startswith("/")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_evaluation_at_a_synthetic_server_fails(
    engine: str, measured: dict[str, list[PointRecord]]
) -> None:
    record = next(r for r in measured[engine] if r.point.mode == "evaluation")
    assert str(record.status) == "failed:acceptance-mode"
    assert "the running server's is synthetic at length 2.78" in record.status.sentence


@pytest.fixture(scope="module")
def misled(
    engines: Path, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[PointRecord]]:
    """Servers that do not keep their length: a throughput point of each engine."""
    folders = [tmp_path_factory.mktemp(engine) for engine in ENGINES]
    for engine, folder in zip(ENGINES, folders, strict=True):
        arm = stub_arm(engine, tokenizer, env={"STUB_AL": "2.3"})
        write_job(folder, point(arm, conc=2, **LOAD), time_limit_s=LIMIT_S)
    return dict(zip(ENGINES, run(engines, *folders), strict=True))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_length_that_is_not_kept_is_invalid(
    engine: str, misled: dict[str, list[PointRecord]]
) -> None:
    [record] = misled[engine]
    assert str(record.status) == "invalid:acceptance-off"
    assert "asked 2.78" in record.status.sentence


@pytest.mark.parametrize("engine", UNTOLD)
def test_a_variable_that_the_job_inherits_is_seen(
    engine: str, engines: Path, tokenizer: Path, tmp_path: Path
) -> None:
    """The recipe is that of an evaluation; the user's shell forces acceptance all the same."""
    arm = stub_arm(engine, tokenizer, acceptance=Acceptance(k=3))
    write_job(tmp_path, point(arm, mode="evaluation"), time_limit_s=LIMIT_S)
    [[record]] = run(engines, tmp_path, env=FORCED)
    assert str(record.status) == "failed:acceptance-mode"


@pytest.mark.parametrize("engine", ENGINES)
def test_real_acceptance_is_told(
    engine: str, engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An evaluation needs the server's word, and gets it of each engine that infx starts. Its
    realised length is read of a server that somebody else started too."""
    monkeypatch.setenv(VARIABLE, str(engines))
    framework, arm = frameworks.get(engine), stub_arm(engine, tmp_path, acceptance=Acceptance(k=3))
    port = free_port("127.0.0.1", engine)
    server = Server(framework, arm, tmp_path, host="127.0.0.1", port=port)
    server.start(os.environ)
    try:
        wait_ready(server, arm.start_limit_s)
        running = framework.acceptance(server.answers())
        foreign = connect(framework, server.site.url)
        before = foreign.metrics
        for _ in range(40):
            server.site.post("/v1/completions", {"prompt": "a", "max_tokens": 30}, 30)
        counters = framework.counters(before, foreign.metrics)
    finally:
        server.stop()
    assert (counters.acceptance_length or 0) > 1
    assert running is not None
    check_acceptance(point(arm, mode="evaluation"), running, framework.laws)


def test_mono_that_atom_switched_off_is_invalid(
    engines: Path, tokenizer: Path, tmp_path: Path
) -> None:
    axes = replace(stub_arm("atom", tokenizer).axes, **M3_AXES)
    env = {"STUB_MONO_OFF": "no kernel for this GPU"}
    arm = stub_arm("atom", tokenizer, axes=axes, options=M3_OPTIONS, env=env)
    write_job(tmp_path, point(arm, conc=2, **LOAD), time_limit_s=LIMIT_S)
    [[record]] = run(engines, tmp_path)
    assert str(record.status) == "invalid:mono-off"
    assert "mono decode off: no kernel for this GPU" in record.status.sentence


@pytest.mark.parametrize("engine", ENGINES)
def test_a_flag_that_the_engine_does_not_have_ends_it(engine: str) -> None:
    command = [sys.executable, "-P", str(STUB), engine, "--no-such-flag"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "--no-such-flag" in done.stderr
