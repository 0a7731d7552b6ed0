"""infx's own wheel: from the checkout it runs in, or packed again from the installed files."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import infx
from infx.domain.errors import InfraError
from infx.launch.prepare.wheels import pip

__all__ = ["OwnWheel", "content_digest", "read_wheel", "write_wheel"]

BUILD_S = 300.0
ABOUT_THE_ARCHIVE = ("RECORD", "WHEEL", "INSTALLER", "REQUESTED", "direct_url.json")
"""Files of dist-info that say how a wheel was made or installed, not what is in it."""

WHEEL = "Wheel-Version: 1.0\nGenerator: infx\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@dataclass(frozen=True, slots=True)
class OwnWheel:
    """infx as a wheel; ``digest`` is of its content, the same for every wheel of the same sources.

    ``requirements`` are its Requires-Dist lines, ``extras`` the names that it provides.
    """

    path: Path
    version: str
    digest: str
    requirements: tuple[str, ...]
    extras: tuple[str, ...]


def write_wheel(folder: Path) -> OwnWheel:
    """Write the wheel of the infx that runs into ``folder``. Raises InfraError ``bundle-failed``.

    A checkout is built with pip; where hatchling is missing, pip fetches it first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    checkout = Path(infx.__file__).resolve().parents[1]
    if not (checkout / "pyproject.toml").is_file():
        return read_wheel(_packed_again(folder))
    isolation = ["--no-build-isolation"] if find_spec("hatchling") else []
    pip(["wheel", "--no-deps", *isolation, "-w", str(folder), str(checkout)], BUILD_S, "infx")
    return read_wheel(next(folder.glob("infx-*.whl")))


def read_wheel(path: Path) -> OwnWheel:
    """Return what the wheel at ``path`` says of itself."""
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        head = archive.read(name).decode().split("\n\n", 1)[0]
    fields = [line.partition(": ")[::2] for line in head.splitlines()]
    values = {key: tuple(v for k, v in fields if k == key) for key, _ in fields}
    return OwnWheel(
        path,
        values["Version"][0],
        content_digest(path),
        values.get("Requires-Dist", ()),
        values.get("Provides-Extra", ()),
    )


def content_digest(path: Path) -> str:
    """Return the sha256 over names and contents of the wheel's files, whatever the archive's own
    dates, order and compression, and whichever tool made it."""
    whole = hashlib.sha256()
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if not _about_the_archive(name) and not name.endswith("/"):
                content = hashlib.sha256(archive.read(name)).hexdigest()
                whole.update(f"{content}  {name}\n".encode())
    return whole.hexdigest()


def _about_the_archive(name: str) -> bool:
    path = PurePosixPath(name)
    return path.parent.name.endswith(".dist-info") and path.name in ABOUT_THE_ARCHIVE


def _packed_again(folder: Path) -> Path:
    installed = _installed()
    names = [
        str(path)
        for path in installed.files or ()
        if ".." not in path.parts and path.suffix != ".pyc" and not _about_the_archive(str(path))
    ]
    dist_info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
    contents = {name: Path(str(installed.locate_file(name))).read_bytes() for name in names}
    contents[f"{dist_info}/WHEEL"] = WHEEL.encode()
    contents[f"{dist_info}/RECORD"] = "".join(f"{n},,\n" for n in contents).encode()
    target = folder / f"infx-{installed.version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(name, (2020, 2, 2, 0, 0, 0)), content)
    return target


def _installed() -> Distribution:
    try:
        return distribution("infx")
    except PackageNotFoundError:
        raise InfraError(
            "bundle-failed",
            f"{Path(infx.__file__).parent} is neither a checkout of infx nor an installed package",
            hint=f"install infx with {sys.executable} -m pip install",
        ) from None
