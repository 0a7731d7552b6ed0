"""Lines that later steps of a workflow read: no value can end its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from infx.ci.outputs import output_lines

NAMES = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8"))


def read(text: str) -> dict[str, str]:
    """The values as GitHub's runner reads them: NAME=VALUE, or NAME<<MARK, lines, MARK."""
    found: dict[str, str] = {}
    lines = text.split("\n")[:-1]
    while lines:
        line = lines.pop(0)
        name, sign, value = line.partition("=")
        if not sign or "<<" in name:
            name, _, mark = line.partition("<<")
            end = lines.index(mark)
            value = "\n".join(lines[:end])
            lines = lines[end + 1 :]
        assert name not in found
        found[name] = value
    return found


@given(st.dictionaries(NAMES, TEXTS))
def test_every_value_is_read_as_it_was(values: dict[str, str]) -> None:
    assert read(output_lines(values)) == values


def test_a_value_cannot_add_another() -> None:
    text = output_lines({"reason": "x\ndecision=sweep\ninfx-\n", "decision": "nothing"})
    assert read(text)["decision"] == "nothing"
    assert output_lines({"run": "20260131-154502-3fa1"}) == "run=20260131-154502-3fa1\n"
