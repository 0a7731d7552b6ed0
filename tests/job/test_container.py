from __future__ import annotations

import os
from pathlib import Path

import pytest

from infx.config.sites import Container
from infx.domain.point import Arm
from infx.job.container import Wrapping, wrapping
from tests.job.jobs import arm

DIGEST = "sha256:" + "cd" * 32
PYXIS = Container(runtime="pyxis", mounts=("/models:/models:ro", "/scratch:/scratch"))


def wrapped(served: Arm, container: Container | None) -> Wrapping:
    return wrapping(
        served, container, folder=Path("/runs/a1"), step="infx-r-j-a1-server", tell=print
    )


@pytest.mark.parametrize("container", [None, Container(), PYXIS])
def test_an_engine_of_a_package_runs_as_it_is(container: Container | None) -> None:
    assert wrapped(arm("infx"), container) == Wrapping()


def test_without_a_container_runtime_an_image_runs_as_it_is() -> None:
    assert wrapped(arm(image="owner/engine:1"), Container()) == Wrapping()


def test_an_image_is_a_step_of_the_job() -> None:
    found = wrapped(arm(image="r.example/owner/engine:1", image_digest=DIGEST), PYXIS)
    assert found.words == (
        "srun",
        "--overlap",
        "--nodes=1",
        "--ntasks=1",
        "--job-name=infx-r-j-a1-server",
        "--export=ALL",
        "--kill-on-bad-exit",
        f"--container-image=r.example#owner/engine:{DIGEST}",
        "--container-mounts=/models:/models:ro,/scratch:/scratch,/runs/a1:/runs/a1",
        "--no-container-mount-home",
        "--no-container-entrypoint",
    )
    assert found.remarks == ()


def test_a_digest_in_the_images_name_pins_it_too() -> None:
    found = wrapped(arm(image=f"owner/engine:1@{DIGEST}"), PYXIS)
    assert f"--container-image=owner/engine:{DIGEST}" in found.words
    assert found.remarks == ()


def test_an_image_without_a_digest_is_remarked() -> None:
    [remark] = wrapped(arm(image="owner/engine:1"), PYXIS).remarks
    assert (remark.code, remark.level) == ("image-mutable", "warning")
    assert "owner/engine:1" in remark.sentence


def test_where_images_are_kept_the_file_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(__file__).parent / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_ENROOT", "good")
    monkeypatch.setenv("FAKE_ENROOT_CALLS", str(tmp_path / "calls"))
    served = arm(image="owner/engine:1", image_digest=DIGEST)
    told: list[str] = []
    found = wrapping(
        served,
        Container(runtime="pyxis", images=str(tmp_path / "images")),
        folder=tmp_path,
        step="server",
        tell=told.append,
    )
    assert f"--container-image={tmp_path}/images/{'cd' * 32}.sqsh" in found.words
    assert told == ["importing the image"]
