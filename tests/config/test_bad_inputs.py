"""A table of faults: each gives its code at its place with its hint, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infx.config.load import load_matrix
from infx.domain.codes import CODES
from infx.domain.errors import ConfigError
from tests.config.sample_project import FILES, MATRIX, Edit, faults, load, write_project

CLUSTERS, RECIPE, GOLDEN = "configs/clusters.yaml", "recipes/mini.yaml", "golden_al/curve.yaml"
WHEN = "when: \"mono == 'on' and conc > 2\""
SPECULATION = "{method: eagle3, golden: curve, thinking: on, law: geometric}"
WORKLOAD = "{isl: 64, osl: 32, requests: 6*conc}"

TABLE: list[tuple[str, Edit, str]] = [
    # YAML
    ("tab-indent", Edit("  precision:", "«\tprecision:"), "spaces"),
    ("yaml-syntax", Edit("precision: fp32", "precision: fp32«: x"), ""),
    ("yaml-syntax", Edit("far: {", "«---\nfar: {", CLUSTERS), "another file"),
    ("duplicate-key", Edit("  recipe: mini\n", "  recipe: mini\n  «recipe: mini\n"), ""),
    ("anchor", Edit("recipe: mini", "recipe: «&r mini"), "write the value out"),
    ("anchor", Edit("recipe: mini", "recipe: «*r"), "write the value out"),
    ("anchor", Edit("recipe: mini", "recipe: «!!str mini"), "write the value out"),
    ("anchor", Edit("  recipe: mini\n", "  recipe: mini\n  «<<: {}\n"), ""),
    ("ambiguous-scalar", Edit("queueing: true", "queueing: «yes"), "write true"),
    ("ambiguous-scalar", Edit("k: 3", "k: «0o3"), "decimal"),
    ("ambiguous-scalar", Edit("k: 3", "k: «12:30"), "base 60"),
    ("ambiguous-scalar", Edit("mono: [off, on]", "mono: «yes"), "write one of off, on"),
    ("ambiguous-scalar", Edit("mono: [off, on]", "mono: [off, «True]"), "write one of off, on"),
    ("ambiguous-scalar", Edit("mono: off, queue", "mono: «no, queue"), "write one of off, on"),
    ("ambiguous-scalar", Edit("thinking: on", "thinking: «yes"), "write on or off"),
    ("wrong-type", Edit("  recipe: mini\n", "  recipe: mini\n  ? «[a]\n  : b\n"), ""),
    # Keys
    ("unknown-key", Edit("max-num-seqs", "«max-num-seq"), "did you mean `max-num-seqs`?"),
    ("unknown-key", Edit("max-num-seqs", "«max_num_seqs"), "did you mean `max-num-seqs`?"),
    ("unknown-key", Edit("  image:", "  «imagee: x\n  image:"), "did you mean `image`?"),
    ("unknown-key", Edit("  image:", "  «7: x\n  image:"), ""),
    ("unknown-key", Edit("isl: 64", "isl: 64, «warmup-request: 1"), "`warmup-requests`?"),
    ("unknown-key", Edit("reason: too", "reason: x, «wen: too"), "`when`?"),
    ("unknown-key", Edit("hardware: cpu}", "hardware: cpu, «gpus: 1}", CLUSTERS), ""),
    ("unknown-key", Edit("hardware: [cpu]", "hardware: [cpu]\n«opts: 1", RECIPE), ""),
    ("unknown-key", Edit("thinking_on:", "«thinking:", GOLDEN), "did you mean `thinking_on`?"),
    ("missing-key", Edit("  model-prefix: minimaxm3\n  precision", "  «precision"), "add it"),
    ("missing-key", Edit(WORKLOAD, "«{isl: 64, requests: 6}"), "add it"),
    ("missing-key", Edit("{conc: 4, mono: off, queue", "«{mono: off, queue"), "add `conc`"),
    ("missing-key", Edit(SPECULATION,
                         "«{method: eagle3, golden: curve}"), "add thinking: on"),
    ("missing-key", Edit("{name: mini, weights: random:0}", "«{name: mini}", RECIPE), "add it"),
    # Types
    ("wrong-type", Edit("k: 3", "k: «{a: 1}"), ""),
    ("wrong-type", Edit("k: 3", "k: «3.5"), ""),
    ("wrong-type", Edit("k: 3", "k: [1, «2*conc]"), "stands alone"),
    ("wrong-type", Edit("k: 3", "k: «true"), ""),
    ("wrong-type", Edit("queueing: true", "queueing: «on"), "write true"),
    ("wrong-type", Edit("capture-sizes: [4, 8]", "capture-sizes: «8"), "write [8]"),
    ("wrong-type", Edit("capture-sizes: [4, 8]", "capture-sizes: [[4], «8]"), "write [8]"),
    ("wrong-type", Edit("isl: 64", "isl: «6.4"), ""),
    ("wrong-type", Edit("image: pypi:infx", "image: «1.10"), "quote it"),
    ("wrong-type", Edit("limit: 8", "limit: «some"), ""),
    ("wrong-type", Edit('"2"', "«2", RECIPE), "quote it"),
    ("wrong-type", Edit("{executor: local, hardware: cpu}", "«local", CLUSTERS), ""),
    ("wrong-type", Edit("1: 1.8", "1: «high", GOLDEN), ""),
    ("wrong-type", Edit("1: 1.8", "«zero: 1.8", GOLDEN), "1, 2, 3"),
    ("wrong-type", Edit("some-model:", "a: {thinking_on: {3: 2}}\n«b:", GOLDEN), "a file for each"),
    ("wrong-type", Edit("- {conc: 4, mono: off, queueing: true}", "- «5"), ""),
    ("wrong-type", Edit(WHEN, "when: «2"), "compare an axis"),
    ("wrong-type", Edit(WHEN, 'when: "«2"'), "compare it"),
    ("wrong-type", Edit(WHEN, "when: «conc"), "compare it"),
    ("wrong-type", Edit(WHEN, "when: «conc - 4"), "compare it"),
    ("wrong-type", Edit(WHEN, "when: conc > 2 and «k"), "compare it"),
    ("wrong-type", Edit(WHEN, "when: True if conc > 2 else «mono"), "compare it"),
    # Vocabularies and names
    ("unknown-value", Edit("mono: [off, on]", "mono: [off, «onn]"), "did you mean `on`?"),
    ("unknown-value", Edit("precision: fp32", "precision: «fp23"), "did you mean `fp32`?"),
    ("unknown-value", Edit("framework: infx", "framework: «inxf", RECIPE), "`infx`?"),
    ("unknown-value", Edit("framework: infx", "framework: «llamacpp"), "write `infx`"),
    ("unknown-value", Edit("method: eagle3", "method: «eagle"), "did you mean `eagle3`?"),
    ("unknown-value", Edit("thinking: on", "thinking: «true"), "known: off, on"),
    ("unknown-value", Edit("cluster: box", "cluster: «far"), "list the hardware"),
    ("unknown-value", Edit("law: geometric", "law: «from-curve"), "min-variance"),
    ("unknown-value", Edit("mono == 'on'", "mono == «'onn'"), "did you mean `on`?"),
    ("unknown-value", Edit("mono == 'on'", "mono in ('on', «'of')"), "did you mean `off`?"),
    ("unknown-value", Edit("2*conc", "2 if «'onn' != mono else 1"), "did you mean `on`?"),
    ("unknown-value", Edit("strict-match", "«strict"), "did you mean `strict-match`?"),
    ("bad-name", Edit("demo:", "«de mo:"), "letters"),
    ("bad-name", Edit("golden: curve", "golden: «../curve"), ""),
    ("bad-name", Edit("recipe: mini", "recipe: «../recipes/mini"), "letters"),
    ("bad-name", Edit("recipe: mini", 'recipe: «""'), "letters"),
    ("bad-name", Edit("recipe: mini", f"recipe: «{'m' * 300}"), "up to 100"),
    ("bad-name", Edit("golden: curve", f"golden: «{'m' * 300}"), "up to 100"),
    ("bad-name", Edit("cluster: box", "cluster: «/box"), "letters"),
    ("bad-name", Edit("far: {", '«"f\\er": {', CLUSTERS), "letters"),
    ("bad-name", Edit("demo:", f"«{'m' * 101}:"), "up to 100"),
    ("bad-name", Edit("demo:", '«"de\\emo":'), "letters"),
    ("bad-name", Edit("minimaxm3", '«"minimaxm3\\n"'), "letters"),
    ("bad-name", Edit("pypi:infx", '«"pypi:\\e[31minfx"'), "one line"),
    ("bad-name", Edit("too wide", '«"too\\awide"'), "one line"),
    ("bad-name", Edit("name: mini", 'name: «"mi\\enni"', RECIPE), "one line"),
    ("bad-name", Edit("random:0", '«"./a\\eb"', RECIPE), ""),
    ("bad-name", Edit('"2"', '«"2\\0"', RECIPE), "one line"),
    ("bad-name", Edit("dtype: fp32", 'dtype: «"fp\\032"', RECIPE), "one line"),
    ("bad-name", Edit("threads: 2", '«"thre\\eads": 2', RECIPE), ""),
    ("bad-name", Edit("OMP_NUM_THREADS", "«OMP-NUM", RECIPE), ""),
    ("bad-name", Edit("random:0", "«random:x", RECIPE), ""),
    # Ranges and repeats
    ("out-of-range", Edit("k: 3", "k: 3\n        tp: «0"), "1 or more"),
    ("out-of-range", Edit("conc: [1, 2, 4]", "conc: [1, «0, 4]"), "1 or more"),
    ("out-of-range", Edit("conc: [1, 2, 4]", "conc: «[]"), "list one"),
    ("out-of-range", Edit("osl: 32", "osl: «0"), "1 or more"),
    ("out-of-range", Edit("strict-match: 0.0", "strict-match: «1.5"), ""),
    ("out-of-range", Edit("limit: 8", "limit: «0"), ""),
    ("out-of-range", Edit("limit: 8", "limit: «1000001"), ""),
    ("out-of-range", Edit("limit: 8", "limit: 8, shots: «101"), ""),
    ("out-of-range", Edit("conc: [1, 2, 4]", "conc: [1, «9007199254740993]"), "quote it"),
    ("out-of-range", Edit("conc: [1, 2, 4]", f"conc: «{'9' * 5000}"), "quote it"),
    ("out-of-range", Edit("k: 3", "k: 3\n        tp: 2 + «9007199254740993"), ""),
    ("out-of-range", Edit("isl: 64", "isl: «9007199254740993"), ""),
    ("out-of-range", Edit("threads: 2", "threads: «-1.0e+999", RECIPE), ""),
    ("out-of-range", Edit("reason: too wide", 'reason: «""'), ""),
    ("out-of-range", Edit("hardware: [cpu]", "hardware: «[]", RECIPE), ""),
    ("out-of-range", Edit("1: 1.8", "1: «2.1", GOLDEN), "1 to K+1"),
    ("repeated-value", Edit("conc: [1, 2, 4]", "conc: [1, 2, «1]"), "remove"),
    ("repeated-value", Edit("mono: [off, on]", "mono: [off, «off]"), "remove"),
    ("repeated-value", Edit("[4, 8]", "[4, 8, «4]"), "remove"),
    ("repeated-value", Edit("[4, 8]", "[[4, 8], «[8, 4]]"), "remove"),
    # References
    ("unknown-reference", Edit("recipe: mini", "recipe: «minni"), "did you mean `mini`?"),
    ("unknown-reference", Edit("cluster: box", "cluster: «boxx"), "did you mean `box`?"),
    ("unknown-reference", Edit("golden: curve", "golden: «curv"), "did you mean `curve`?"),
    ("unknown-reference", Edit("golden: curve", "golden: «curv"), "`curve`? Or measure it: infx"),
    ("unknown-reference", Edit("thinking: on", "thinking: «off"), "on"),
    ("unknown-reference", Edit("task: gsm_mini", "task: «gsm_mni"), "did you mean `gsm_mini`?"),
    ("unknown-reference", Edit("task: gsm_mini", "task: «tasks/none.yaml"), "correct the path"),
    ("unknown-reference", Edit("gsm_mini", "«~nosuchuser/x.yaml"), "correct the path"),
    ("file-unreadable", Edit("gsm_mini", f"«{'x' * 300}.yaml"), "check the path"),
    ("bad-name", Edit("gsm_mini", '«"a\\0.yaml"'), "one line"),
    ("unknown-value", Edit("limit: 8", "limit: 8, source: «hub"), "leave `source` out"),
    ("golden-k-missing", Edit("k: 3", "k: «4"), "it holds K = 1, 2, 3"),
    ("golden-k-missing", Edit("queueing: true", "queueing: true, k: «5"), "K = 1, 2, 3"),
    ("golden-k-missing", Edit("k: 3", "k: «4 if conc > 2 else 3"), "it holds K = 1, 2, 3"),
    ("golden-k-missing", Edit("k: 3", "k: '3 if conc > 2 else «4'"), "it holds K = 1, 2, 3"),
    # Expressions
    ("bad-expression", Edit("2*conc", "2*conc +«"), ""),
    ("bad-expression", Edit("2*conc", "«conc.real"), ""),
    ("bad-expression", Edit("2*conc", "max(«[c for c in (1, 2)])"), ""),
    ("bad-expression", Edit("> 2\"", "> 2 &«& k\""), "write `and`"),
    ("unknown-name", Edit("2*conc", "2*«con"), "did you mean `conc`?"),
    ("unknown-name", Edit("6*conc", "6*«cnc"), "did you mean `conc`?"),
    ("unknown-name", Edit("[4, 8]", "range(1, «max-num-seqs)"), "write `max_num_seqs`"),
    ("unknown-name", Edit("mono == 'on'", "«mno == 'on'"), "did you mean `mono`?"),
    ("unknown-name", Edit("num-blocks: 64", "num-blocks: 2*«max_num_seq"), "`max_num_seqs`?"),
    ("expression-cycle", Edit("conc: [1, 2, 4]", "conc: «max_num_seqs"), "give one"),
    ("expression-cycle", Edit("k: 3", "k: «k+1"), "give one"),
    ("expression-cycle", Edit("{conc: 4, mono", "«{conc: max_num_seqs, mono"), "give one"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "edit", "hint"), TABLE, ids=[f"{n:02}-{code}" for n, (code, *_) in enumerate(TABLE)]
)
def test_fault(tmp_path: Path, code: str, edit: Edit, hint: str) -> None:
    text, place = edit.apply(FILES[edit.file])
    found = faults(write_project(tmp_path, {edit.file: text}))
    shown = [str(finding) for finding in found]
    assert [finding.code for finding in found] == [code], shown
    where = found[0].where
    assert where is not None
    assert (where.file, where.line, where.col) == (edit.file, *place), shown
    assert hint in found[0].hint, shown


def test_the_sample_has_no_fault(tmp_path: Path) -> None:
    assert faults(write_project(tmp_path)) == []


def test_gsm8k_without_its_files(tmp_path: Path) -> None:
    text = FILES[MATRIX].replace("gsm_mini", "gsm8k, source: data")
    found = faults(write_project(tmp_path, {MATRIX: text}))
    assert [(f.code, f.where.col) for f in found if f.where] == [("unknown-reference", 29)] * 2


@pytest.mark.parametrize(
    ("name", "hint"),
    [("demo2.yaml", "configs/demo.yaml`?"), ("xyz.yaml", "infx plan quickstart")],
)
def test_file_not_found(tmp_path: Path, name: str, hint: str) -> None:
    project = write_project(tmp_path)
    with pytest.raises(ConfigError) as raised:
        load_matrix([tmp_path / "configs" / name], project)
    (finding,) = raised.value.findings
    assert (finding.code, str(finding.where)) == ("file-not-found", f"configs/{name}")
    assert hint in finding.hint


FILE_FAULTS: list[tuple[str, bytes, str]] = [
    ("file-empty", b"", ""),
    ("file-empty", b"# nothing\n", ""),
    ("file-empty", b"---\n", ""),
    ("file-empty", b"{}\n", ""),
    ("not-utf8", b"demo:\n  image: caf\xe9\n", ":2:13"),
    ("yaml-syntax", b"demo:\n  a: x\x07y\n", ":2:7"),
]


@pytest.mark.parametrize(("code", "data", "place"), FILE_FAULTS)
def test_fault_of_a_whole_file(tmp_path: Path, code: str, data: bytes, place: str) -> None:
    project = write_project(tmp_path)
    (tmp_path / MATRIX).write_bytes(data)
    assert [(f.code, str(f.where)) for f in faults(project)] == [(code, MATRIX + place)]


def test_a_folder_and_a_circle_of_links_are_unreadable(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    (tmp_path / "circle.yaml").symlink_to("circle.yaml")
    for path in (tmp_path / "configs", tmp_path / "circle.yaml"):
        with pytest.raises(ConfigError) as raised:
            load_matrix([path], project)
        assert raised.value.code == "file-unreadable"


def test_an_unreadable_task_file(tmp_path: Path) -> None:
    text = FILES[MATRIX].replace("task: gsm_mini", "task: folder.yaml")
    (tmp_path / "folder.yaml").mkdir()
    (finding,) = faults(write_project(tmp_path, {MATRIX: text}))
    assert (finding.code, str(finding.where)) == ("file-unreadable", f"{MATRIX}:23:14")


@pytest.mark.parametrize(
    ("name", "what"), [(CLUSTERS, "clusters"), (RECIPE, "a recipe"), (GOLDEN, "acceptance lengths")]
)
def test_a_file_that_is_no_matrix(tmp_path: Path, name: str, what: str) -> None:
    project = write_project(tmp_path)
    with pytest.raises(ConfigError) as raised:
        load_matrix([tmp_path / name], project)
    (finding,) = raised.value.findings
    assert finding.code == "wrong-type"
    assert finding.sentence == f"{name} is no matrix: it holds {what}"
    assert finding.hint == "known matrices: demo"


def test_a_golden_file_of_two_models_names_them(tmp_path: Path) -> None:
    text = FILES[GOLDEN] + "other-model:\n  thinking_on: {3: 2.0}\n"
    (finding,) = faults(write_project(tmp_path, {GOLDEN: text}))
    assert "some-model, other-model" in finding.sentence


def test_a_cluster_that_is_like_no_other_is_to_be_added(tmp_path: Path) -> None:
    many = "".join(f"x{n}: {{executor: local, hardware: cpu}}\n" for n in range(30))
    text = FILES[MATRIX].replace("cluster: box", "cluster: quite-other")
    (finding,) = faults(write_project(tmp_path, {MATRIX: text, CLUSTERS: many}))
    assert finding.hint == "add `quite-other:` to configs/clusters.yaml"


def test_an_include_rule_is_called_so(tmp_path: Path) -> None:
    text = FILES[MATRIX].replace("- {conc: 4, mono: off, queueing: true}", "- 5")
    (finding,) = faults(write_project(tmp_path, {MATRIX: text}))
    assert finding.sentence == "an include rule is 5; expected a mapping"


def test_deep_nesting_is_a_fault_not_a_crash(tmp_path: Path) -> None:
    found = faults(write_project(tmp_path, {MATRIX: "a: " + "[" * 900 + "]" * 900}))
    assert [f.code for f in found] == ["yaml-syntax"]


def test_all_faults_of_all_files_in_one_pass(tmp_path: Path) -> None:
    text = FILES[MATRIX]
    for old, new in {
        "precision: fp32": "precision: fp23",
        "conc: [1, 2, 4]": "conc: [1, 1]",
        "k: 3": "k: 010",
        "2*conc": "2*con",
        "isl: 64": "isl: 0",
        "queueing: true": "queueing: maybe",
        "too wide": "x, y: 1",
        "task: gsm_mini": "task: gsm",
    }.items():
        text = text.replace(old, new)
    recipe = FILES[RECIPE].replace("hardware", "hardwear")
    found = faults(write_project(tmp_path, {MATRIX: text, RECIPE: recipe}))
    assert [(f.code, f.where.line) for f in found if f.where] == [
        ("unknown-value", 3),
        ("out-of-range", 11),
        ("repeated-value", 13),
        ("ambiguous-scalar", 14),
        ("unknown-name", 15),
        ("wrong-type", 19),
        ("ambiguous-scalar", 21),
        ("unknown-reference", 23),
        ("missing-key", 1),
        ("unknown-key", 3),
    ]


def test_an_entry_may_not_stand_in_two_files(tmp_path: Path) -> None:
    project = write_project(tmp_path, {"configs/again.yaml": FILES[MATRIX]})
    paths = [tmp_path / MATRIX, tmp_path / "configs/again.yaml"]
    with pytest.raises(ConfigError) as raised:
        load_matrix(paths, project)
    assert [str(f.where) for f in raised.value.findings] == ["configs/again.yaml:1:1"]
    assert raised.value.code == "duplicate-key"


def test_expression_failed_has_the_place_of_the_operation(tmp_path: Path) -> None:
    text = FILES[MATRIX].replace("2*conc", "2 * conc // (k - 3)")
    matrix = load(write_project(tmp_path, {MATRIX: text}))
    axis = next(a for a in matrix.entries[0].scenarios[0].axes if a.name == "max_num_seqs")
    with pytest.raises(ConfigError) as raised:
        axis.values.evaluate({"conc": 2, "k": 3})  # type: ignore[union-attr]
    finding = raised.value.findings[0]
    assert finding.code == "expression-failed"
    assert str(finding.where) == f"{MATRIX}:15:23"
    assert "conc=2, k=3" in finding.sentence


def test_every_config_code_has_a_row() -> None:
    rows = {code for code, *_ in TABLE} | {code for code, *_ in FILE_FAULTS}
    tested = {"file-not-found", "expression-failed"}  # one test each, above
    elsewhere = {"bad-record", "conflicting-keys"}  # tests/domain, tests/config/test_clusters.py
    elsewhere |= {"trace-malformed"}  # tests/config/test_workloads.py
    elsewhere |= {"bad-table", "bad-cell"}  # tests/analysis/test_table_frontiers.py
    assert rows.isdisjoint(tested | elsewhere)
    config = {code.name for code in CODES.values() if code.family == "config"}
    assert rows | tested | elsewhere == config


# What is sound in a place where other junk is not.
SOUND = {
    "null": {"speculation", "max-num-seqs"},
    "{}": {"options", "axes"},
}


@pytest.mark.parametrize("junk", ["null", "-1", "{}", "[{a: [1]}]", '"\\e"', "9" * 5000])
def test_junk_is_a_finding_never_a_crash(tmp_path: Path, junk: str) -> None:
    lines = FILES[MATRIX].splitlines()
    for number, line in enumerate(lines):
        if found := re.match(r"( *)(- )?([\w-]+):", line):
            kept = [*lines[:number], f"{found[0]} {junk}", *_after_block(lines, number, found[1])]
            told = faults(write_project(tmp_path, {MATRIX: "\n".join(kept)}))
            assert bool(told) is (found[3] not in SOUND.get(junk, ())), (found[3], junk, told)


def _after_block(lines: list[str], number: int, indent: str) -> list[str]:
    """The lines after the block that starts on a line with this indentation."""
    rest = lines[number + 1 :]
    while rest and len(rest[0]) - len(rest[0].lstrip(" ")) > len(indent):
        rest = rest[1:]
    return rest
