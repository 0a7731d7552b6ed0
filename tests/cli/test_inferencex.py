"""infx plan and infx import on InferenceX's files."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import INFX, as_json, here, infx
from tests.cli.test_start import QUIET_START_S, cpu_s
from tests.config.inferencex.sample import AGENTIC, FIXED, MULTI, RUNNERS, WHOLE
from tests.public_data import shared

OTHER = FIXED.replace("dsv4-fp8-h200-vllm:", "other:")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the sample, where the tests then work."""
    (tmp_path / "m.yaml").write_text(WHOLE)
    (tmp_path / "runners.yaml").write_text(RUNNERS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def public() -> Path:
    return shared("data/inferencex")


def concs(done: subprocess.CompletedProcess[str]) -> list[int | list[int]]:
    assert done.returncode == 0, done.stderr
    return [row["conc"] for row in json.loads(done.stdout)]


def test_json_is_what_their_generator_prints(public: Path) -> None:
    done = here("plan", public / "amd-master.yaml", "--json", "--evals-only")
    expected = public / "expected/amd_full_sweep--evals-only.json.gz"
    assert done.stdout == gzip.decompress(expected.read_bytes()).decode()


def test_a_bare_name_is_looked_for_beside_the_first_file(public: Path) -> None:
    words = [public / "amd-master.yaml", "nvidia-master.yaml", "--runners", "runners.yaml"]
    done = here("plan", *words, "--format", "inferencex", "--json")
    assert len(concs(done)) == 1820


def test_their_files_are_known_by_what_they_hold(folder: Path) -> None:
    done = here("plan", "m.yaml", "--json")
    assert concs(done) == [4, 8, 16, 32, 48, 64, 16, 1, 20, 8, [8, 32]]
    assert done.stderr == ""


def test_the_summary(folder: Path) -> None:
    done = here("plan", "m.yaml")
    assert done.returncode == 0
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "dsv4-fp8-h200-vllm 7 7 3" in lines
    assert "cluster:h200-x 3 3 0" in lines
    assert "8192 in, 1024 out, several nodes 1 2 1" in lines
    assert lines[-1] == "3 entries, 11 rows, 12 points, 4 evaluated"


OPTIONS = [
    ("--framework vllm", [4, 8, 16, 32, 48, 64, 16]),
    ("--framework vllm,sglang --max-conc 2", [2, 2, 1]),
    ("--framework vllm --framework sglang --max-conc 2", [2, 2, 1]),
    ("--model-prefix dsv4-fp8-h200-s", [1, 20, 8]),
    ("--precision fp8 --single-node --min-conc 40", [40, 48, 64]),
    ("--runner h200 --multi-node", [[8, 32]]),
    ("--runner-type cluster:h200-x", [1, 20, 8]),
    ("--seq-lens 8k1k --scenario-type fixed-seq-len --max-tp 4 --single-node", [64, 16]),
    ("--step-size 16 --framework vllm --max-ep 2", [4, 48, 64, 16]),
    ("--runner-node-filter _0 --framework sglang", [1, 20, 8]),
    ("--config-keys *-agentic,*-vllm --conc 8,16", [8, 8, 16, 16, [8]]),
    ("--evals-only --framework vllm", [32, 48, 64]),
    ("--all-evals --framework sglang", [1, 20, 8]),
    ("--no-evals --framework sglang", [1, 20, 8]),
]


@pytest.mark.parametrize(("words", "wanted"), OPTIONS)
def test_options_select_rows(folder: Path, words: str, wanted: list[int]) -> None:
    assert concs(here("plan", "m.yaml", "--json", *words.split())) == wanted


REFUSED = [
    ("m.yaml --entry x", "--entry is for matrices of infx"),
    ("m.yaml --ledger", "--ledger is for matrices of infx"),
    ("m.yaml -o plan.json", "--output is for matrices of infx"),
    ("m.yaml quickstart", "quickstart is not"),
    ("quickstart --framework vllm", "--framework is for files of InferenceX"),
    ("quickstart --no-evals", "--no-evals is for files of InferenceX"),
    ("quickstart --min-conc 4", "--min-conc is for files of InferenceX"),
    ("m.yaml --config-keys * --framework vllm", "--framework does not go with --config-keys"),
    ("m.yaml --config-keys * --single-node", "--single-node does not go with --config-keys"),
    ("m.yaml --config-keys nobody", "--config-keys nobody fits no entry"),
    ("m.yaml --conc 4", "--conc is for the entries of --config-keys"),
    ("m.yaml --config-keys * --conc four", "--conc four is no whole number"),
    ("m.yaml --framework ,", "--framework names nothing"),
    ("m.yaml --config-keys ,", "--config-keys names nothing"),
    ("m.yaml --no-evals --evals-only", "exclude each other"),
    ("m.yaml --no-evals --all-evals", "exclude each other"),
    ("m.yaml --runners none.yaml --runner-node-filter _0", "there is no file none.yaml"),
    ("m.yaml --step-size 1", "--step-size is 1"),
    ("m.yaml --checkout .", "holds no benchmarks/"),
    ("m.yaml --runners none.yaml", "there is no file none.yaml"),
    ("m.yaml --format infx", "unknown-key"),
    ("quickstart --format inferencex", "there is no file quickstart"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_what_does_not_go_together_exits_2(folder: Path, words: str, sentence: str) -> None:
    done = here("plan", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_nothing_selected_is_an_empty_plan(folder: Path) -> None:
    done = here("plan", "m.yaml", "--precision", "fp4", "--json")
    assert (done.returncode, done.stdout) == (5, "[]\n")
    told = here("plan", "m.yaml", "--precision", "fp4")
    assert (told.returncode, told.stdout) == (5, "nothing is left: loosen what selects rows\n")


def test_doubts_are_told_beside_the_rows(folder: Path) -> None:
    (folder / "m.yaml").write_text(WHOLE.replace("precision: fp8", "precision: fp3", 1))
    done = here("plan", "m.yaml", "--json")
    assert len(concs(done)) == 11
    assert done.stderr.startswith("warning: m.yaml:6:14: unknown-value")
    assert "fp3" in done.stderr
    strict = here("plan", "m.yaml", "--json", "--strict")
    assert (strict.returncode, strict.stdout) == (1, done.stdout)


def test_what_a_terminal_would_obey_is_shown_as_an_escape(folder: Path) -> None:
    (folder / "m.yaml").write_text(WHOLE.replace("precision: fp8", 'precision: "\\e[31m"', 1))
    done = here("plan", "m.yaml")
    assert "\x1b" not in done.stderr
    assert "\\x1b[31m" in done.stderr


BAD = [
    ("", "file-empty"),
    ("- 1\n", "wrong-type"),
    ("{}\n", "file-empty"),
    ("a: [\n", "yaml-syntax"),
    ("a:\n\tb: 1\n", "tab-indent"),
    ("a: 1\n", "wrong-type"),
    ("a: {}\n", "missing-key"),
    (WHOLE.replace("tp: 8", "tp: [8]", 1), "wrong-type"),
    (WHOLE.replace("isl: 8192", "isl: x", 1), "wrong-type"),
    (WHOLE.replace("scenarios:", "scenarios: 1\n  b:", 1), "wrong-type"),
    (WHOLE.replace("search-space:", "search-space: {}\n      b:", 1), "wrong-type"),
    (WHOLE.replace("conc-end: 48", "conc-end: " + "9" * 5000, 1), "out-of-range"),
]


@pytest.mark.parametrize(("text", "code"), BAD)
def test_bad_input_is_told_never_a_traceback(folder: Path, text: str, code: str) -> None:
    (folder / "m.yaml").write_text(text)
    done = here("plan", "m.yaml", "--format", "inferencex")
    assert (done.returncode, done.stdout) == (2, "")
    assert code in done.stderr
    assert "Traceback" not in done.stderr
    found = as_json(here("plan", "m.yaml", "--format", "inferencex", "--json"))
    assert code in {finding["code"] for finding in found["diagnostics"]}


def test_a_missing_script_is_named(folder: Path) -> None:
    (folder / "clone/benchmarks").mkdir(parents=True)
    done = here("plan", "m.yaml", "--checkout", "clone")
    assert "benchmarks/single_node/agentic/dsv4_fp8_h200_sglang.sh does not exist" in done.stderr


def test_import_writes_a_project_that_plans(folder: Path) -> None:
    (folder / "m.yaml").write_text(FIXED + AGENTIC)
    done = here("import", "m.yaml", "--format", "inferencex", "-o", "made", "--k", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2 entries: 4 rows written, 0 left out"
    planned = infx("plan", "m", cwd=folder / "made")
    assert planned.returncode == 0, planned.stderr
    assert "= 10 candidates" in planned.stdout


def test_import_tells_what_it_leaves_out(folder: Path) -> None:
    done = here("import", "m.yaml", "-o", "made", "--json")
    found = as_json(done)
    assert done.returncode == 4
    assert found["data"]["rows_left_out"] == 2
    assert [d["code"] for d in found["diagnostics"]].count("not-native") == 2
    assert all(Path(path).is_file() for path in found["data"]["files"])


def test_import_of_nothing_that_can_be_said_is_empty(folder: Path) -> None:
    (folder / "m.yaml").write_text(MULTI)
    done = here("import", "m.yaml", "-o", "made")
    assert done.returncode == 5
    assert not (folder / "made").exists()


def test_import_replaces_nothing_and_chooses_entries(folder: Path) -> None:
    (folder / "m.yaml").write_text(FIXED + OTHER)
    words = ["import", "m.yaml", "-o", "made", "--k", "3", "--config-keys", "oth*"]
    assert here(*words).stdout.splitlines()[-1].startswith("1 entries: 2 rows")
    again = here(*words)
    assert (again.returncode, again.stdout) == (2, "")
    assert "m.yaml exists" in again.stderr


IMPORT_REFUSED = [
    ("-o made --golden dsv4", "--golden dsv4 is no golden curve"),
    ("-o m.yaml", "m.yaml/configs/m.yaml cannot be written"),
    ("-o made --config-keys nobody", "fits no entry"),
    ("-o made --config-keys ,", "--config-keys names nothing"),
    ("-o made --golden ,", "--golden names nothing"),
    ("-o made --k 0", "--k"),
    ("", "-o"),
]


@pytest.mark.parametrize(("words", "sentence"), IMPORT_REFUSED)
def test_an_import_that_cannot_be_exits_2(folder: Path, words: str, sentence: str) -> None:
    done = here("import", "m.yaml", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert not (folder / "made").exists()


@pytest.mark.slow
@pytest.mark.alone
def test_the_public_files_are_planned_in_a_moment(public: Path) -> None:
    """Under 0.6 s of a quiet machine, where their generator takes 3 s."""
    slowdown = max(1.0, cpu_s([sys.executable, "-c", "pass"]) / QUIET_START_S)
    files = [str(public / name) for name in ("amd-master.yaml", "nvidia-master.yaml")]
    assert cpu_s([*INFX, "plan", *files, "--json"]) < 0.6 * slowdown
