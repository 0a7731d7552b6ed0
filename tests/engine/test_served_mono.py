"""Mono behind the server: what it says of itself, and that turning it on changes no text."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from infx.domain.errors import InfraError
from infx.engine.arguments import parse
from infx.engine.mono.coverage import Coverage
from infx.engine.mono.refusal import Refusal
from infx.engine.runner import Runner
from infx.engine.server.info import Info
from tests.engine.running_engine import Running, running

FLAGS = ("--weights", "shipped", "--max-num-seqs", "8", "--max-model-len", "1024")
DRAFT = ("--speculative-method", "eagle3", "--num-speculative-tokens", "3")


def texts(server: Running, count: int) -> list[str]:
    """Answers to ``count`` prompts of different lengths, all asked at once."""

    def ask(number: int) -> str:
        prompt = f"Tom has {number} apples and buys {number + 3} more. " * (1 + number % 3)
        body = {"model": "mini", "prompt": prompt, "max_tokens": 24, "ignore_eos": True}
        status, answer = server.post("/v1/completions", body | {"temperature": 0})
        assert status == 200, answer
        return answer["choices"][0]["text"]

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(ask, range(count)))


def refusals(server: Running) -> dict[str, int]:
    """Steps that mono did not serve, by code."""
    found = re.findall(r'mono_refusals_total\{code="(\S+)"\} (\d+)', server.get("/metrics"))
    return {code: int(count) for code, count in found}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("flags", [(), DRAFT], ids=["plain", "drafts"])
def test_turning_mono_on_changes_no_text(flags):
    with running(*FLAGS, *flags, "--mono", "off") as off, running(*FLAGS, *flags) as same:
        expected = texts(off, 3)
        assert texts(same, 3) == expected
        assert off.metric("mono_eligible_steps_total") == 0
        assert off.get("/server_info")["mono"] is None
    with running(*FLAGS, *flags, "--mono", "on") as on:
        assert texts(on, 3) == expected
        served, eligible = (on.metric(f"mono_{n}_total") for n in ("steps", "eligible_steps"))
        assert served == eligible > 0
        assert refusals(on).keys() == {"mono-prefill"}
        info = on.get("/server_info")
        assert (info["config"]["mono"], info["config"]["layers"]) == ("on", "compiled")
        assert info["mono"]["mono"] == served
        assert info["mono"]["coverage"] == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_steps_of_more_rows_than_mono_has_are_served_and_not_eligible():
    with running(*FLAGS, *DRAFT, "--mono", "on") as server:
        together = texts(server, 8)
        wide = refusals(server)["mono-too-many-rows"]
        assert wide > 0
        info = server.get("/server_info")["mono"]
        assert info["coverage"] == 1 > info["share"]
        assert info["decode"] >= info["eligible"] + wide
        alone = [texts_of_one(server, number) for number in (0, 7)]
    assert alone == [together[0], together[7]]


def texts_of_one(server: Running, number: int) -> str:
    """The answer to one of the prompts of `texts`, asked alone."""
    prompt = f"Tom has {number} apples and buys {number + 3} more. " * (1 + number % 3)
    body = {"model": "mini", "prompt": prompt, "max_tokens": 24, "ignore_eos": True}
    return server.post("/v1/completions", body | {"temperature": 0})[1]["choices"][0]["text"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--tensor-parallel-size", "2"), "mono-tp"),
        (("--projection-dtype", "fp8"), "mono-projections"),
    ],
)
def test_a_refused_configuration_is_served_without_mono_and_says_so(flags, code):
    with running(*FLAGS, *flags, "--mono", "on") as server:
        server.until(lambda: len(server.log) > 1)
        assert f"mono is off: {code}: " in server.log[1]
        assert len(texts(server, 2)[0]) == 24
        info = server.get("/server_info")
        config, seen = info["config"], info["mono"]
        assert (config["mono"], config["layers"]) == ("off", "reference")
        assert config["mono_refusal"]["code"] == code
        assert (seen["mono"], seen["coverage"]) == (0, 0)
        assert seen["decode"] == seen["eligible"] > 0
        assert refusals(server) == seen["refusals"] == {code: seen["steps"]}


def test_what_the_page_tells_of_mono():
    info = Info(parse(["--mono", "on"])[0])
    seen = Coverage()
    seen.count(4, prefill=False, refusal=None)
    seen.count(40, prefill=False, refusal=Refusal("mono-too-many-rows", "40 rows"))
    told = info.server((1,), "compiled", None, seen.snapshot())
    assert told["mono"] == {
        "steps": 2, "decode": 2, "eligible": 1, "mono": 1, "coverage": 1, "share": 0.5,
        "refusals": {"mono-too-many-rows": 1},
    }  # fmt: skip
    refused = info.server((1,), "reference", Refusal("mono-tp", "tp 2"), seen.snapshot())
    assert refused["config"]["mono"] == "off"
    assert refused["config"]["mono_refusal"] == {"code": "mono-tp", "sentence": "tp 2"}
    assert Info(parse([])[0]).server((1,), "compiled", None, seen.snapshot())["mono"] is None


def test_a_cache_folder_that_is_none_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INFX_MONO_CACHE", str(tmp_path / "file"))
    with pytest.raises(InfraError, match=r"INFX_MONO_CACHE.*--layers reference") as caught:
        Runner(parse(["--max-model-len", "64"])[0], 260)
    assert caught.value.code == "builds-unwritable"
