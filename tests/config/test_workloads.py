from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.expressions import Expression
from infx.config.matrix import AgenticSpec, Matrix
from infx.workloads.traces import read_trace
from tests.config.sample_project import FILES, MATRIX, Edit, faults, load, write_project
from tests.workloads.made_traces import write_traces

WORKLOAD = "workload: {isl: 64, osl: 32, requests: 6*conc}"
PUBLIC = "semianalysis_cc_traces_weka_062126"


def with_workload(text: str) -> str:
    assert FILES[MATRIX].count(WORKLOAD) == 1
    return FILES[MATRIX].replace(WORKLOAD, f"workload: {{{text}}}")


def spec_of(matrix: Matrix) -> AgenticSpec:
    spec = matrix.entries[0].scenarios[0].workload
    assert isinstance(spec, AgenticSpec)
    return spec


def test_a_public_trace_has_the_public_runs_defaults(tmp_path: Path) -> None:
    spec = spec_of(load(write_project(tmp_path, {MATRIX: with_workload(f"trace: {PUBLIC}")})))
    assert (spec.trace, spec.content, spec.longest) == (PUBLIC, "", 0)
    assert (spec.duration_s, spec.warmup_requests_per_lane, spec.seed) == (3600, 10, 42)
    assert (spec.error_share, spec.use_chat_template) == (0.1, False)
    assert (spec.idle_gap_cap_s, spec.max_context) == (None, None)


def test_every_key_is_read(tmp_path: Path) -> None:
    text = (
        f"trace: {PUBLIC}, duration-s: 1200, warmup-requests-per-lane: 2*conc, cache-warmup-s: 9, "
        "seed: 7, trajectory-start-min-ratio: 0, trajectory-start-max-ratio: 0.5, "
        "idle-gap-cap-s: 300, max-context: 131072, use-chat-template: true, error-share: 0.2"
    )
    spec = spec_of(load(write_project(tmp_path, {MATRIX: with_workload(text)})))
    assert isinstance(spec.warmup_requests_per_lane, Expression)
    assert spec.warmup_requests_per_lane.text == "2*conc"
    assert (spec.duration_s, spec.cache_warmup_s, spec.seed) == (1200, 9, 7)
    assert (spec.trajectory_start_min_ratio, spec.trajectory_start_max_ratio) == (0.0, 0.5)
    assert (spec.idle_gap_cap_s, spec.max_context) == (300, 131072)
    assert (spec.error_share, spec.use_chat_template) == (0.2, True)


def test_a_local_trace_is_an_input_of_the_plan(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "data" / "agents", 2)
    project = write_project(tmp_path, {MATRIX: with_workload("trace: data/agents")})
    matrix = load(project)
    spec, found = spec_of(matrix), read_trace(folder)
    assert (spec.trace, spec.content) == (str(folder.resolve()), found.content)
    assert spec.longest == found.longest
    digests = {f"data/agents/{path.name}": digest for path, digest in found.digests.items()}
    assert digests.items() <= matrix.inputs.items()
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("code", "workload", "words"),
    [
        ("unknown-key", f"trace: {PUBLIC}, «isl: 64", "a `workload` with a trace"),
        ("unknown-key", f"trace: {PUBLIC}, «duration: 60", "did you mean `duration-s`?"),
        (
            "unknown-key",
            "isl: 1, osl: 1, requests: 1, «max-context: 8",
            "is not a key of `workload`",
        ),
        ("unknown-reference", "trace: «data/none", "neither a public trace nor a folder"),
        ("unknown-reference", "trace: «semianalysis_cc_traces_weka_06212", "mean `semianalysis"),
        ("trace-malformed", "trace: «empty", "holds no .json file"),
        ("trace-malformed", "trace: «data/bad.json", "bad.json is no Weka trace"),
        ("wrong-type", "trace: «7", "quote it"),
        ("out-of-range", f"trace: {PUBLIC}, duration-s: «0", "at least 1"),
        ("out-of-range", f"trace: {PUBLIC}, error-share: «1.5", "at most 1"),
        ("wrong-type", f"trace: {PUBLIC}, use-chat-template: «maybe", "true or false"),
    ],
)
def test_faults_have_their_place(tmp_path: Path, code: str, workload: str, words: str) -> None:
    for name in ("data", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "bad.json").write_text("{}")
    text, place = Edit(WORKLOAD, f"workload: {{{workload}}}").apply(FILES[MATRIX])
    found = faults(write_project(tmp_path, {MATRIX: text}))
    assert [finding.code for finding in found] == [code]
    where = found[0].where
    assert where is not None
    assert (where.line, where.col) == place
    assert words in f"{found[0].sentence} {found[0].hint}"


def test_sessions_need_a_trace(tmp_path: Path) -> None:
    [found] = faults(write_project(tmp_path, {MATRIX: with_workload("duration-s: 60")}))
    assert (found.code, found.hint) == ("missing-key", "add it")
    assert found.sentence == "a `workload` with a trace has no `trace`"


def test_a_session_starts_between_its_two_ratios(tmp_path: Path) -> None:
    text = with_workload(f"trace: {PUBLIC}, trajectory-start-min-ratio: 0.8")
    [found] = faults(write_project(tmp_path, {MATRIX: text}))
    assert found.code == "conflicting-keys"
    assert "between 0.8 and 0.75" in found.sentence


def test_both_kinds_stand_in_the_schema() -> None:
    from infx.config.schema import matrix_schema

    workload = matrix_schema()["$defs"]["ScenarioSection"]["properties"]["workload"]
    kinds = [choice["$ref"] for choice in workload["anyOf"]]
    assert kinds == ["#/$defs/WorkloadSection", "#/$defs/AgenticSection"]
