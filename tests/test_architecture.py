"""The rules of the house, enforced: one direction of imports, pure cores, one set of codes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from infx.domain.codes import CODES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "infx"
ORDER = [
    "domain",
    "workloads",
    "engine",
    "config",
    "frameworks",
    "golden",
    "plan",
    "store",
    "job",
    "launch",
    "analysis",
    "report",
    "changelog",
    "ci",
    "review",
    "forge",
    "bundling",
    "cli",
]
PURE = ("domain", "plan", "analysis", "changelog", "ci", "review")
EFFECTS = {"subprocess", "socket", "urllib", "http", "aiohttp", "time", "signal", "random"}
ENGINE_MAY_USE = {"domain", "workloads", "engine"}


def imported(source: str) -> set[str]:
    """Names of the modules that a source imports, wherever the statement stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def folders_used(source: str) -> set[str]:
    parts = [name.split(".") for name in imported(source) if name.startswith("infx.")]
    return {part[1] for part in parts if part[1] in ORDER}


def modules(folder: str) -> list[Path]:
    found = sorted((PACKAGE / folder).rglob("*.py"))
    assert found, f"no module in infx/{folder}"
    return found


def test_every_folder_has_its_place_in_the_order() -> None:
    folders = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    assert folders == set(ORDER)


@pytest.mark.parametrize("folder", ORDER)
def test_imports_go_one_way(folder: str) -> None:
    above = set(ORDER[: ORDER.index(folder) + 1])
    for path in modules(folder):
        used = folders_used(path.read_text())
        assert used <= above, f"{path.relative_to(ROOT)} imports {used - above}"
        if folder == "engine":
            assert used <= ENGINE_MAY_USE, f"{path.relative_to(ROOT)} imports {used}"
        if folder not in ("engine", "cli"):
            assert "engine" not in used, f"{path.relative_to(ROOT)} imports the engine"


@pytest.mark.parametrize("folder", PURE)
def test_pure_folders_have_no_effects(folder: str) -> None:
    for path in modules(folder):
        effects = {name.split(".")[0] for name in imported(path.read_text())} & EFFECTS
        assert not effects, f"{path.relative_to(ROOT)} imports {effects}"


def test_the_walk_sees_imports_inside_functions() -> None:
    source = "def f():\n    from infx.cli import main\n    import subprocess\n"
    assert folders_used(source) == {"cli"}
    assert "subprocess" in imported(source)


def test_every_code_is_used_and_every_used_code_is_known() -> None:
    sources = {p: p.read_text() for p in PACKAGE.rglob("*.py") if not p.stem.endswith("codes")}
    strings = {
        node.value
        for text in sources.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    unused = sorted(set(CODES) - strings)
    assert not unused, f"codes that nothing says: {unused}"
    said = {
        (path.relative_to(ROOT), code)
        for path, text in sources.items()
        for code in re.findall(r"(?:Finding|Refusal|\w*Error)\(\s*\"([a-z0-9-]+)\"", text)
    }
    unknown = sorted(str(pair) for pair in said if pair[1] not in CODES)
    assert said
    assert not unknown


def test_modules_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 400
    }
    assert not long
