"""Every flag that infx knows of vLLM, and every one that it renders, against the real parser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infx import frameworks
from infx.frameworks.flag_reader.__main__ import read_engine
from infx.frameworks.options import FLAGS_FOLDER, flags_file
from infx.frameworks.vllm import METHODS, SPOKEN_FOR
from tests.frameworks.golden_argv import HOST, NONCE, PORT
from tests.frameworks.test_vllm import ARMS

pytestmark = pytest.mark.engines

PARSER = Path(__file__).with_name("vllm_parser.py")

OF_THE_MACHINE = {"--mm-processor-device"}
"""Its choices are computed from the devices that are there; the data file says none."""


def rendered() -> dict[str, list[str]]:
    """Return the words after ``vllm serve`` of each arm of the golden files."""
    vllm, folder = frameworks.get("vllm"), Path("/FOLDER")
    launches = {case: vllm.launch(arm, HOST, PORT, folder, NONCE) for case, arm in ARMS.items()}
    return {case: list(launch.argv[2:]) for case, launch in launches.items()}


@cache
def asked(folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [str(folder / "bin" / "python"), "-P", str(PARSER)],
        input=json.dumps(list(rendered().values())),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def long_name(spellings: list[str]) -> str:
    return next(word for word in spellings if word.startswith("--"))


def of_data_file(row: Mapping[str, Any]) -> dict[str, Any]:
    words = [row["flag"], *row.get("aliases", ())]
    long = [word for word in words if word.startswith("--") and row.get("negatable")]
    negations = [f"--no-{word[2:]}" for word in long]
    choices = [] if row["flag"] in OF_THE_MACHINE else sorted(row.get("choices", ()))
    return {"spellings": sorted([*words, *negations]), "kind": row["kind"], "choices": choices}


def of_parser(flag: Mapping[str, Any]) -> dict[str, Any]:
    machine = OF_THE_MACHINE & set(flag["spellings"])
    choices = [] if machine else flag["choices"]
    return {"spellings": sorted(flag["spellings"]), "kind": flag["kind"], "choices": choices}


def test_the_data_file_is_the_parser(vllm_folder: Path) -> None:
    """All flags, with their other spellings, kinds and choices: none more, none less."""
    data = json.loads((FLAGS_FOLDER / "vllm.json").read_text())
    told = {row["flag"]: of_data_file(row) for row in data["flags"]}
    real = {long_name(flag["spellings"]): of_parser(flag) for flag in asked(vllm_folder)["flags"]}
    assert told == real


def test_the_parser_takes_every_golden_command_line(vllm_folder: Path) -> None:
    refused = dict(zip(rendered(), asked(vllm_folder)["refused"], strict=True))
    assert refused == dict.fromkeys(rendered(), "")


def test_the_speculative_configuration_has_our_keys_and_methods(vllm_folder: Path) -> None:
    answer = asked(vllm_folder)
    assert set(SPOKEN_FOR) <= set(answer["speculation"])
    assert set(METHODS.values()) <= set(answer["methods"])
    lines = rendered().values()
    said = [
        line[line.index("--speculative-config") + 1]
        for line in lines
        if "--speculative-config" in line
    ]
    assert {key for text in said for key in json.loads(text)} <= set(answer["speculation"])


def test_its_help_lists_every_flag(vllm_folder: Path) -> None:
    """The words of `vllm serve --help=all`, as a person reads them."""
    done = subprocess.run(
        [str(vllm_folder / "bin" / "vllm"), "serve", "--help=all"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    words = {word.strip("[],").partition("=")[0] for word in done.stdout.split()}
    listed = {word for word in words if word.startswith("-")}
    used = {word for line in rendered().values() for word in line if word.startswith("--")}
    assert used <= listed
    assert flags_file("vllm").spellings <= listed


def test_the_reader_reads_the_data_file_again(vllm_folder: Path) -> None:
    (site,) = (vllm_folder / "lib").glob("python*/site-packages")
    data = json.loads((FLAGS_FOLDER / "vllm.json").read_text())
    package = f"{data['source'].partition(':')[0]}=={data['version']}"
    assert read_engine("vllm", site, package) == data
