"""What InferenceX's validator accepts and should not is a warning beside the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.inferencex.evals import Evaluations
from infx.config.inferencex.load import plan_rows, read_masters
from infx.config.inferencex.select import Selection
from infx.config.project import Project
from infx.domain.findings import Finding
from tests.config.inferencex.sample import (
    AGENTIC_MULTI,
    FIXED,
    RUNNERS,
    WHOLE,
    edited,
    masters,
    place_of,
    refused,
)

ROW = "- { tp: 8, conc-start: 4, conc-end: 48 }"
NONE = "- { tp: 8, kv-offloading: none, conc-list: [1, 20] }"

TABLE = [
    ("precision: fp8", "precision: fp3", "unknown-value", "fp3", "`fp3`; known are fp4"),
    ("framework: vllm", "framework: bogus", "unknown-value", "bogus", "framework `bogus`"),
    ("runner: h200", "runner: h2OO", "unknown-reference", "h2OO", "no label `h2OO`"),
    ("tp: 8", "tp: 0", "out-of-range", "0, conc", "`tp` of an item of `search-space` is 0"),
    ("ep: 4", "ep: 0", "out-of-range", "0, dp", "1 or more"),
    ("isl: 8192", "isl: 0", "out-of-range", "0\n", "`isl`"),
    ("num-worker: 1", "num-worker: -1", "out-of-range", "-1", "0 or more"),
    (ROW, "- { tp: 8, conc-list: [4, 4, 1] }", "repeated-value", "4, 1]", "4 2 times"),
    (
        ROW,
        "- { tp: 8, conc-list: [4], conc-start: 1 }",
        "conflicting-keys",
        "conc-start: 1",
        "ignores it",
    ),
    (ROW, "- { tp: 8, conc-list: [4], conc-end: 1 }", "conflicting-keys", "conc-end: 1", "ignores"),
    (ROW, "- { tp: 8, tp: 4, conc-list: [4] }", "duplicate-key", "tp: 4", "drops"),
    (NONE, NONE.replace("tp: 8", "tp: 8, pp: 2"), "tp-gpus", "tp: 8, pp: 2", "16 accelerators"),
]


def warnings(folder: Path, text: str) -> list[Finding]:
    planned = plan_rows(masters(folder, text), Selection(), Evaluations())
    assert planned.made
    assert {finding.level for finding in planned.findings} <= {"warning"}
    return list(planned.findings)


@pytest.mark.parametrize(("old", "new", "code", "mark", "word"), TABLE)
def test_a_doubt_is_told_at_its_place(
    tmp_path: Path, old: str, new: str, code: str, mark: str, word: str
) -> None:
    text = edited(old, new)
    found = [f for f in warnings(tmp_path, text) if f.code == code and word in f.sentence]
    assert [str(f.where) for f in found] == [place_of(text, mark, WHOLE.index(old))]


def test_nothing_is_doubtful_about_the_sample(tmp_path: Path) -> None:
    assert warnings(tmp_path, WHOLE) == []


def test_a_label_nearly_right_is_suggested(tmp_path: Path) -> None:
    found = warnings(tmp_path, edited("runner: h200", "runner: h20"))
    assert "did you mean `h200`?" in [f.hint for f in found]


def test_without_runners_no_label_is_unknown(tmp_path: Path) -> None:
    text = edited("runner: h200", "runner: nobody", FIXED)
    assert masters(tmp_path, text, runners=None).findings == ()


def test_an_entry_that_stands_twice_keeps_the_last_as_their_loader_does(tmp_path: Path) -> None:
    text = FIXED + FIXED.replace("tp: 8", "tp: 2")
    read = masters(tmp_path, text)
    assert [(f.code, str(f.where)) for f in read.findings] == [
        ("duplicate-key", "master.yaml:16:1")
    ]
    assert "line 1" in read.findings[0].sentence
    assert plan_rows(read, Selection(), Evaluations()).made[0].row["tp"] == 2


def test_rows_that_stand_twice_are_told_once_for_a_line(tmp_path: Path) -> None:
    text = edited(ROW, f"{ROW}\n      {ROW.replace('4, ', '8, ')}", FIXED)
    found = warnings(tmp_path, text)
    assert [(f.code, str(f.where)) for f in found] == [("repeat-of", "master.yaml:15:9")]
    assert "conc 8, 16, 32, 48" in found[0].sentence
    assert "master.yaml:14:9" in found[0].sentence


def test_agentic_rows_that_differ_and_share_a_name_are_told(tmp_path: Path) -> None:
    text = edited(NONE, f"{NONE}\n      {NONE.replace('tp: 8', 'tp: 8, ep: 8')}")
    found = warnings(tmp_path, text)
    assert [f.code for f in found] == ["name-collision"]
    assert "dsv4_tp8_conc1_kvnone" in found[0].sentence


def test_fixed_rows_share_names_by_design(tmp_path: Path) -> None:
    text = edited(ROW, f"{ROW}\n      {ROW.replace('tp: 8', 'tp: 8, ep: 8')}", FIXED)
    assert warnings(tmp_path, text) == []


MEMORY = [
    ("  cluster:h200-x: { av", "  cluster:h200-y: { av", "unknown-reference", "no `hardware:`"),
    ("gpus-per-node: 8", "gpus-per-node: 2", "tp-gpus", "a server of 4 accelerators"),
]


@pytest.mark.parametrize(("old", "new", "code", "word"), MEMORY)
def test_host_memory_that_cannot_be_computed_is_refused(
    tmp_path: Path, old: str, new: str, code: str, word: str
) -> None:
    found = refused(tmp_path, WHOLE, edited(old, new, RUNNERS))
    assert [(f.code, str(f.where)) for f in found] == [
        (code, place_of(WHOLE, "kv-offloading: dram"))
    ]
    assert word in found[0].sentence


def test_host_memory_without_runners_names_the_option(tmp_path: Path) -> None:
    assert "--runners" in refused(tmp_path, WHOLE, runners=None)[0].hint


@pytest.mark.parametrize("tp", [2, 3, 8, 12, 16])
def test_a_prefill_worker_tiles_nodes(tmp_path: Path, tp: int) -> None:
    text = edited("tp: 8", f"tp: {tp}", AGENTIC_MULTI)
    if tp in (3, 12):
        assert "does not tile" in refused(tmp_path, text)[0].sentence
        return
    made = plan_rows(masters(tmp_path, text), Selection(), Evaluations()).made
    share = min(tp, 8) / 8 * 0.5 * 1_000_000 * 2**20 / 1e9
    assert made[-1].row["total-cpu-dram-gb"] == int(share)


def test_parallelism_beside_workers_is_told(tmp_path: Path) -> None:
    text = edited("prefill:", "ep: 4\n        prefill:", AGENTIC_MULTI)
    found = warnings(tmp_path, text)
    assert [(f.code, str(f.where)) for f in found] == [
        ("conflicting-keys", place_of(text, "ep: 4"))
    ]
    assert "beside workers" in found[0].sentence


def checked(folder: Path, *scripts: str) -> list[str]:
    (folder / "master.yaml").write_text(FIXED)
    home = folder / "clone/benchmarks/single_node/fixed_seq_len"
    home.mkdir(parents=True)
    for script in scripts:
        (home / script).touch()
    project = Project(folder, folder)
    read = read_masters([folder / "master.yaml"], None, project, folder / "clone")
    return [f"{f.where} {f.sentence} {f.hint}" for f in read.findings if f.code == "script-missing"]


def test_a_script_that_no_row_finds_is_named(tmp_path: Path) -> None:
    plain, mtp = checked(tmp_path)
    assert plain.startswith("master.yaml:14:9")
    assert "benchmarks/single_node/fixed_seq_len/dsv4_fp8_h200_vllm.sh" in plain
    assert "nor does benchmarks/single_node/fixed_seq_len/dsv4_fp8_h200.sh" in plain
    assert mtp.startswith("master.yaml:15:9")
    assert "dsv4_fp8_h200_vllm_mtp.sh" in mtp


def test_either_name_of_a_script_will_do(tmp_path: Path) -> None:
    assert checked(tmp_path, "dsv4_fp8_h200.sh", "dsv4_fp8_h200_vllm_mtp.sh") == []
