"""Imported files load as infx's own, and ask for the same servers at the same concurrencies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from infx.config.inferencex.evals import Evaluations
from infx.config.inferencex.files import files_of
from infx.config.inferencex.load import Masters, plan_rows, read_masters
from infx.config.inferencex.native import Native, to_native
from infx.config.inferencex.select import Selection
from infx.config.inferencex.shelf import Shelf, family
from infx.config.load import load_matrix
from infx.config.project import Project, packaged
from infx.domain.axes import Axes
from infx.domain.errors import ConfigError, UsageError
from infx.domain.plan import Plan
from infx.plan.make import make_plan
from tests.config.inferencex.sample import AGENTIC, FIXED, MULTI, WHOLE, edited, masters
from tests.public_data import shared

DEFAULTS = Axes()


def imported(
    folder: Path, read: Masters, k: int | None = 3, golden: tuple[str, ...] = ()
) -> tuple[Native, Project]:
    """Import everything into ``folder`` and write it."""
    project = Project(folder, packaged())
    native = to_native(read, read.entries, Shelf.of(project, golden), k)
    for path, text in files_of(native, project).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return native, project


def planned(project: Project, *names: str) -> Plan:
    matrix = load_matrix([project.root / "configs" / f"{name}.yaml" for name in names], project)
    return make_plan(matrix)


def ours(plan: Plan) -> dict[str, set[tuple[Any, ...]]]:
    """Return what each entry asks: parallelism, drafts, context, host memory, concurrency."""
    names = ("conc", "tp", "pp", "ep", "dp_attention", "kv_offload", "kv_offload_gb")
    found: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for candidate in plan.ledger:
        values = {name: candidate.values.get(name, getattr(DEFAULTS, name)) for name in names}
        drafts = bool(candidate.values.get("k"))
        context = candidate.values.get("max_model_len")
        found[candidate.entry].add((*values.values(), drafts, context))
    return found


def theirs(read: Masters) -> dict[str, set[tuple[Any, ...]]]:
    """Return the same of their rows of one node."""
    found: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for one in plan_rows(read, Selection(multi_node=False), Evaluations(none=True)).made:
        row = one.row
        memory = (row.get("kv-offloading", "none"), row.get("total-cpu-dram-gb") or None)
        served = (row["tp"], row["pp"], row["ep"], row["dp-attn"])
        drafts = row["spec-decoding"] != "none"
        found[one.entry].add((row["conc"], *served, *memory, drafts, row.get("max-model-len")))
    return found


def test_an_import_asks_for_the_same(tmp_path: Path) -> None:
    read = masters(tmp_path, FIXED + AGENTIC)
    native, project = imported(tmp_path / "made", read)
    assert (native.written, native.left_out) == (4, 0)
    assert ours(planned(project, "master")) == theirs(read)


def test_the_entry_in_our_words(tmp_path: Path) -> None:
    imported(tmp_path / "made", masters(tmp_path, FIXED))
    made = yaml.safe_load((tmp_path / "made/configs/master.yaml").read_text())
    assert made["dsv4-fp8-h200-vllm"] == {
        "model-prefix": "dsv4",
        "precision": "fp8",
        "framework": "vllm",
        "image": "vllm/vllm-openai:v1",
        "recipe": "model-h200-vllm",
        "cluster": "h200",
        "speculation": {"method": "mtp", "golden": "dsv4_mtp", "thinking": "on"},
        "scenarios": [
            {
                "workload": {
                    **{"isl": 8192, "osl": 1024},
                    **{"requests": "10*conc", "warmup-requests": "2*conc"},
                },
                "axes": {"conc": [4, 8, 16, 32, 48], "tp": 8, "max-model-len": 9472},
            },
            {
                "workload": {
                    **{"isl": 8192, "osl": 1024},
                    **{"requests": "10*conc", "warmup-requests": "2*conc"},
                },
                "axes": {
                    **{"conc": [64, 16], "tp": 4, "ep": 4, "dp-attention": True},
                    **{"k": 3, "max-model-len": 9472},
                },
            },
        ],
    }


def test_an_agentic_entry_replays_the_public_trace(tmp_path: Path) -> None:
    imported(tmp_path / "made", masters(tmp_path, AGENTIC))
    text = (tmp_path / "made/configs/master.yaml").read_text()
    assert "trace: semianalysis_cc_traces_weka_062126, duration-s: 3600" in text
    assert "kv-offload-backend: native" in text
    other = AGENTIC.replace("model-prefix: dsv4", "model-prefix: dsr1")
    imported(tmp_path / "other", masters(tmp_path, other))
    assert "weka_062126_256k" in (tmp_path / "other/configs/master.yaml").read_text()


def test_a_recipe_and_a_cluster_are_made_where_none_is(tmp_path: Path) -> None:
    text = FIXED.replace("h200", "b300")
    native, project = imported(tmp_path / "made", masters(tmp_path, text))
    recipe = yaml.safe_load((project.root / "recipes/model-b300-vllm.yaml").read_text())
    assert recipe["model"] == {"name": "org/Model", "weights": "hf:org/Model"}
    assert recipe["hardware"] == ["b300"]
    clusters = yaml.safe_load((project.root / "configs/clusters.yaml").read_text())
    assert clusters["b300"]["hardware"] == "b300"
    assert "local" in clusters
    assert [f.code for f in native.notes.findings] == ["skeleton", "skeleton"]
    assert planned(project, "master").candidates == 7


def test_a_recipe_of_the_project_is_used_and_its_axes_are_not(tmp_path: Path) -> None:
    home = tmp_path / "made/recipes"
    home.mkdir(parents=True)
    (home / "mine.yaml").write_text(
        "framework: vllm\nmodel: {name: M, weights: 'hf:org/Model'}\nhardware: [h200]\n"
        "axes: {k: 1, tp: 2, pp: 2, ep: 2, dp-attention: true, max-model-len: 99999}\n"
        "chat-template: true\n"
    )
    read = masters(tmp_path, FIXED)
    native, project = imported(tmp_path / "made", read)
    assert native.recipes == {}
    points = planned(project, "master").points
    served = {(p.arm.recipe, p.arm.axes.tp, p.arm.axes.pp, p.arm.axes.ep) for p in points}
    assert served == {("mine", 8, 1, 1), ("mine", 4, 1, 4)}
    assert {(p.arm.axes.tp, p.arm.axes.k, p.arm.axes.dp_attention) for p in points} == {
        (8, 0, False),
        (4, 3, True),
    }
    assert {p.arm.axes.max_model_len for p in points} == {9472}
    assert ours(planned(project, "master")) == theirs(read)


LEFT_OUT = [
    (FIXED, "framework: vllm", "framework: tilert", "no engine `tilert`", 2),
    (FIXED, "multinode: false", "multinode: false\n  router: { name: r, version: v }", "router", 2),
    (FIXED, "tp: 8, conc", "tp: 8, dcp-size: 8, conc", "dcp-size 8", 1),
    (FIXED, "tp: 8, conc", "tp: 8, pcp-size: 2, conc", "pcp-size 2", 1),
    (FIXED, "spec-decoding: mtp", "spec-decoding: draft_model", "draft model", 1),
    (FIXED, "model-prefix: dsv4", "model-prefix: dsr1", "named after dsr1", 1),
    (FIXED, "model-prefix: dsv4", "model-prefix: minimaxm3", "--golden minimaxm3_eagle3 or", 1),
    (AGENTIC, "name: hicache", "name: vllm-simple", "backend `vllm-simple`", 1),
    (MULTI, "image", "image", "several nodes", 1),
]


@pytest.mark.parametrize(("text", "old", "new", "word", "left"), LEFT_OUT)
def test_what_cannot_be_said_is_told(
    tmp_path: Path, text: str, old: str, new: str, word: str, left: int
) -> None:
    native, _ = imported(tmp_path / "made", masters(tmp_path, edited(old, new, text)))
    told = [f for f in native.notes.findings if f.code == "not-native"]
    assert native.left_out == left
    assert told
    assert all(word in f.sentence and f.where for f in told)


def test_drafts_need_k(tmp_path: Path) -> None:
    native, _ = imported(tmp_path / "made", masters(tmp_path, FIXED), k=None)
    assert (native.written, native.left_out) == (1, 1)
    assert "--k" in next(f.sentence for f in native.notes.findings if f.code == "not-native")


def test_a_k_that_no_golden_curve_has(tmp_path: Path) -> None:
    native, _ = imported(tmp_path / "made", masters(tmp_path, FIXED), k=99)
    assert "no length for K=99" in native.notes.findings[0].sentence


def test_a_golden_curve_may_be_chosen(tmp_path: Path) -> None:
    text = edited("model-prefix: dsv4", "model-prefix: minimaxm3", FIXED)
    read = masters(tmp_path, text)
    native, project = imported(tmp_path / "made", read, golden=("minimaxm3_eagle3_gqa",))
    assert native.left_out == 0
    told = [f for f in native.notes.findings if "draft" in f.sentence]
    assert [f.code for f in told] == ["skeleton"]
    assert ours(planned(project, "master")) == theirs(read)


def test_nothing_is_replaced(tmp_path: Path) -> None:
    read = masters(tmp_path, WHOLE)
    imported(tmp_path / "made", read)
    with pytest.raises(UsageError, match=r"master\.yaml exists"):
        imported(tmp_path / "made", read)


@pytest.mark.parametrize("text", ["a: foo\n", "- x\n", "a: {executor: local\n", "a: [1]\n", "\n"])
def test_nothing_is_added_to_faulty_clusters(tmp_path: Path, text: str) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/clusters.yaml").write_text(text)
    with pytest.raises(ConfigError) as raised:
        imported(tmp_path, masters(tmp_path, FIXED))
    assert {f.where and f.where.file for f in raised.value.findings} == {"configs/clusters.yaml"}


def test_a_made_recipe_has_a_name_that_a_file_may_have(tmp_path: Path) -> None:
    text = FIXED.replace("org/Model", '"org/My \\0 Mödel!"').replace(
        "runner: h200", "runner: a/b-c"
    )
    native, _ = imported(tmp_path / "made", masters(tmp_path, text))
    assert list(native.recipes) == ["my-m-del--a-b-vllm"]


def test_a_label_names_hardware() -> None:
    labels = ("cluster:mi355x-amds", "b200-dsv4", "h200")
    assert [family(label) for label in labels] == ["mi355x", "b200", "h200"]


@pytest.mark.slow
def test_the_public_files_ask_for_the_same(tmp_path: Path) -> None:
    public = shared("data/inferencex")
    names = ("amd-master", "nvidia-master")
    paths = [public / f"{name}.yaml" for name in names]
    read = read_masters(paths, public / "runners.yaml", Project(public, public))
    golden = ("minimaxm3_eagle3_gqa", "kimik3_dspark")
    native, project = imported(tmp_path, read, golden=golden)
    made, rows = ours(planned(project, *names)), theirs(read)
    told: Mapping[str, str] = {
        key: f.sentence for key in read.entries for f in native.notes.findings
        if f.code == "not-native" and f.level == "warning" and f"`{key}`" in f.sentence
    }  # fmt: skip
    assert native.written + native.left_out == 749
    assert native.written > 200
    for key, wanted in rows.items():
        assert made[key] <= wanted, key
        assert (made[key] == wanted) == (key not in told), key
