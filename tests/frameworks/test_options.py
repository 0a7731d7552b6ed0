"""Options out of a data file: what is read, what is rendered, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infx.domain.errors import ConfigError
from infx.frameworks import options as under_test
from infx.frameworks.base import Option
from infx.frameworks.options import (
    FLAGS_FOLDER,
    engine_options,
    environment,
    fault,
    flags_file,
    read_flags,
    words,
)

ENGINES = sorted(file.stem for file in FLAGS_FOLDER.glob("*.json"))

OPTIONS = {
    option.name: option
    for option in (
        Option("on", bool, "--on", "", negation="--no-on"),
        Option("only", bool, "--only", ""),
        Option("size", int, "--size", ""),
        Option("share", float, "--share", ""),
        Option("sizes", tuple, "--sizes", ""),
        Option("comma", tuple, "--comma", "", listed="commas"),
        Option("json", tuple, "--json", "", listed="json"),
        Option("delay", bool, "", "", env="DELAY"),
        Option("kind", str, "--kind", "", choices=("a", "b")),
        Option("level", int, "--level", "", choices=("0", "2")),
    )
}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("on", True, ["--on"]),
        ("on", False, ["--no-on"]),
        ("only", True, ["--only"]),
        ("only", False, []),
        ("size", 3, ["--size", "3"]),
        ("size", 0, ["--size", "0"]),
        ("share", 0.5, ["--share", "0.5"]),
        ("sizes", (1, 2), ["--sizes", "1", "2"]),
        ("comma", (1, 2), ["--comma", "1,2"]),
        ("json", (1, 2), ["--json", "[1,2]"]),
        ("size", None, []),
        ("delay", True, []),
    ],
)
def test_words(name: str, value: Any, expected: list[str]) -> None:
    assert words(OPTIONS, {name: value}) == expected


def test_environment() -> None:
    assert environment(OPTIONS, {"delay": True, "size": 3}) == {"DELAY": "1"}
    assert environment(OPTIONS, {"delay": False}) == {"DELAY": "0"}
    assert environment(OPTIONS, {"delay": None}) == {}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("on", True, ""),
        ("on", 1, "expected true or false"),
        ("size", 3, ""),
        ("size", True, "expected a whole number"),
        ("size", 3.5, "expected a whole number"),
        ("share", 1, ""),
        ("share", "1", "expected a number"),
        ("sizes", (1,), ""),
        ("sizes", 1, "expected a list"),
        ("kind", "a", ""),
        ("kind", "c", "expected one of a, b"),
        ("level", 2, ""),
        ("level", 1, "expected one of 0, 2"),
        ("level", None, ""),
    ],
)
def test_fault(name: str, value: Any, said: str) -> None:
    found = fault(OPTIONS[name], value)
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_data_file_says_what_it_was_read_from(engine: str) -> None:
    content = flags_file(engine)
    assert content.engine == engine
    assert content.version
    assert content.source
    assert len(content.options) > 10


@pytest.mark.parametrize("engine", ENGINES)
def test_every_flag_is_spelled_once(engine: str) -> None:
    rows = json.loads((FLAGS_FOLDER / f"{engine}.json").read_text())["flags"]
    spelled = [word for row in rows for word in (row["flag"], *row.get("aliases", ()))]
    assert len(spelled) == len(set(spelled))
    in_a_file = [word for word in spelled if not word.startswith("-")]
    assert not in_a_file or engine == "trtllm"  # entries of the file that --config names


def test_capacity_options_are_marked() -> None:
    more = Option("extra", int, "", "", env="EXTRA")
    made = engine_options("vllm", capacity=("block-size",), more=(more,))
    assert made["block-size"].capacity
    assert not made["dtype"].capacity
    assert made["extra"] is more
    with pytest.raises(ValueError, match="no flags of vllm: no-such"):
        engine_options("vllm", capacity=("no-such",))


def test_kinds_and_choices_of_vllm() -> None:
    flags = read_flags("vllm")
    assert flags["max-num-seqs"].kind is int
    assert flags["gpu-memory-utilization"].kind is float
    assert flags["cudagraph-capture-sizes"].kind is tuple
    assert flags["enable-prefix-caching"].negation == "--no-enable-prefix-caching"
    assert flags["disable-log-stats"].negation == ""
    assert "lmcache" in flags["kv-offloading-backend"].choices
    assert {"-tp", "--no-enforce-eager"} <= flags_file("vllm").spellings


@pytest.mark.parametrize("text", ["", "{", "{}", '{"version":"1","source":"","flags":[{}]}'])
def test_a_broken_data_file_is_named(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "FLAGS_FOLDER", tmp_path)
    (tmp_path / "broken.json").write_text(text)
    flags_file.cache_clear()
    with pytest.raises(ConfigError) as error:
        flags_file("broken")
    assert error.value.findings[0].code == "bad-record"
    assert "broken.json" in str(error.value.findings[0].where)
