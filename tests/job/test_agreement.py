from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.acceptance import Acceptance, Law
from infx.domain.errors import EngineError
from infx.frameworks.base import Launch
from infx.job.agreement import check_acceptance, logged_faults, option_differences
from tests.job.jobs import MINI, arm, point

LAWS: tuple[Law, ...] = ("min-variance",)
REAL, SYNTHETIC = Acceptance(), Acceptance("synthetic", 2.78, k=3)


@pytest.mark.parametrize(
    ("mode", "planned", "running", "fits"),
    [
        ("throughput", REAL, REAL, True),
        ("throughput", REAL, None, True),
        ("throughput", REAL, SYNTHETIC, False),
        ("throughput", SYNTHETIC, SYNTHETIC, True),
        ("throughput", SYNTHETIC, Acceptance("synthetic", 2.780000001, k=3), True),
        ("throughput", SYNTHETIC, Acceptance("synthetic", 2.5, k=3), False),
        ("throughput", SYNTHETIC, Acceptance("synthetic", None, k=3), False),
        ("throughput", SYNTHETIC, REAL, False),
        ("throughput", SYNTHETIC, None, False),
        ("evaluation", REAL, REAL, True),
        ("evaluation", REAL, None, False),
        ("evaluation", REAL, SYNTHETIC, False),
        ("evaluation", SYNTHETIC, SYNTHETIC, False),
    ],
)
def test_modes_never_mix(
    mode: str, planned: Acceptance, running: Acceptance | None, fits: bool
) -> None:
    asked = point(arm(acceptance=planned), mode=mode)
    if fits:
        check_acceptance(asked, running, LAWS)
        return
    with pytest.raises(EngineError, match=f"{mode} needs acceptance") as caught:
        check_acceptance(asked, running, LAWS)
    assert caught.value.code == "acceptance-mode"


def test_an_evaluation_needs_to_be_told() -> None:
    """Silence is no proof of real acceptance, unless the engine knows no other."""
    asked = point(arm(), mode="evaluation")
    with pytest.raises(EngineError, match="not told by the server") as caught:
        check_acceptance(asked, None, LAWS)
    assert "as the user who runs infx" in caught.value.hint
    check_acceptance(asked, None, ())


def test_options_that_differ() -> None:
    planned = arm(options={"parallel": 2, "num-blocks": 64, "threads": None, "dtype": "float32"})
    running = {"parallel": 1, "num_blocks": 64, "threads": 2}
    found = option_differences(planned, running)
    assert [finding.code for finding in found] == ["config-differs"]
    assert found[0].level == "error"
    assert found[0].sentence == "the server runs parallel=1, planned 2"


@pytest.mark.parametrize(
    ("planned", "running", "differs"),
    [
        ("6a8f", "6a8f", False),
        ("6a8f", "77e1", True),
        ("6a8f", "", False),  # an engine that does not tell
        ("", "77e1", False),
    ],
)
def test_other_weights_than_the_recipes(planned: str, running: str, differs: bool) -> None:
    server = arm(model=replace(MINI, weights="shipped", revision=planned))
    found = option_differences(server, {"weights_identity": running})
    assert [finding.code for finding in found] == ["config-differs"] * differs
    assert not found or "weights are 77e1, planned revision 6a8f" in found[0].sentence


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("INFO loading\nWARNING mono decode off: no kernel\nready\n", ["mono-off"]),
        ("INFO loading\nready\n", []),
        (None, []),  # no log
    ],
)
def test_faults_that_the_servers_log_tells(
    tmp_path: Path, log: str | None, told: list[str]
) -> None:
    if log is not None:
        (tmp_path / "server.log").write_text(log)
    launch = Launch(argv=("engine",), log_faults={"mono-off": "mono decode off: "})
    found = logged_faults(launch, tmp_path / "server.log")
    assert [finding.code for finding in found] == told
    assert not told or found[0].sentence == "its log: WARNING mono decode off: no kernel"
