from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from infx.launch.events import Tail

LINES = [b'{"t": 1, "event": "a"}', b'{"t": 2.5, "event": "b", "point": null, "new": [1]}']


def test_a_file_that_is_not_there_yet_has_no_events(tmp_path: Path):
    assert Tail(tmp_path / "events.jsonl").read() == []


@given(st.lists(st.integers(0, 60), max_size=6))
def test_cut_anywhere_each_line_is_read_once(tmp_path_factory, cuts):
    path = tmp_path_factory.mktemp("tail") / "events.jsonl"
    data = b"\n".join(LINES * 2) + b"\n"
    tail, seen = Tail(path), []
    for cut in [*sorted(cuts), len(data)]:
        path.write_bytes(data[:cut])
        seen += [event.event for event in tail.read()]
    assert seen == ["a", "b", "a", "b"]


def test_a_torn_line_waits_and_a_broken_one_is_passed_over(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(LINES[0] + b'\n{"t": 3, "ev')
    tail = Tail(path)
    assert [event.t for event in tail.read()] == [1]
    assert tail.read() == []
    path.write_bytes(LINES[0] + b'\n{"t": 3, "ev\n' + LINES[1] + b"\n")
    assert [event.t for event in tail.read()] == [2.5]
