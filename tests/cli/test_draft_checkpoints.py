"""Where drafts are found on a machine, and what is read of their files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from infx.cli.draft_checkpoints import drafts_on
from infx.domain.record import PointRecord, Provenance
from infx.review.bundle import Draft, DraftLayer
from tests.store.tiny_plans import arm, point, record


def speculating(draft: str = "", **server: object) -> PointRecord:
    made = replace(arm(), framework="infx", draft=draft)
    made = replace(made, axes=replace(made.axes, k=3))
    return replace(record(point(made, 1), "r", "j"), provenance=Provenance(server=server))


def checkpoint(folder: Path, config: object = None, **tensors: str) -> Path:
    folder.mkdir(parents=True)
    header = json.dumps({name: {"dtype": kind} for name, kind in tensors.items()}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    (folder / "config.json").write_text(json.dumps(config or {"torch_dtype": "bfloat16"}))
    return folder


def test_what_ships_with_infx_is_read_from_its_files(tmp_path: Path) -> None:
    server = {"weights": "shipped", "shape": "mini", "method": "eagle3", "dtype": "float32"}
    [draft] = drafts_on([speculating(**server)], tmp_path, [])
    assert (draft.model, draft.stored) == ("tiny", "bf16")
    assert draft.where == "tiny/eagle3.safetensors"
    assert {layer.effective for layer in draft.layers} == {"fp32"}


@pytest.mark.parametrize(
    "server",
    [
        {},
        {"weights": "shipped", "shape": "no-such-model", "method": "eagle3"},
        {"weights": "shipped", "shape": "mini", "method": "another"},
        {"weights": "random:7", "shape": "mini", "method": "eagle3"},
    ],
)
def test_what_is_not_there_is_not_told(tmp_path: Path, server: dict[str, object]) -> None:
    assert drafts_on([speculating(**server)], tmp_path, []) == []


def test_a_folder_of_the_project_is_a_draft(tmp_path: Path) -> None:
    checkpoint(tmp_path / "draft", fc="F32")
    [draft] = drafts_on([speculating("draft")], tmp_path, [])
    assert (draft.stored, draft.where) == ("fp32", "draft")


def test_the_cache_of_the_hub_is_asked_for_its_main_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    kept = tmp_path / "hub/models--org--draft"
    checkpoint(kept / "snapshots/1111", fc="F32")
    assert drafts_on([speculating("org/draft")], tmp_path, [])[0].stored == "fp32"
    checkpoint(kept / "snapshots/2222", fc="BF16")
    (kept / "refs").mkdir()
    (kept / "refs/main").write_text("2222")
    assert drafts_on([speculating("org/draft")], tmp_path, [])[0].stored == "bf16"


def test_a_checkpoint_says_itself_what_it_holds(tmp_path: Path) -> None:
    checkpoint(tmp_path / "draft", fc="F32")
    layers = (DraftLayer(name="fc", stored="fp32", effective="fp32"),)
    given = Draft(model="draft", stored="bf16", layers=layers)
    [draft] = drafts_on([speculating("draft")], tmp_path, [given])
    assert (draft.stored, draft.where, draft.layers) == ("fp32", "draft", layers)
    elsewhere = Draft(model="other", stored="bf16")
    assert elsewhere in drafts_on([speculating("draft")], tmp_path, [elsewhere])


@pytest.mark.parametrize(
    "data",
    [b"", b"\x08", b"\xff" * 40, b"\x04\0\0\0\0\0\0\0null", b'\x09\0\0\0\0\0\0\0{"fc": 1}'],
)
def test_a_broken_file_tells_nothing(tmp_path: Path, data: bytes) -> None:
    folder = checkpoint(tmp_path / "draft", fc="F32")
    (folder / "model.safetensors").write_bytes(data)
    assert drafts_on([speculating("draft")], tmp_path, []) == []
