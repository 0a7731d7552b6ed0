"""What InferenceX's validator refuses is refused, each fault at its place, all in one pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.inferencex.sample import (
    AGENTIC_MULTI,
    FIXED,
    MULTI,
    RUNNERS,
    WHOLE,
    edited,
    masters,
    place_of,
    refused,
)

FLAG = "multinode: false"
ROW = "- { tp: 8, conc-start: 4, conc-end: 48 }"
DRAM = "- { tp: 4, kv-offloading: dram, kv-offload-backend: { name: hicache }, conc-list: [8] }"
NONE = "- { tp: 8, kv-offloading: none, conc-list: [1, 20] }"
PREFILL = "prefill: { num-worker: 1, tp: 8, ep: 1, dp-attn: false }"

# what is changed, into what, the code, where its finding points, a word of its sentence
TABLE = [
    ("image: vllm", "imag: vllm", "unknown-key", "imag:", "no key `imag`"),
    ("  precision: fp8\n", "", "missing-key", "image: vllm", "needs `precision`"),
    ("precision: fp8", "precision: 8", "wrong-type", "8\n  framework", "text, not 8"),
    ("precision: fp8", "precision: [fp8]", "wrong-type", "[fp8]", "not a list"),
    (FLAG, "multinode: 0", "wrong-type", "0\n  scen", "true or false, not 0"),
    (FLAG, f"{FLAG}\n  disagg: true", "conflicting-keys", "disagg", "no multi-node"),
    (FLAG, f"{FLAG}\n  trace-source: x", "unknown-key", "trace-source", "trace-source"),
    (FLAG, f"{FLAG}\n  router: {{ name: r }}", "missing-key", "{ name: r", "needs `version`"),
    (
        FLAG,
        f"{FLAG}\n  router: {{ name: r, version: 'image:x' }}",
        "unknown-value",
        "'image:x'",
        "an image",
    ),
    ("dsv4-fp8-h200-vllm:", "dsv4-*-vllm:", "bad-name", "dsv4-*", "wildcard"),
    (ROW, "- [tp, 8]", "wrong-type", "[tp, 8]", "must be a mapping, not a list"),
    (ROW, "- { tp: '8', conc-list: [1] }", "wrong-type", "'8'", "whole number, not '8'"),
    (ROW, "- { tp: true, conc-list: [1] }", "wrong-type", "true, conc", "not true"),
    (ROW, "- { tp: 8, dp_attn: true, conc-list: [1] }", "unknown-key", "dp_attn", "dp_attn"),
    (ROW, "- { conc-list: [1] }", "missing-key", "{ conc-list: [1] }", "needs `tp`"),
    (ROW, "- { tp: 8 }", "missing-key", "{ tp: 8 }", "conc-list"),
    (ROW, "- { tp: 8, conc-start: 4 }", "missing-key", "{ tp: 8, conc-start: 4 }", "conc-end"),
    (ROW, "- { tp: 8, conc-list: [] }", "missing-key", "{ tp: 8, conc-list: [] }", "conc-list"),
    (ROW, "- { tp: 8, conc-list: [4, 0] }", "out-of-range", "0] }", "above 0, not 0"),
    (ROW, "- { tp: 8, conc-list: [4, x] }", "wrong-type", "x] }", "not 'x'"),
    (ROW, "- { tp: 8, conc-start: 0, conc-end: 4 }", "out-of-range", "0, conc-end", "not 0"),
    (ROW, "- { tp: 8, conc-start: 9, conc-end: 4 }", "out-of-range", "9, conc-end", "above"),
    (
        ROW,
        "- { tp: 8, conc-list: [1], conc-start: 1, conc-end: 4 }",
        "conflicting-keys",
        "conc-list: [1], conc",
        "both",
    ),
    (ROW, "- { tp: 8, dcp-size: 3, conc-list: [1] }", "conflicting-keys", "3, conc", "multiple"),
    (ROW, "- { tp: 8, pcp-size: 0, conc-list: [1] }", "out-of-range", "0, conc-list", "above 0"),
    (ROW, "- { tp: 8, pp: null, conc-list: [1] }", "wrong-type", "null, conc", "not null"),
    (ROW, "- { tp: 8, conc-list: [1], spec-decoding: mpt }", "unknown-value", "mpt", "one of mtp"),
    (
        ROW,
        "- { tp: 8, conc-list: [1], kv-p2p-transfer: x }",
        "unknown-key",
        "kv-p2p-transfer: x",
        "kv-p2p",
    ),
    ("runner: cluster:h200-x", "runner: h200", "unknown-value", "h200\n  precision", "fleets"),
    (NONE, "- { tp: 8, conc-list: [1] }", "missing-key", "{ tp: 8, conc-list: [1] }", "kv-off"),
    (NONE, "- { kv-offloading: none, conc-list: [1] }", "missing-key", "{ kv-off", "needs `tp`"),
    (NONE, "- { tp: 8, kv-offloading: ssd, conc-list: [1] }", "unknown-value", "ssd", "dram"),
    (
        NONE,
        "- { tp: 8, kv-offloading: none, kv-offload-backend: { name: x }, conc-list: [1] }",
        "conflicting-keys",
        "kv-offload-backend: { name: x",
        "not dram",
    ),
    (
        DRAM,
        "- { tp: 4, kv-offloading: dram, conc-list: [8] }",
        "missing-key",
        "kv-offloading: dram",
        "backend",
    ),
    ("dram-utilization: 0.5", "dram-utilization: 1.5", "out-of-range", "1.5", "at most 1"),
    (
        "dram-utilization: 0.5",
        "dram-utilization: null",
        "missing-key",
        "kv-offloading: dram",
        "dram-utilization",
    ),
    (
        NONE,
        f"- {{ {PREFILL}, kv-offloading: none, conc-list: [1] }}",
        "conflicting-keys",
        "prefill",
        "one node",
    ),
    (
        NONE,
        f"{NONE[:-2]}, kv-p2p-transfer: nixl }}",
        "conflicting-keys",
        "kv-p2p-transfer: nixl }",
        "one node",
    ),
    (NONE, f"{NONE[:-2]}, router: {{ name: r }} }}", "missing-key", "{ name: r }", "`version`"),
    (
        "{ name: hicache }",
        "{ name: hicache, version: 'image:x' }",
        "unknown-value",
        "'image:x'",
        "`kv-offload-backend` is image:x",
    ),
    (
        "dp-attn: false }",
        "dp-attn: false, dcp-size: 3 }",
        "conflicting-keys",
        "3 }",
        "multiple",
    ),
    (PREFILL, "", "missing-key", "conc-list: [8, 32]", "`prefill`"),
    (PREFILL, "prefill: 1", "wrong-type", "1\n        decode", "a mapping, not 1"),
    ("num-worker: 1, ", "", "missing-key", "{ tp: 8, ep: 1, dp", "num-worker"),
    (
        "dp-attn: false }",
        "dp-attn: false, hardware: h100 }",
        "conflicting-keys",
        "conc-list: [8, 32]",
        "hardware",
    ),
    ('["A=1"]', "[1]", "wrong-type", "1] }", "text, not 1"),
    ("  kv-p2p-transfer: nixl\n", "", "missing-key", "disagg", "kv-p2p-transfer"),
    (
        "- conc-list: [8, 32]",
        "- kv-p2p-transfer: x\n        conc-list: [8, 32]",
        "conflicting-keys",
        "kv-p2p-transfer: x",
        "and in its rows",
    ),
    (
        "    fixed-seq-len:\n    - isl",
        "    other:\n    - isl",
        "unknown-key",
        "other",
        "no key `other`",
    ),
    (
        f"{FLAG}\n  scenarios:",
        f"{FLAG}\n  scenarios: {{}}\n  more:",
        "missing-key",
        "scenarios: {}",
        "no scenario",
    ),
]


@pytest.mark.parametrize(("old", "new", "code", "mark", "word"), TABLE)
def test_a_fault_is_refused_at_its_place(
    tmp_path: Path, old: str, new: str, code: str, mark: str, word: str
) -> None:
    text = edited(old, new)
    here = place_of(text, mark, WHOLE.index(old))
    found = [(f.code, str(f.where)) for f in refused(tmp_path, text) if word in f.sentence]
    assert (code, here) in found


@pytest.mark.parametrize("key", ["tp: 8", "pp: 2", "dcp-size: 2", "pcp-size: 2"])
def test_a_row_of_workers_has_no_parallelism_of_its_own(tmp_path: Path, key: str) -> None:
    text = edited("prefill:", f"{key}\n        prefill:", AGENTIC_MULTI)
    found = [(f.code, str(f.where)) for f in refused(tmp_path, text)]
    assert found == [("conflicting-keys", place_of(text, key))]


def test_a_row_over_nodes_needs_both_workers(tmp_path: Path) -> None:
    text = edited("prefill: { num", "decoder: { num", AGENTIC_MULTI)
    assert any("`prefill` and `decode`" in f.sentence for f in refused(tmp_path, text))


def test_the_sample_is_sound(tmp_path: Path) -> None:
    assert len(masters(tmp_path, WHOLE + AGENTIC_MULTI).entries) == 4


def test_all_faults_of_a_file_come_in_one_pass(tmp_path: Path) -> None:
    text = WHOLE.replace("tp: 8", "tp: x").replace("precision: fp8", "precisoin: fp8")
    codes = [finding.code for finding in refused(tmp_path, text)]
    assert codes.count("wrong-type") == 4
    assert codes.count("unknown-key") == codes.count("missing-key") == 3


def test_faults_are_sorted_by_line(tmp_path: Path) -> None:
    text = WHOLE.replace("tp: 8", "tp: x").replace("image:", "imag:")
    lines = [f.where.line for f in refused(tmp_path, text) if f.where]
    assert lines == sorted(lines)


RUNNER_FAULTS = [
    ("labels:", "label:", "missing-key", "labels"),
    ("[h200-x_0, h200-x_1]", "[]", "wrong-type", "at least one machine"),
    ("[h200-x_0, h200-x_1]", "h200-x_0", "wrong-type", "in a list"),
    ("1_000_000", "0", "out-of-range", "above 0"),
    ("gpus-per-node: 8", "gpus: 8", "unknown-key", "gpus"),
    ("{ available-cpu-dram-mib: 1_000_000, gpus-per-node: 8 }", "8", "wrong-type", "a mapping"),
    (RUNNERS, "- 1\n", "wrong-type", "a list"),
]


@pytest.mark.parametrize(("old", "new", "code", "word"), RUNNER_FAULTS)
def test_a_fault_of_the_runners_is_refused(
    tmp_path: Path, old: str, new: str, code: str, word: str
) -> None:
    found = refused(tmp_path, WHOLE, edited(old, new, RUNNERS))
    assert [f for f in found if f.code == code and word in f.sentence], found
    assert found[0].where
    assert found[0].where.file == "runners.yaml"


def test_an_entry_may_not_stand_in_two_files(tmp_path: Path) -> None:
    from infx.config.inferencex.load import read_masters
    from infx.config.project import Project
    from infx.domain.errors import ConfigError

    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(FIXED + MULTI)
    with pytest.raises(ConfigError) as raised:
        read_masters([tmp_path / "a.yaml", tmp_path / "b.yaml"], None, Project(tmp_path, tmp_path))
    errors = [f for f in raised.value.findings if f.level == "error"]
    assert {f.code for f in errors} == {"duplicate-key"}
    assert [str(f.where) for f in errors] == ["b.yaml:1:1", "b.yaml:16:1"]
