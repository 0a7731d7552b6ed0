"""What a device says of itself, by a program in the place of nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.engine.mono.cuda.timing import machine


def test_of_several_devices_the_first_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "NVIDIA H200, 580.1, {} MHz, 3201 MHz, 80.1 W, 37"
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{said.format(1980)}'\necho '{said.format(345)}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = machine()
    assert found["clocks.sm"] == "1980 MHz"
    assert found["temperature.gpu"] == "37"


def test_without_its_program_a_device_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine() == {}
