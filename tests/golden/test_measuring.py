"""Measuring on a running server: what is asked of it, and every way in which it cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from infx.domain.errors import InfxError
from infx.frameworks import get
from infx.golden.curve import Curve, Sampling
from infx.golden.prompts import gsm_mini
from infx.job import golden_server
from infx.job.golden_run import Asked, Progress, Standing, collect, save_curve
from infx.job.golden_server import connect
from tests.cli.commands import here
from tests.golden.broken_engine import Behaviour, broken_engine

SAMPLING = Sampling(content="version 2.0", prompts=4, shots=1, batch=2, output_len=32)


def collected(
    url: str,
    curve: Curve | None = None,
    save: Callable[[Curve], None] = lambda _: None,
    tell: Callable[[Progress], None] = lambda _: None,
    **changes: Any,
) -> Curve:
    fields: dict[str, Any] = {
        "wanted": (("off", 3),),
        "method": "eagle3",
        "sampling": SAMPLING,
        "prompts": gsm_mini(4, 1, 0),
    }
    asked = Asked(**{**fields, **changes})
    return collect(Standing(connect(get("infx"), url)), asked, curve, save, tell)


def test_lengths_come_from_the_counters() -> None:
    behaviour, told = Behaviour(), list[Progress]()
    with broken_engine(behaviour) as url:
        found = collected(url, tell=told.append, hardware="a board")
    value = found.values["off"][3]
    assert value.estimate.length == 1 + 57 / 40
    assert [(batch.accepted, batch.steps) for batch in value.batches] == [(30, 20), (27, 20)]
    assert value.made.hardware == "a board"
    assert value.made.engine == "infx 9.9"
    assert [(p.phase, p.done) for p in told] == [
        ("starting", 0),
        ("measuring", 0),
        ("measuring", 1),
        ("measuring", 2),
        ("measured", 0),
    ]


def test_what_every_request_asks() -> None:
    behaviour = Behaviour()
    with broken_engine(behaviour) as url:
        collected(url)
    body = next(b for b in behaviour.asked if b["messages"] == list(gsm_mini(4, 1, 0).chats[0]))
    assert body["chat_template_kwargs"] == {"thinking_mode": "disabled"}
    assert (body["max_tokens"], body["temperature"], body["top_p"]) == (32, 0.0, 1.0)
    assert "Question:" in body["stop"]
    assert "seed" not in body
    assert all(h["X-Infx-Require"] == "real-acceptance" for h in behaviour.headers)
    assert len(behaviour.asked) == 4


def test_draws_have_a_seed_each() -> None:
    behaviour = Behaviour()
    sampling = Sampling(prompts=4, batch=2, seed=7, temperature=0.6, top_k=20)
    with broken_engine(behaviour) as url:
        collected(url, sampling=sampling)
    assert sorted(body["seed"] for body in behaviour.asked) == [7, 8, 9, 10]
    assert {body["top_k"] for body in behaviour.asked} == {20}


def test_only_what_is_missing_is_measured() -> None:
    behaviour, saved = Behaviour(), list[Curve]()
    with broken_engine(behaviour) as url:
        first = collected(url, save=saved.append)
        whole = collected(url, first, saved.append, wanted=(("on", 3), ("off", 3)))
    assert saved == [first, first, whole]
    assert whole.values["off"] == first.values["off"]
    assert [*whole.values] == ["on", "off"]
    assert len(behaviour.asked) == 8


BROKEN = {
    "synthetic": (Behaviour(acceptance={"mode": "synthetic", "length": 2.5}), "acceptance-mode"),
    "refuses": (Behaviour(status=409), "acceptance-mode"),
    "no drafts": (Behaviour(config={"k": 0, "method": "none"}), "no-speculation"),
    "another K": (Behaviour(config={"k": 2, "method": "eagle3"}), "k-differs"),
    "another method": (Behaviour(config={"k": 3, "method": "dspark"}), "k-differs"),
    "no counters": (Behaviour(counters=False), "counters-missing"),
    "no step": (Behaviour(steps=0), "counters-missing"),
    "busy": (Behaviour(running=2), "server-busy"),
    "fails": (Behaviour(status=500), "request-failed"),
    "hangs up": (Behaviour(hang_up_after=2), "server-hung"),
    "refuses thinking": (Behaviour(thinking="refused"), "thinking-unsupported"),
    "ignores thinking": (Behaviour(thinking="ignored"), "thinking-unsupported"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_way_in_which_it_cannot_be_measured(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden_server, "QUIET_LOOKS", 2)
    behaviour, code = BROKEN[case]
    wanted = (("on" if "thinking" in case else "off", 3),)
    with broken_engine(behaviour) as url, pytest.raises(InfxError) as raised:
        collected(url, wanted=wanted)
    assert raised.value.code == code


def test_a_mode_is_named_with_what_to_do() -> None:
    with broken_engine(Behaviour(thinking="refused")) as url, pytest.raises(InfxError) as raised:
        collected(url, wanted=(("on", 3),))
    assert "thinking on: stub refuses it: no thinking here" in str(raised.value)
    assert "--thinking off" in raised.value.hint


def test_nobody_at_the_url() -> None:
    with broken_engine(Behaviour()) as url:
        pass
    with pytest.raises(InfxError) as raised:
        connect(get("infx"), url)
    assert raised.value.code == "server-hung"


def test_a_server_of_another_model() -> None:
    with broken_engine(Behaviour()) as url, pytest.raises(InfxError, match="lists stub") as raised:
        connect(get("infx"), url, "mine")
    assert raised.value.code == "wrong-model"


# Through the command line, with a server that stands


def options(url: str) -> list[str]:
    return ["--url", url, "--count", "4", "--conc", "2", "--shots", "1", "--output-len", "32"]


def test_a_curve_by_url_and_whether_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with broken_engine(Behaviour()) as url:
        done = here("golden", "collect", *options(url), "--hardware", "a board")
        assert done.returncode == 0, done.stderr
        path = tmp_path / "golden_al" / "stub_eagle3.yaml"
        assert str(path) in done.stdout
        lengths = {3: 2.42}
        assert yaml.safe_load(path.read_text()) == {
            "stub": {"thinking_on": lengths, "thinking_off": lengths}
        }
        held = here("golden", "check", "stub_eagle3", "--url", url, "--thinking", "off", "--json")
        assert held.returncode == 0, held.stderr
        told = json.loads(held.stdout)
        assert [(v["k"], v["golden"], v["holds"]) for v in told["data"]["verdicts"]] == [
            (3, 2.42, True)
        ]
    with broken_engine(Behaviour(accepts=(25, 29, 25, 29))) as url:
        off = here("golden", "check", path, "--url", url)
    assert off.returncode == 1
    assert "golden-differs" in off.stderr
    assert "2.42 at K=3 with thinking on; now it is 3.700" in off.stderr
    shown = here("golden", "show", "stub_eagle3")
    assert "2.42    0.953  40" in shown.stdout
    assert "a board" in shown.stdout


def test_a_public_curve_is_checked_at_the_k_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    curve = tmp_path / "public.yaml"
    curve.write_text(
        "stub:\n  thinking_off: {1: 1.70, 2: 2.10, 3: 2.42}\n  thinking_on: {1: 1.6}\n"
    )
    words = ["golden", "check", curve, "--thinking", "off", "--json"]
    with broken_engine(Behaviour()) as url:
        told = json.loads(here(*words, *options(url)).stdout)
        (verdict,) = told["data"]["verdicts"]
        assert (verdict["k"], verdict["interval"], verdict["holds"]) == (3, None, True)
        other = here("golden", "check", curve, "--thinking", "on", *options(url))
    assert other.returncode == 2
    assert "golden-k-missing: public.yaml holds no K=3 thinking on" in other.stderr


def test_a_golden_file_that_was_lost_is_written_again_from_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, behaviour = tmp_path / "a.yaml", Behaviour()
    with broken_engine(behaviour) as url:
        words = ["golden", "collect", *options(url), "--thinking", "off", "-o", "a.yaml"]
        here(*words)
        text = path.read_text()
        path.unlink()
        assert here(*words).returncode == 0
    assert path.read_text() == text
    assert len(behaviour.asked) == 4


def test_an_edited_value_has_no_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with broken_engine(Behaviour()) as url:
        here("golden", "collect", *options(url), "--thinking", "off", "-o", "a.yaml")
    path = tmp_path / "a.yaml"
    path.write_text(path.read_text().replace("3: 2.42", "3: 2.43"))
    shown = json.loads(here("golden", "show", "./a.yaml", "--json").stdout)
    (value,) = shown["data"]["files"][0]["values"]
    assert (value["length"], value["half_width"]) == (2.43, None)


def test_a_file_that_infx_did_not_measure_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "stub:\n  thinking_off:\n    3: 2.00\n"
    (tmp_path / "a.yaml").write_text(text)
    with broken_engine(Behaviour()) as url:
        words = ["golden", "collect", *options(url), "--thinking", "off", "-o", "a.yaml"]
        refused = here(*words)
        assert refused.returncode == 2
        assert "golden-settings" in refused.stderr
        assert (tmp_path / "a.yaml").read_text() == text
        assert here(*words, "--fresh").returncode == 0
        other = here(*words, "--output-len", "33")
        assert "output_len: 32 there, 33 now" in other.stderr
        assert other.returncode == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["collect"], "bad-option"),
        (["collect", "minimaxm3-mini-cpu-infx", "--url", "http://h:1"], "bad-option"),
        (["collect", "minimaxm3-mini-cpu-infx"], "no-speculation"),
        (["collect", "minimaxm3-mini-cpu-inf"], "unknown-reference"),
        (["collect", "smollm2-135m-q4-cpu-llamacpp", "--method", "eagle3"], "unsupported-axis"),
        (["collect", "nobody", "-c", "quickstart"], "bad-option"),
        (["collect", "minimaxm3-mini-cpu-infx", "-c", "quickstart", "--k", "9-17"], "too-many"),
        (["collect", "minimaxm3-mini-cpu-infx", "-c", "quickstart", "--k", "0-2"], "bad-option"),
        (["collect", "x", "--thinking", "maybe"], "bad-option"),
        (["collect", "x", "--count", "4"], "bad-option"),
        (["collect", "x", "--kwargs-on", "[]"], "bad-option"),
        (["collect", "x", "--prompts", "none.txt"], "file-not-found"),
        (["collect", "--url", "https://h/v1"], "bad-option"),
        (["collect", "--url", "http://h:1", "--k", "1-3"], "bad-option"),
        (["check", "minimaxm3_eagle3_gqa", "--k", "9"], "golden-k-missing"),
        (["check", "minimaxm3_eagle3_gqa"], "bad-option"),
        (["check", "minimaxm3_eagle"], "unknown-reference"),
        (["show", "minimaxm3_eagle"], "unknown-reference"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(
    words: list[str], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = here("golden", *words)
    assert done.returncode == 2
    assert code in done.stderr
    assert not [*tmp_path.iterdir()]


def test_every_shipped_curve_is_shown() -> None:
    shown = here("golden", "show")
    assert shown.returncode == 0
    assert "on        3  2.78" in shown.stdout
    assert "B300" in shown.stdout


def test_a_collection_without_a_value_leaves_no_file(tmp_path: Path) -> None:
    with broken_engine(Behaviour(status=500)) as url, pytest.raises(InfxError):
        collected(url, save=lambda curve: save_curve(curve, tmp_path / "a.yaml"))
    assert not [*tmp_path.iterdir()]
