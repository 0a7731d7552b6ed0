"""Golden command lines: what a framework renders for an arm, kept word for word.

``golden/<engine>/<case>.json`` holds argv, environment, and the files written beside the server.
After a change that is meant, write them anew and read the difference:
``INFX_RENEW_GOLDEN=1 pytest tests/frameworks -k golden``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from infx import frameworks
from infx.domain.point import Arm
from infx.frameworks.base import Launch

__all__ = ["HOST", "NONCE", "PORT", "cases", "check"]

GOLDEN = Path(__file__).parent / "golden"
FOLDER = Path("/FOLDER")
HOST, PORT, NONCE = "127.0.0.1", 8000, "0123456789abcdef"


def check(case: str, arm: Arm) -> None:
    """Compare what the arm's framework renders with the golden file ``case``.json, exactly."""
    file = GOLDEN / arm.framework / f"{case}.json"
    rendered = _content(frameworks.get(arm.framework).launch(arm, HOST, PORT, FOLDER, NONCE))
    if os.environ.get("INFX_RENEW_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(rendered, indent=1) + "\n", encoding="utf-8")
    assert file.exists(), f"no golden file {file}: write it with INFX_RENEW_GOLDEN=1"
    assert rendered == json.loads(file.read_text(encoding="utf-8"))


def cases(engine: str) -> set[str]:
    """Return the names of the golden files of ``engine``: a test holds them to its arms."""
    return {file.stem for file in (GOLDEN / engine).glob("*.json")}


def _content(launch: Launch) -> dict[str, Any]:
    return {
        "argv": [word.replace(sys.executable, "PYTHON") for word in launch.argv],
        "env": dict(sorted(launch.env.items())),
        "files": {name: text.splitlines() for name, text in launch.files.items()},
    }
