from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from infx.frameworks.prometheus import note, notes, parse

PAGE = """# HELP infx:steps_total steps
# TYPE infx:steps_total counter
infx:steps_total{width="4"} 3
infx:steps_total{width="8",note="a \\"b\\" {c}"} 2 1700000000000
infx:share NaN
infx:bucket{le="+Inf"} 1e3
this is no sample
infx:broken{width="4"} three
"""

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)


def test_sums_and_labels() -> None:
    page = parse(PAGE)
    assert page.total("infx:steps_total") == 5
    assert page.by_label("infx:steps_total", "width") == {"4": 3, "8": 2}
    assert page.largest("infx:steps_total") == 3
    assert page.largest("infx:broken") is None
    assert page.total("infx:bucket") == 1000
    assert page.total("infx:broken") is None
    assert page.samples[1].labels["note"] == 'a "b" {c}'


def test_growth() -> None:
    before, after = parse("a_total 3\nb_total 9\n"), parse("a_total 5\nb_total 2\nc_total 4\n")
    assert after.since(before, "a_total") == 2
    assert after.since(before, "b_total") == 2  # reset by a restart
    assert after.since(before, "c_total") == 4
    assert after.since(before, "d_total") is None


@given(NAMES, st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(), st.floats(width=32))
def test_every_sample_comes_back(name: str, label: str, text: str, number: float) -> None:
    text = "".join(text.splitlines())  # a value may hold no line end but an escaped one
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    [sample] = parse(f'{name}{{{label}="{escaped}"}} {number!r}\n').samples
    assert (sample.name, sample.labels) == (name, {label: text})
    assert sample.value == number or number != number  # NaN is no equal of itself


def test_a_page_of_json_is_kept_with_a_scrape() -> None:
    told = {"internal_states": [{"avg_spec_accept_length": 2.78}], "version": "a\nb"}
    text = PAGE.rstrip() + note("/server_info", told) + note("/version", {})
    assert notes(text) == {"/server_info": told, "/version": {}}
    assert len(parse(text).samples) == len(parse(PAGE).samples)
    assert notes(PAGE) == {}
