"""Files are read as PyYAML's safe loader reads them, with the place of every value."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infx.config.inferencex.tree import Map, Notes, Seq, read_tree

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
DATA = st.dictionaries(
    st.text(),
    st.recursive(
        SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6
    ),
    min_size=1,
    max_size=3,
)


def read(folder: Path, text: str | bytes) -> tuple[Map | None, Notes]:
    path = folder / "f.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    notes = Notes()
    return read_tree(path, "f.yaml", notes), notes


@given(data=DATA, flow=st.sampled_from([True, False, None]))
def test_what_pyyaml_writes_is_read_back(data: dict[str, Any], flow: bool | None) -> None:
    text = yaml.dump(data, Dumper=yaml.CSafeDumper, default_flow_style=flow, allow_unicode=True)
    with tempfile.TemporaryDirectory() as folder:
        tree, notes = read(Path(folder), text)
    assert tree == yaml.safe_load(text)
    assert notes.findings == []


SCALAR_TEXTS = [
    *("yes", "No", "on", "2_063_837", "010", "0x1F", "12:30", "1.5e+3", "1e3", "~", "null", ""),
    *("2026-01-31", ".inf", "-.5", "'8'", '"\\u00e9"', "fp4", "nvcr.io#nvidia/x:1"),
]


@pytest.mark.parametrize("text", SCALAR_TEXTS)
def test_a_scalar_is_what_their_loader_takes_it_for(tmp_path: Path, text: str) -> None:
    tree, _ = read(tmp_path, f"a: {text}\n")
    assert tree == yaml.safe_load(f"a: {text}\n")
    assert type((tree or {})["a"]) is type(yaml.safe_load(f"a: {text}\n")["a"])


def test_anchors_and_merge_keys_are_followed(tmp_path: Path) -> None:
    text = "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: [*x, {<<: [*x, {r: 4}]}]\n"
    tree, notes = read(tmp_path, text)
    assert tree == yaml.safe_load(text)
    assert notes.findings == []


MERGES = [
    "{<<: *x, q: 3, b: 4}",
    "{q: 3, z: 1, <<: *x}",
    "{<<: [*x, *y], r: 5}",
    "{<<: *x, <<: *y}",
    "{<<: [*y, {a: 9}], <<: *x}",
]


@pytest.mark.parametrize("text", MERGES)
def test_merged_keys_stand_in_the_order_of_their_loader(tmp_path: Path, text: str) -> None:
    whole = f"x: &x {{p: 1, q: 2, a: 3}}\ny: &y {{q: 7, p: 8, c: 9, d: 1}}\nm: {text}\n"
    tree, _ = read(tmp_path, whole)
    assert tree
    assert list(tree["m"].items()) == list(yaml.safe_load(whole)["m"].items())
    assert list(tree["m"].places) == list(tree["m"])


def test_places_are_those_of_the_file(tmp_path: Path) -> None:
    tree, _ = read(tmp_path, "a: 1\nb:\n  - {c: 2}\n  - x\n")
    assert isinstance(tree, Map)
    assert str(tree.key_at("b")) == "f.yaml:2:1"
    assert str(tree.value_at("a")) == "f.yaml:1:4"
    assert str(tree.value_at("absent")) == "f.yaml:1:1"
    items = tree["b"]
    assert isinstance(items, Seq)
    assert [str(items.at(0)), str(items.at(1))] == ["f.yaml:3:5", "f.yaml:4:5"]
    assert str(items[0].value_at("c")) == "f.yaml:3:9"
    assert str(items.where) == "f.yaml:3:3"


BAD = [
    (b"", "file-empty", "nothing"),
    (b"# only a comment\n", "file-empty", "nothing"),
    (b"- a\n", "wrong-type", "a list"),
    (b"word\n", "wrong-type", "a single value"),
    (b"a: [1\nb: 2\n", "yaml-syntax", ""),
    (b"a: 'x\n", "yaml-syntax", ""),
    (b"a:\n\t- 1\n", "tab-indent", "tab"),
    (b"a: \xff\n", "not-utf8", "0xff"),
    (b"a: 1\x00\n", "yaml-syntax", ""),
    (b"a: 1\n---\nb: 2\n", "yaml-syntax", "second document"),
    (b"a: *x\n", "anchor", "names nothing"),
    (b"a: &x [*x]\n", "anchor", "names nothing"),
    (b"a: !!python/object:os.system x\n", "anchor", "tags"),
    (b"1: x\n", "wrong-type", "not text"),
    (b"[a]: x\n", "wrong-type", "not text"),
    (b"a: {<<: 1}\n", "wrong-type", "mappings"),
    (b"a: =\n", "out-of-range", "no value"),
    (b"a: <<\n", "out-of-range", "no value"),
    (b"a: 2026-13-45\n", "out-of-range", "no value"),
    (b"a: " + b"9" * 5000 + b"\n", "out-of-range", "no value"),
    (b"a: " + b"[" * 60 + b"]" * 60 + b"\n", "yaml-syntax", "deeper"),
    (b"a: " + b"[" * 5000 + b"]" * 5000 + b"\n", "yaml-syntax", "nesting"),
]


@pytest.mark.parametrize(("data", "code", "word"), BAD)
def test_what_cannot_be_read_is_a_finding(
    tmp_path: Path, data: bytes, code: str, word: str
) -> None:
    _, notes = read(tmp_path, data)
    assert [(f.code, f.level) for f in notes.findings] == [(code, "error")]
    assert word in notes.findings[0].sentence


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none.yaml", "file-not-found"), (tmp_path, "file-unreadable")):
        assert read_tree(path, "x", notes := Notes()) is None
        assert [f.code for f in notes.findings] == [code]


@given(data=st.binary(max_size=200))
def test_bytes_never_crash_the_reader(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree, notes = read(Path(folder), data)
    assert tree is not None or notes.findings


@given(text=st.text(alphabet="ab:-[]{}&*!<>'\"#\n ,?|", max_size=60))
def test_punctuation_never_crashes_the_reader(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree, notes = read(Path(folder), text)
    assert tree is not None or notes.findings
