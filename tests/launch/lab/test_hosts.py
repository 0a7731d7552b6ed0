"""One marked line a lab in /etc/hosts, and nothing else of the file touched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from infx.launch.lab.hosts import with_line, without_line

NAMES = ("node1", "node2")
LINES = st.lists(st.sampled_from(["127.0.0.1 localhost", "# infx", "", "10.0.0.1 a # infx labx"]))
FILES = LINES.map(lambda lines: "".join(f"{line}\n" for line in lines))


@given(FILES)
def test_a_line_comes_and_goes(text):
    assert without_line(with_line(text, "lab1", NAMES), "lab1") == text


@given(FILES)
def test_there_is_one_line_a_lab(text):
    once = with_line(text, "lab1", NAMES)
    assert with_line(once, "lab1", NAMES) == once
    assert once.count("127.0.0.1 node1 node2 # infx lab1\n") == 1


def test_labs_do_not_touch_each_other():
    both = with_line(with_line("", "lab1", NAMES), "lab2", ("node1",))
    assert without_line(both, "lab1") == "127.0.0.1 node1 # infx lab2\n"
    assert without_line(both, "lab") == both


def test_a_file_without_a_last_newline_keeps_its_line():
    assert with_line("::1 ip6", "lab1", NAMES) == "::1 ip6\n127.0.0.1 node1 node2 # infx lab1\n"
