"""Findings as text."""

from __future__ import annotations

from infx.config.diagnostics import format_finding, format_findings
from infx.domain.findings import Finding, Where

FINDING = Finding(
    "unknown-key",
    "error",
    "`max-num-seq` is not an axis",
    Where("configs/x.yaml", 12, 9),
    "did you mean `max-num-seqs`?",
)


def test_place_source_caret_hint() -> None:
    assert format_finding(FINDING, "        max-num-seq: 4") == (
        "configs/x.yaml:12:9: unknown-key `max-num-seq` is not an axis\n"
        "   12 |         max-num-seq: 4\n"
        "      |         ^~~~~~~~~~~\n"
        "      = did you mean `max-num-seqs`?"
    )


def test_without_source_without_place() -> None:
    told = Finding("file-empty", "error", "x is empty", hint="fill it")
    assert format_finding(told) == "file-empty x is empty\n      = fill it"
    whole = Finding("file-empty", "error", "it is empty", Where("x.yaml"), "fill it")
    assert format_finding(whole, "ignored") == "x.yaml: file-empty it is empty\n      = fill it"


def test_an_error_without_a_hint_of_its_own_has_its_codes() -> None:
    text = format_finding(Finding("duplicate-key", "error", "`a` stands twice"))
    assert text == "duplicate-key `a` stands twice\n      = remove one of them"
    warned = Finding("duplicate-key", "warning", "`a` stands twice")
    assert format_finding(warned) == "duplicate-key `a` stands twice"
    assert format_finding(Finding("no-such-code", "error", "so")) == "no-such-code so"


def test_a_tab_takes_one_column() -> None:
    lines = format_finding(FINDING, "\t       max-num-seq: 4").splitlines()
    assert lines[1].index("max-num-seq") == lines[2].index("^")


def test_a_long_line_is_cut_around_the_caret() -> None:
    finding = Finding("wrong-type", "error", "no", Where("x.yaml", 1, 501))
    lines = format_finding(finding, "a" * 500 + "!BAD" + "b" * 500).splitlines()
    assert len(lines[1]) < 120
    assert lines[1][lines[2].index("^")] == "!"


def test_a_caret_beyond_the_line_stands_after_it() -> None:
    finding = Finding("bad-expression", "error", "no", Where("x.yaml", 1, 4))
    assert format_finding(finding, "abc").splitlines()[2] == "      |    ^"


def test_several() -> None:
    text = format_findings([FINDING, FINDING], lambda where: "        max-num-seq: 4")
    assert text.count("^~~~~~~~~~~\n") == 2


def test_what_a_terminal_would_obey_is_escaped() -> None:
    where = Where("a\x1b]0;x\x07.yaml", 1, 5)
    finding = Finding("bad-name", "error", "`\x1b[31m` \u202e", where, "not\r\n\x9b")
    text = format_finding(finding, "a\x1bb BAD")
    assert all(line.isprintable() for line in text.splitlines())
    head, source, caret, hint = text.splitlines()
    assert head == r"a\x1b]0;x\x07.yaml:1:5: bad-name `\x1b[31m` \u202e"
    assert source[caret.index("^") :] == "BAD"
    assert hint.endswith(r"not\r\n\x9b")


def test_words_of_every_script_stay() -> None:
    finding = Finding("bad-name", "error", "größe 数 é")
    assert format_finding(finding).splitlines()[0] == "bad-name größe 数 é"
