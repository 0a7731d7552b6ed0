"""Added lines of a diff, and what a changelog entry selects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.review.bundle import Addition
from infx.review.facts import added_lines, same_commit, selected

DIFF = """\
diff --git a/x b/x
--- a/x
+++ b/x
@@ -1,3 +1,4 @@ context
 one
--- looks like a header
+++ looks like one too
+two
 three
@@ -9 +10 @@
-old
+new
\\ No newline at end of file
diff --git a/y b/y
--- /dev/null
+++ b/y
@@ -0,0 +1 @@
+only
"""


def test_added_lines_have_their_file_and_number() -> None:
    found = [(line.file, line.number, line.text) for line in added_lines(DIFF)]
    assert found == [
        ("x", 2, "++ looks like one too"),
        ("x", 3, "two"),
        ("x", 10, "new"),
        ("y", 1, "only"),
    ]
    assert [line.file for line in added_lines(DIFF, ["^x$"])] == ["y"]


@pytest.mark.parametrize(
    ("pattern", "key", "expected"),
    [
        ("a-*-c", "a-b-c", True),
        ("a-b-c", "a-b-c", True),
        ("a-?-c", "a-b-c", False),
        ("a-[b]-c", "a-b-c", False),
        ("A-*", "a-b", False),
    ],
)
def test_only_the_star_is_a_wildcard(pattern: str, key: str, expected: bool) -> None:
    addition = Addition(config_keys=(pattern,), description=("x",), pr_link="")
    assert selected(addition, key) is expected


@given(st.text("0123456789abcdef", max_size=40), st.text("0123456789abcdef", max_size=40))
def test_commits_are_the_same_by_seven_digits(one: str, other: str) -> None:
    assert same_commit(one, other) == same_commit(other, one)
    assert same_commit(one, one) == (len(one) >= 7)
