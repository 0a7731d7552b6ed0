"""The expression language agrees with Python where it speaks, and refuses everything else."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.config.expressions import Expression, parse_expression
from infx.domain.axes import AXES
from infx.domain.errors import ConfigError
from infx.domain.findings import Where
from tests.quiet_machine import quiet_s

NAMES = ("conc", "k", "max_num_seqs", "mono")
VALUES: dict[str, Any] = {"conc": 4, "k": 3, "max_num_seqs": 8, "mono": "on"}
PYTHON = {
    "__builtins__": {},
    **{f.__name__: f for f in (abs, int, len, max, min, round, sum)},
    "ceil": math.ceil,
    "floor": math.floor,
    "range": lambda *bounds: tuple(range(*bounds)),
}


def value_of(text: str, **values: Any) -> Any:
    return parse_expression(text, NAMES).evaluate(VALUES | values)


def outcome(text: str) -> Any:
    """The value of ``text``, or its error."""
    try:
        return value_of(text)
    except ConfigError as error:
        return error


def fault_of(text: str) -> tuple[str, int, str]:
    """The code, column and hint of the only fault of ``text``."""
    with pytest.raises(ConfigError) as raised:
        value_of(text)
    (finding,) = raised.value.findings
    assert finding.where is not None
    return finding.code, finding.where.col, finding.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("conc if conc <= 2 else 2*conc", 8),
        ("range(1, 2*conc+1)", (1, 2, 3, 4, 5, 6, 7, 8)),
        ("range(k+1, (k+1)*max_num_seqs+1, k+1)", (4, 8, 12, 16, 20, 24, 28, 32)),
        ("1 < k < 3", False),
        ("mono == 'on' and conc > 2", True),
        ("mono in ('on', 'off')", True),
        ("k not in [1, 2]", True),
        ("max(conc, ceil(max_num_seqs / 3))", 4),
        ("-k + +conc", 1),
        ("2**k // 3 % 2", 0),
        ("sum([conc, k]) - len((1, 2))", 5),
        ("round(7 / 2, 1)", 3.5),
        ("int(floor(3.7)) + abs(-1)", 4),
        ("None", None),
        ("True or conc / 0", True),
        ("  conc\n  + 1 ", 5),
        ("'é' + 'x'", "éx"),
    ],
)
def test_values(text: str, expected: Any) -> None:
    assert value_of(text) == expected
    assert type(value_of(text)) is type(expected)


def test_names() -> None:
    parsed = parse_expression("max(conc, k) if mono == 'on' else 1", NAMES)
    assert parsed.names == {"conc", "k", "mono"}
    assert parsed == Expression(parsed.text, parsed.names, lambda _: None)


@pytest.mark.parametrize(
    ("text", "col"),
    [
        ("conc.real", 1),
        ("1 + [c for c in (1,)]", 5),
        ("{1: 2}", 1),
        ("conc[0]", 1),
        ("lambda: 1", 1),
        ("(conc := 1)", 2),
        ("f'{conc}'", 1),
        ("b'x'", 1),
        ("...", 1),
        ("1j", 1),
        ("conc @ k", 1),
        ("conc << 2", 1),
        ("~conc", 1),
        ("conc is k", 1),
        ("open('x')", 1),
        ("'x'.join('y')", 1),
        ("max(*range(3))", 5),
        ("max((1,), default=2)", 1),
        ("__import__('os')", 1),
        ("1 +", 4),
        ("(1", 1),
        ("conc k", 6),
        ("", 1),
        ("1\x002", 1),
        ("'é' + conc.x", 7),
    ],
)
def test_off_the_list(text: str, col: int) -> None:
    assert fault_of(text)[:2] == ("bad-expression", col)


@pytest.mark.parametrize(
    "text", ["-" * 900 + "1", "(" * 400 + ")" * 400, "1+" * 499 + "1", "x" * 1001]
)
def test_too_much_text_is_refused(text: str) -> None:
    assert fault_of(text)[0] == "bad-expression"


@pytest.mark.parametrize(
    ("text", "hint"),
    [("conc && k", "`and`"), ("conc ? k : 1", "else"), ("conc = 4", "=="), ("!conc", "`not`")],
)
def test_habits_of_other_languages(text: str, hint: str) -> None:
    code, _, said = fault_of(text)
    assert code == "bad-expression"
    assert hint in said


@pytest.mark.parametrize(
    ("text", "col", "hint"),
    [
        ("2*con", 3, "did you mean `conc`?"),
        ("2*max-num-seqs", 3, "in expressions write `max_num_seqs`"),
        ("true", 1, "did you mean `True`?"),
        ("'é' + cnc", 7, "did you mean `conc`?"),
    ],
)
def test_unknown_names(text: str, col: int, hint: str) -> None:
    assert fault_of(text) == ("unknown-name", col, hint)


def test_every_unknown_name_is_told() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_expression("foo + conc + bar", NAMES)
    assert [f.where.col for f in raised.value.findings if f.where] == [1, 14]


def test_subtraction_of_axes_is_not_a_hyphenated_name() -> None:
    assert value_of("conc-k") == 1


@pytest.mark.parametrize(
    ("text", "col"),
    [
        ("1 + conc // (k - 3)", 5),
        ("conc % (k-3)", 1),
        ("1 + max(())", 5),
        ("range(0, 10**9)", 1),
        ("range(1.5)", 1),
        ("conc < mono", 1),
        ("conc * mono", 1),
        ("mono * 1000000", 1),
        ("mono % 3", 1),
        ("-mono", 1),
        ("10**65", 1),
        ("(10**9)**2", 1),
        ("3**40", 1),
        ("conc * 9007199254740991", 1),
        ("9007199254740992 + 1", 1),
        ("9007199254740992 / 0.000000001 * 2", 1),
        ("((((2**50)**-64)**-64)**64)", 3),
        ("round(conc, 0-10**9)", 1),
        ("round(conc, -16)", 1),
        ("round(mono, 1)", 1),
        ("sum(range(0, 9007199254740992, 900719925474))", 1),
        ("-range(100000)", 1),
        ("(-8)**0.5", 1),
        ("int('7')", 1),
        ("1 if conc in k else 2", 6),
    ],
)
def test_no_value(text: str, col: int) -> None:
    assert fault_of(text)[:2] == ("expression-failed", col)


def test_a_failure_is_short_whatever_the_values_are() -> None:
    with pytest.raises(ConfigError) as raised:
        value_of("conc * range(100000)", conc=tuple(range(1000)))
    assert len(raised.value.message) < 300


@pytest.mark.parametrize("text", ["9007199254740993", "1 + 1" + "0" * 400, "1e999 - conc"])
def test_a_literal_is_bounded(text: str) -> None:
    assert fault_of(text)[0] == "out-of-range"
    assert value_of("9007199254740992") == 2**53


@pytest.mark.parametrize(
    ("text", "col", "hint"),
    [
        ("conc > 2 and mono == 'onn'", 22, "did you mean `on`?"),
        ("mono in ['on', 'auto']", 16, "known: off, on"),
        ("conc < 2 < 3 or 'x' != mono", 17, "known: off, on"),
    ],
)
def test_a_word_that_is_not_in_the_vocabulary(text: str, col: int, hint: str) -> None:
    assert fault_of(text) == ("unknown-value", col, hint)


@pytest.mark.parametrize(
    "text",
    [
        "conc > 2",
        "not conc",
        "True",
        "queueing",
        "prefix_caching or queueing",
        "1 < k < 3 and mono == 'on'",
        "queueing if conc else k > 2",
    ],
)
def test_a_condition(text: str) -> None:
    parse_expression(text, AXES, condition=True)


@pytest.mark.parametrize(
    ("text", "col"),
    [
        ("2", 1),
        ("conc", 1),
        ("None", 1),
        ("'on'", 1),
        ("mono", 1),
        ("max(conc, 2)", 1),
        ("conc > 2 and k", 14),
        ("conc > 2 or (k - 1)", 14),
        ("queueing if conc else k", 23),
    ],
)
def test_no_condition(text: str, col: int) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_expression(text, AXES, condition=True)
    (finding,) = raised.value.findings
    assert finding.where is not None
    assert (finding.code, finding.where.col) == ("wrong-type", col)


def test_a_failure_says_what_was_used() -> None:
    with pytest.raises(ConfigError, match=r"`conc // \(k - 3\)` has no value for conc=4, k=3"):
        value_of("conc // (k - 3)")


def test_place_in_the_file() -> None:
    with pytest.raises(ConfigError, match=r"matrix\.yaml:7:25:"):
        parse_expression("2*con", NAMES, Where("matrix.yaml", 7, 23))
    with pytest.raises(ConfigError, match=r"matrix\.yaml:7:23:"):
        parse_expression("2*con", NAMES, Where("matrix.yaml", 7, 23), inline=False)


def test_a_conditional_takes_about_a_microsecond() -> None:
    evaluate = parse_expression("conc if conc <= 2 else 2*conc", NAMES).evaluate
    times = 2000
    took_s = quiet_s(lambda: [evaluate(VALUES) for _ in range(times)], rounds=20)
    assert took_s / times < 5e-6


_ATOMS = st.one_of(
    st.integers(0, 50).map(str),
    st.sampled_from(["conc", "k", "max_num_seqs", "mono", "True", "False", "None"]),
    st.floats(0, 99, allow_nan=False).map(lambda x: f"{x:.3f}"),
    st.sampled_from(["'on'", "'off'", '"x"']),
)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    operators = st.sampled_from(
        [
            "+",
            "-",
            "*",
            "/",
            "//",
            "%",
            "<",
            "<=",
            ">",
            ">=",
            "==",
            "!=",
            "and",
            "or",
            "in",
            "not in",
        ]
    )
    return st.one_of(
        st.tuples(inner, operators, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.integers(0, 4)).map(lambda t: f"({t[0]} ** {t[1]})"),
        st.tuples(st.sampled_from(["-", "+", "not "]), inner).map(lambda t: f"({t[0]}{t[1]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} < {t[1]} <= {t[2]})"),
        two.map(lambda t: f"({t[0]}, {t[1]})"),
        two.map(lambda t: f"[{t[0]}, {t[1]}]"),
        two.map(lambda t: f"max({t[0]}, {t[1]})"),
        two.map(lambda t: f"min({t[0]}, {t[1]})"),
        st.tuples(
            st.sampled_from(["abs", "round", "ceil", "floor", "len", "sum", "range"]), inner
        ).map(lambda t: f"{t[0]}({t[1]})"),
    )


def _in_python(text: str) -> Any:
    """Python's own value, tuples for lists; an exception's class when there is none."""
    try:
        return _frozen(eval(text, PYTHON | VALUES))
    except (ArithmeticError, TypeError, ValueError) as error:
        return type(error)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


@settings(max_examples=4 * settings.default.max_examples)
@given(st.recursive(_ATOMS, _grow, max_leaves=10))
def test_agrees_with_python(text: str) -> None:
    expected = _in_python(text)
    found = outcome(text)
    if isinstance(found, ConfigError):
        limits = ("at most", "is not a number", "is not a value of")
        ours_alone = any(limit in found.message for limit in limits)
        codes = ("expression-failed", "bad-expression", "out-of-range", "unknown-value")
        assert found.code in codes
        assert isinstance(expected, type) or ours_alone, (text, found.message)
    elif "[" not in text:  # a list is a tuple here
        assert found == expected
        assert type(found) is type(expected)


@settings(max_examples=2 * settings.default.max_examples)
@given(st.text(max_size=60) | st.text("conck +-*/%()[]{},.'<>=!&|:0123456789_abmx\n", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = outcome(text)
    if isinstance(found, ConfigError):
        assert all(f.where and f.where.line == 1 for f in found.findings)
