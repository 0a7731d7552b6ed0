from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.errors import MeasurementError
from infx.domain.point import Agentic, FixedLengths
from infx.job import client
from infx.job.client import LOG, arguments
from infx.job.client_env import client_env, kept_tokenizer
from infx.job.sessions import checked_trace, session_words
from infx.workloads.traces import read_trace
from tests.job.jobs import arm, point
from tests.workloads.made_traces import session, write_traces

PUBLIC = Agentic(trace="semianalysis_cc_traces_weka_062126")
FIXED = FixedLengths(isl=8, osl=8, requests=1)


def value(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1]


def local(folder: Path) -> Agentic:
    return Agentic(trace=str(folder), content=read_trace(folder).content, duration_s=8)


def test_arguments_of_a_public_trace(tmp_path: Path) -> None:
    asked = point(arm(), conc=28, workload=PUBLIC)
    words = arguments(asked, "http://127.0.0.1:9", "tok", Path(PUBLIC.trace), tmp_path)
    assert value(words, "--scenario") == "inferencex-agentx-mvp"
    assert value(words, "--public-dataset") == PUBLIC.trace
    assert value(words, "--concurrency") == "28"
    assert value(words, "--benchmark-duration") == "3600"
    assert value(words, "--random-seed") == "42"
    assert value(words, "--trajectory-start-min-ratio") == "0.25"
    assert value(words, "--trajectory-start-max-ratio") == "0.75"
    assert value(words, "--failed-request-threshold") == "0.1"
    told = {"--streaming", "--use-server-token-count", "--no-server-metrics"}
    assert told <= set(words)
    of_others = {"--unsafe-override", "--input-file", "--osl", "--request-count"}
    of_others |= {"--trace-idle-gap-cap-seconds"}  # needs the override
    of_others |= {"--warmup-requests-per-lane"}  # of a fork
    assert of_others.isdisjoint(words)


def test_arguments_of_ones_own_run(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "traces")
    load = replace(local(folder), cache_warmup_s=9, idle_gap_cap_s=5, max_context=600)
    words = session_words(replace(load, use_chat_template=True))
    assert value(words, "--input-file") == str(folder)
    assert value(words, "--custom-dataset-type") == "weka_trace"
    assert value(words, "--agentic-cache-warmup-duration") == "9"
    assert value(words, "--trace-idle-gap-cap-seconds") == "5"
    assert value(words, "--max-context-length") == "600"
    assert {"--apply-chat-template", "--unsafe-override"} <= set(words)
    assert "--public-dataset" not in words


def test_a_trace_must_be_the_one_that_was_planned(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "traces")
    load = local(folder)
    assert checked_trace(load) == folder
    assert checked_trace(PUBLIC) == Path(PUBLIC.trace)
    (folder / "t1.json").write_text(json.dumps(session(1, turns=5)))
    with pytest.raises(MeasurementError, match=f"planned {load.content[:8]}") as raised:
        checked_trace(load)
    assert raised.value.code == "trace-changed"
    (folder / "t1.json").write_text("{")
    with pytest.raises(MeasurementError, match="cannot be read on this machine"):
        checked_trace(load)
    with pytest.raises(MeasurementError, match="No such file"):
        checked_trace(replace(load, trace=f"{folder}/none.json"))


@pytest.fixture
def tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "a1" / "tokenizer"
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_a_tokenizer_is_kept_by_its_content(tokenizer: Path, tmp_path: Path) -> None:
    kept = kept_tokenizer(tokenizer)
    assert kept.is_relative_to(tmp_path / "cache" / "infx" / "tokenizers")
    assert (kept / "tokenizer.json").read_text() == "{}"
    assert kept_tokenizer(tokenizer.rename(tmp_path / "tokenizer")) == kept
    (tmp_path / "tokenizer" / "tokenizer.json").write_text('{"other": 1}')
    assert kept_tokenizer(tmp_path / "tokenizer") != kept
    assert len(list(kept.parent.iterdir())) == 2  # nothing half copied


def test_a_tokenizer_that_cannot_be_kept_is_no_silence(
    tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise PermissionError("not here")

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(PermissionError, match="not here"):
        kept_tokenizer(tokenizer)


def test_the_hub_stays_open_to_sessions_alone(tokenizer: Path) -> None:
    with client_env(PUBLIC, str(tokenizer)) as (env, name):
        assert Path(name) == kept_tokenizer(tokenizer)
        assert {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}.isdisjoint(env)
        assert env.get("HF_HOME") == os.environ.get("HF_HOME")
        assert int(env["AIPERF_DATASET_CONFIGURATION_TIMEOUT"]) >= 1800
        prompts = Path(env["AIPERF_DATASET_MMAP_CACHE_DIR"])
        assert prompts.is_relative_to(os.environ["XDG_CACHE_HOME"])
    with client_env(FIXED, str(tokenizer)) as (env, name):
        assert (name, env["HF_HUB_OFFLINE"]) == ("infx/tokenizer", "1")
    with client_env(PUBLIC, "hub/model") as (env, name):
        assert name == "hub/model"


def test_a_warm_up_that_aiperf_gives_up_says_so(tmp_path: Path) -> None:
    log = (
        "WARNING  Scenario violation: it cannot verify the corpus\n"
        "WARNING  Terminal warmup failure for trace t0; aborting run early\n"
    )
    (tmp_path / LOG).write_text(log)
    with pytest.raises(MeasurementError, match="Terminal warmup failure for trace t0: the server"):
        client._check(1, tmp_path)
    (tmp_path / LOG).write_text(log.splitlines()[0])
    with pytest.raises(MeasurementError, match="Scenario violation"):
        client._check(1, tmp_path)
