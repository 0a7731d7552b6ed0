"""The files: a golden file for every YAML reader, and the record beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from infx.config.library import Library
from infx.config.project import Project
from infx.domain.errors import ConfigError, UsageError
from infx.domain.findings import Where
from infx.golden.curve import Sampling, Source, Subject, read_curve
from infx.golden.text import golden_text, record_path
from infx.job.golden_run import save_curve
from tests.golden.curves import MADE, SAMPLING, SUBJECT, curve, value


def test_plain_readers_and_ours_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "golden_al" / "mini_eagle3.yaml"
    save_curve(curve().plus("on", 2, value((30, 40), (28, 40))), path)
    expected = {"thinking_on": {2: 1.73}, "thinking_off": {1: 1.62, 3: 2.53}}
    assert yaml.safe_load(path.read_text()) == {"minimaxm3-mini": expected}
    library = Library(Project(tmp_path, tmp_path))
    assert library.golden("mini_eagle3", Where("x")) == {
        "on": {2: 1.73},
        "off": {1: 1.62, 3: 2.53},
    }
    assert library.golden_file(path) == (
        "minimaxm3-mini",
        {"on": {2: 1.73}, "off": {1: 1.62, 3: 2.53}},
    )
    library.report.check()


def test_the_record_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.b.yaml"
    save_curve(curve(), path)
    assert record_path(path).name == "a.b.measured.json"
    assert read_curve(record_path(path)) == curve()
    assert read_curve(tmp_path / "none.json") is None


def test_a_record_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.measured.json"
    path.write_text('{"subject": 3}')
    with pytest.raises(ConfigError) as raised:
        read_curve(path)
    assert raised.value.code == "bad-record"
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "told",
    [
        f"Source command: {MADE.command}",
        "dataset: gsm_mini (version 2.0), 8 prompts, 5 shots, seed 0",
        "| temperature: 0.0 | top_p: 1.0 | top_k: 0 | output_len: 256",
        'thinking_off chat_template_kwargs: {"thinking_mode": "disabled"}',
        "method=eagle3",
        "minimaxm3-mini (a processor, 2 cores, infx 0.1.0 EAGLE3)",
        "weights: random:0",
        "date: 2026-11-30T10:00:00+00:00 | infx 0.1.0 at 0123456789ab",
        "interval: 95%",
        "    1: 1.62  # ± 0.25, 200 steps",
    ],
)
def test_the_file_says_how_it_was_made(told: str) -> None:
    assert told in golden_text(curve(), "mini")


def test_a_mode_that_was_not_measured_is_not_claimed() -> None:
    assert "thinking_on" not in golden_text(curve(), "mini")


def test_odd_model_ids_stay_one_key() -> None:
    odd = replace(SUBJECT, model="org/Name: v2 #x")
    text = golden_text(curve(subject=odd), "x")
    assert list(yaml.safe_load(text)) == ["org/Name: v2 #x"]


def test_values_are_added_in_order() -> None:
    found = curve().plus("off", 2, value((9, 9), (8, 9))).plus("on", 1, value((1, 9), (2, 9)))
    assert [*found.values] == ["on", "off"]
    assert [*found.values["off"]] == [1, 2, 3]
    assert found.has("on", 1)
    assert not found.has("on", 2)


@pytest.mark.parametrize(
    ("subject", "sampling", "told"),
    [
        (replace(SUBJECT, weights_identity="ab"), SAMPLING, "weights_identity: '' there, 'ab' now"),
        (SUBJECT, replace(SAMPLING, output_len=9), "output_len: 256 there, 9 now"),
        (SUBJECT, replace(SAMPLING, thinking={"off": {"a": 1}}), "thinking:"),
    ],
)
def test_what_differs_is_not_mixed(subject: Subject, sampling: Sampling, told: str) -> None:
    with pytest.raises(UsageError, match=told) as raised:
        curve().joined(subject, sampling, Source())
    assert raised.value.code == "golden-settings"


def test_the_words_of_a_mode_that_is_not_there_may_change() -> None:
    other = replace(SAMPLING, thinking={**SAMPLING.thinking, "on": {"enable_thinking": True}})
    assert curve().joined(SUBJECT, other, Source()).sampling == other
