from __future__ import annotations

import json
from pathlib import Path

import pytest

from infx.workloads.traces import MalformedTraceError, read_trace
from tests.workloads.made_traces import session, write_traces


def test_a_folder_is_its_content_wherever_it_lies(tmp_path: Path) -> None:
    one, other = write_traces(tmp_path / "a"), write_traces(tmp_path / "b" / "c")
    found = read_trace(one)
    assert found.content == read_trace(other).content
    assert found.longest == 4 * 128 + 12
    assert [path.name for path in found.digests] == ["t0.json", "t1.json", "t2.json"]
    (other / "notes.txt").write_text("aiperf does not read it")
    assert read_trace(other).content == found.content
    (other / "t1.json").write_text(json.dumps(session(1, turns=5)))
    assert read_trace(other).content != found.content
    assert read_trace(other).longest == 5 * 128 + 12


def test_a_subagent_may_have_the_longest_request(tmp_path: Path) -> None:
    made = session(0)
    made["requests"][-1]["requests"][0]["in"] = 9000
    (tmp_path / "one.json").write_text(json.dumps(made))
    assert read_trace(tmp_path / "one.json").longest == 9012


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "x.json is no Weka trace: Input data was truncated"),
        ('{"id": "a", "requests": []}', "missing required field `block_size`"),
        ('{"id": "a", "block_size": 64, "requests": []}', "holds no request with tokens"),
        ('{"id": "a", "block_size": 64, "requests": [{"in": "9"}]}', "$.requests[0].in"),
        ('[{"isl": 3}]', "Expected `object`, got `array`"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, text: str, words: str) -> None:
    write_traces(tmp_path / "t")
    (tmp_path / "t" / "x.json").write_text(text)
    with pytest.raises(MalformedTraceError) as raised:
        read_trace(tmp_path / "t")
    assert words in str(raised.value)


def test_a_folder_without_sessions(tmp_path: Path) -> None:
    with pytest.raises(MalformedTraceError, match=r"holds no \.json file"):
        read_trace(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_trace(tmp_path / "t.json")
