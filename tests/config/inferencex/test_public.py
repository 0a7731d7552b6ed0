"""The public configurations: the rows that InferenceX's own generator prints, byte by byte."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infx.config.inferencex.evals import Evaluations
from infx.config.inferencex.load import Masters, plan_rows, read_masters
from infx.config.inferencex.recognise import is_master
from infx.config.inferencex.select import Selection
from infx.config.project import Project
from tests.public_data import shared

EXPECTED: list[tuple[str, dict[str, Any], Evaluations]] = [
    ("amd_full_sweep", {}, Evaluations()),
    ("amd_full_sweep--no-evals", {}, Evaluations(none=True)),
    ("amd_full_sweep--evals-only", {}, Evaluations(only=True)),
    ("amd_full_sweep--all-evals", {}, Evaluations(every=True)),
    ("amd_vllm_max32", {"framework": ("vllm",), "max_conc": 32}, Evaluations()),
]


@pytest.fixture(scope="module")
def public() -> Path:
    """Return the folder of the public files."""
    return shared("data/inferencex")


@pytest.fixture(scope="module")
def amd(public: Path) -> Masters:
    return read(public, "amd-master.yaml")


@pytest.fixture(scope="module")
def both(public: Path) -> Masters:
    return read(public, "amd-master.yaml", "nvidia-master.yaml")


def read(public: Path, *names: str) -> Masters:
    paths = [public / name for name in names]
    return read_masters(paths, public / "runners.yaml", Project(public, public))


def planned(masters: Masters, evals: Evaluations, **chosen: Any) -> list[Mapping[str, Any]]:
    return [one.row for one in plan_rows(masters, Selection(**chosen), evals).made]


@pytest.mark.parametrize(("name", "chosen", "evals"), EXPECTED)
def test_rows_are_those_of_their_generator(
    public: Path, amd: Masters, name: str, chosen: dict[str, Any], evals: Evaluations
) -> None:
    expected = gzip.decompress((public / f"expected/{name}.json.gz").read_bytes()).decode()
    found = planned(amd, evals, **chosen)
    for ours, theirs in zip(found, json.loads(expected), strict=True):
        assert list(ours.items()) == list(theirs.items())
    assert json.dumps(found) == expected.strip()


def test_the_totals_of_both_files(both: Masters) -> None:
    rows = planned(both, Evaluations())
    points = Counter[tuple[bool, bool]]()
    for row in rows:
        several, agentic = "prefill" in row, "duration" in row
        points[several, agentic] += len(row["conc"]) if several else 1
    assert len(both.entries) == 208
    assert len(rows) == 1820
    assert points == {
        (False, False): 690,
        (False, True): 482,
        (True, False): 642,
        (True, True): 264,
    }
    assert sum(row["run-eval"] for row in rows) == 519
    assert len(planned(both, Evaluations(only=True))) == 645
    assert len(planned(both, Evaluations(every=True))) == 1663


def test_rows_that_no_machine_takes(both: Masters) -> None:
    rows = planned(both, Evaluations(none=True))
    unknown = Counter(r["runner"] for r in rows if r["runner"] not in both.runners.labels)
    assert unknown == {"gb300-nv": 45, "cluster:mi325x-tw": 13, "h200-dgxc": 12}
    told = [f for f in both.findings if f.code == "unknown-reference"]
    assert len(told) == 8


def test_the_findings_of_both_files(both: Masters) -> None:
    found = plan_rows(both, Selection(), Evaluations()).findings
    assert Counter(f.code for f in found) == {
        "unknown-reference": 8,
        "repeat-of": 3,
        "name-collision": 17,
    }
    assert {f.level for f in found} == {"warning"}
    rows = planned(both, Evaluations(none=True))
    assert len(rows) - len({json.dumps(row) for row in rows}) == 5


def test_the_public_files_are_recognised(public: Path) -> None:
    assert is_master(public / "amd-master.yaml")
    assert is_master(public / "nvidia-master.yaml")
    for other in ("runners.yaml", "perf-changelog.yaml", "golden_al/dsv4_mtp.yaml", "none.yaml"):
        assert not is_master(public / other)
