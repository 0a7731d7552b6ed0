"""An engine's image in a container: `srun --container-image` of the pyxis plugin, on this node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from infx.config.sites import Container
from infx.domain.findings import Finding
from infx.domain.point import Arm
from infx.job.image import imported, reference

__all__ = ["Wrapping", "pyxis", "wrapping"]

PACKAGE = "pypi:"


@dataclass(frozen=True, slots=True)
class Wrapping:
    """The words before a server's command, and what is to be said of its image."""

    words: tuple[str, ...] = ()
    remarks: tuple[Finding, ...] = ()


def wrapping(
    arm: Arm,
    container: Container | None,
    *,
    folder: Path,
    step: str,
    tell: Callable[[str], None],
) -> Wrapping:
    """Return how ``arm`` is served here: as it is, or as the step ``step`` in its image, which is
    imported first where the site keeps images. ``tell`` is given the phase that begins.

    Raises InfraError (``image-import``).
    """
    if container is None or container.runtime != "pyxis" or arm.image.startswith(PACKAGE):
        return Wrapping()
    name, _, pinned = arm.image.partition("@")
    digest = arm.image_digest or pinned
    image = reference(name, digest)
    if container.images:
        image = str(imported(name, digest, Path(container.images), folder, tell))
    remarks = () if digest else (_unpinned(name),)
    return Wrapping(pyxis(image, container.mounts, folder, step), remarks)


def pyxis(image: str, mounts: Sequence[str], folder: Path, step: str) -> tuple[str, ...]:
    """Return the words that run a command in ``image`` as the step ``step`` of this job.

    ``folder``, the attempt's own, is mounted where it is: an engine's arguments may name files in
    it. The step shares all that the job was given.
    """
    mounted = ",".join((*mounts, f"{folder}:{folder}"))
    return (
        "srun",
        "--overlap",
        "--nodes=1",
        "--ntasks=1",
        f"--job-name={step}",
        "--export=ALL",
        "--kill-on-bad-exit",
        f"--container-image={image}",
        f"--container-mounts={mounted}",
        "--no-container-mount-home",
        "--no-container-entrypoint",
    )


def _unpinned(image: str) -> Finding:
    sentence = f"image {image} has no digest: its name may mean another image tomorrow"
    return Finding("image-mutable", "warning", sentence)
