"""A stand-in for infx's wheel, without dependencies: what is done to it is done to any."""

from __future__ import annotations

import zipfile
from pathlib import Path

from infx.launch.prepare.own_wheel import OwnWheel, read_wheel

METADATA = (
    "Metadata-Version: 2.1\nName: infx\nVersion: 0.0.1\nProvides-Extra: bench\n\nRequires-Dist: x\n"
)


def write_tiny(
    folder: Path, *, source: str = "", date: int = 2020, deflate: bool = False, note: str = "x"
) -> OwnWheel:
    """Write infx-0.0.1 with ``source`` as its only module; the rest is about the archive."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "infx/__init__.py": source,
        "infx-0.0.1.dist-info/METADATA": METADATA,
        "infx-0.0.1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
        f"Generator: {note}\nTag: py3-none-any\n",
    }
    files["infx-0.0.1.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    path = folder / "infx-0.0.1-py3-none-any.whl"
    method = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for name in sorted(files, reverse=deflate):
            archive.writestr(zipfile.ZipInfo(name, (date, 1, 1, 0, 0, 0)), files[name], method)
    return read_wheel(path)
