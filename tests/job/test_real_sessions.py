"""Recorded sessions with nothing made up but the sessions: infx's engine, aiperf, the verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.domain.axes import Axes
from infx.domain.point import Agentic
from infx.domain.record import PointRecord
from infx.engine.kept import cache_folder
from infx.workloads.traces import read_trace
from tests.job.jobs import MINI, arm, point, write_job
from tests.job.test_real_engines import run
from tests.workloads.made_traces import write_traces

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What aiperf and infx keep of a trace and a tokenizer is the test's own; compiled layers are
    everybody's."""
    monkeypatch.setenv("INFX_MONO_CACHE", str(cache_folder()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def sessions(folder: Path, **fields: Any) -> Agentic:
    found = read_trace(folder)
    load = Agentic(
        trace=str(folder), content=found.content, longest=found.longest, duration_s=5,
        warmup_requests_per_lane=1,
    )  # fmt: skip
    return replace(load, **fields)


def measured(folder: Path, *loads: Agentic, **axes: Any) -> list[PointRecord]:
    """The records of one server that each load is replayed against."""
    server = arm(
        "infx",
        model=MINI,
        options={"threads": 2, "num-blocks": 512},
        axes=Axes(conc=0, prefix_caching=True, **axes),
        start_limit_s=150,
    )
    points = [replace(point(server, conc=2, workload=load), name=f"p{n}")
              for n, load in enumerate(loads)]  # fmt: skip
    write_job(folder, *points, time_limit_s=235)
    [records] = run(folder)
    return records


def test_sessions_are_replayed_and_found_in_the_cache(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "traces")
    load = sessions(
        folder, cache_warmup_s=2, warmup_requests_per_lane=2, idle_gap_cap_s=5, max_context=600,
        use_chat_template=True, seed=7,
    )  # fmt: skip
    [record] = measured(tmp_path / "job", load)
    assert str(record.status) == "ok", record.status
    assert [finding.code for finding in record.findings] == ["own-scenario"]
    seen, counted = record.measurement, record.counters
    assert seen is not None
    assert counted is not None
    assert seen.requests.ok >= 4  # 40 on an idle machine
    assert seen.requests.errors == 0
    assert seen.requests.warmup > 4
    assert seen.osl.mean == 12  # as recorded
    assert seen.theoretical_prefix_hit_share is not None
    assert counted.prefix_cache_hit_share is not None
    assert counted.prefix_cache_hit_share > 0.7 * seen.theoretical_prefix_hit_share > 0.3
    assert counted.refusals == {}
    assert len(list((tmp_path / "cache/infx/tokenizers").iterdir())) == 1


def test_requests_that_are_too_long_are_not_lost(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "traces")
    early = sessions(folder, trajectory_start_min_ratio=0.0, trajectory_start_max_ratio=0.0)
    warmed = sessions(folder, cache_warmup_s=2)
    replayed, refused = measured(tmp_path / "job", early, warmed, max_model_len=320)
    assert str(replayed.status) == "invalid:context-overflow"
    assert replayed.counters is not None
    assert replayed.counters.refusals.keys() == {"context-length-exceeded"}
    assert str(refused.status) == "failed:client-failed"
    assert "Terminal warmup failure" in refused.status.sentence
