"""What plain scalars mean, and which are refused because YAML readers differ."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infx.config.nodes import Report, plain, read_yaml
from infx.config.scalars import beyond, doubt, resolve

AMBIGUOUS = [
    "yes", "no", "y", "n", "Yes", "NO", "True", "FALSE", "On", "OFF", "~", "Null", "=", "010",
    "0o10", "0x1F", "0b11", "-07", "1_000", "1_0.5", "12:30", "1:20:30.5", "1e3", "1.5e3",
    "-2E5", ".5e1", ".inf", "-.Inf", ".nan", "2026-11-29", "2026-11-29T10:00:00Z", "00", "09",
    "-.5",
]  # fmt: skip


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_doubtful(text: str) -> None:
    assert doubt(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("", None),
        ("0", 0),
        ("-12", -12),
        ("+3", 3),
        ("1.50", 1.5),
        (".5", 0.5),
        ("1.0e+3", 1000.0),
        ("1.2.3", "1.2.3"),
        ("2*conc", "2*conc"),
        ("8x", "8x"),
        ("-", "-"),
        ("none", "none"),
        ("fp8", "fp8"),
        ("sha256:00", "sha256:00"),
        ("random:0", "random:0"),
        ("2026.10.11549", "2026.10.11549"),
        ("never", "never"),
    ],
)
def test_certain(text: str, value: object) -> None:
    assert doubt(text) is None
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "far"),
    [
        ("9007199254740992", False),
        ("-9007199254740993", True),
        ("9" * 5000, True),
        ("9007199254740994.0", True),
        ("1.0e+999", True),
        ("2.5", False),
        ("9" * 5000 + "x", False),
    ],
)
def test_numbers_beyond_what_every_reader_holds(text: str, far: bool) -> None:
    assert beyond(text) is far


@given(st.from_regex(r"[-+]?[0-9.:_eExob~ynYNTZ-]{1,8}", fullmatch=True))
def test_what_is_certain_means_the_same_to_yaml_1_1(text: str) -> None:
    if doubt(text) is None:
        try:
            other = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError):
            return
        if isinstance(other, str | int | float | bool):
            assert resolve(text) == other


def test_a_file_as_plain_values(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("﻿a: [on, 'yes', \"010\"]\r\n3: {b: |\n  }\n".replace("{b: |\n  }", "{b: é}"))
    report = Report()
    node, digest = read_yaml(path, "x.yaml", report)
    assert report.findings == []
    assert node is not None
    assert plain(node) == {"a": ["on", "yes", "010"], 3: {"b": "é"}}
    assert len(digest) == 64
