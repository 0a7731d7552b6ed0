"""The documentation is true: generated pages are current, every command in it runs."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.S)


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands() -> list[tuple[str, str]]:
    """(page, command) for every infx command in a code block, comments and output left out."""
    found = []
    for page in PAGES:
        if page.name == "cli.md":
            continue  # generated from the commands themselves
        for language, block in BLOCK.findall(page.read_text()):
            if language not in ("", "sh", "console"):
                continue
            lines = [line.removeprefix("$ ").split("  #")[0].strip() for line in block.splitlines()]
            commands = [command for line in lines for command in line.split(" && ")]
            found += [(page.name, command) for command in commands if command.startswith("infx ")]
    return sorted(set(found))


def test_generated_pages_are_current() -> None:
    made = generator()
    for name, text in made.pages().items():
        assert (ROOT / "docs" / name).read_text() == text, f"{name} is stale: make docs"


def test_the_page_of_mono_lists_every_refusal_at_its_level() -> None:
    made = generator()
    section = made.mono_page().partition(made.MARKS[0])[2].partition(made.MARKS[1])[0]
    listed = re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)
    assert listed == list(made.LEVELS)
    assert [section.index(about) for about in made.MONO_LEVELS.values()] == sorted(
        section.index(about) for about in made.MONO_LEVELS.values()
    )
    assert (ROOT / "docs/mono.md").read_text() == made.mono_page(), "mono.md is stale: make docs"


def test_the_page_of_recipes_lists_each_with_all_it_says() -> None:
    page = (ROOT / "docs/recipes.md").read_text()
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    names = [path.stem for path in (ROOT / "recipes").glob("*.yaml")]
    assert len(names) > 5
    for name in names:
        keys = re.findall(r"^  ([\w.-]+):", (ROOT / f"recipes/{name}.yaml").read_text(), re.M)
        told = {key for key in keys if f"`{key}`" in sections[name]}
        assert set(keys) - told <= {"name", "weights", "revision", "tokenizer", "heads", "kv-heads"}


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([4], "4"),
        ([4, 8], "4, 8"),
        ([1, 2, 3], "1–3"),
        ([4, 8, 12, 16, 80], "4–16 by 4, 80"),
        ([4, 8, 16, 24, 32], "4, 8–32 by 8"),
        ([*range(4, 73, 4), *range(80, 145, 8), 160, 192], "4–72 by 4, 80–144 by 8, 160, 192"),
    ],
)
def test_a_list_of_sizes_is_shown_in_short(numbers: list[int], text: str) -> None:
    generator()  # makes docs/ importable
    assert importlib.import_module("recipe_tables").short_list(numbers) == text


def test_the_pages_hold_commands() -> None:
    assert len(commands()) >= 10


@pytest.mark.parametrize(("page", "command"), commands())
def test_every_command_of_the_pages_is_one(page: str, command: str) -> None:
    """The command line parses: every sub-command and option exists."""
    words = shlex.split(command)[1:]
    import typer.main
    from typer.core import TyperGroup

    from infx.cli.main import app

    group: Any = typer.main.get_command(app)
    context = group.make_context("infx", [], resilient_parsing=True)
    while isinstance(group, TyperGroup) and words and not words[0].startswith("-"):
        found = group.get_command(context, words[0])
        assert found is not None, f"{page}: {command}: no command {words[0]!r}"
        group, words = found, words[1:]
        context = group.make_context(group.name, [], resilient_parsing=True, parent=context)
    if context.allow_extra_args:  # infx serve: the engine's own flags
        from infx.engine.arguments import parse

        parse([word for word in words if word != "--help"])
        return
    _, left, _ = group.make_parser(context).parse_args(args=list(words))
    arguments = [p for p in group.params if p.param_type_name == "argument"]
    assert bool(left) <= bool(arguments), f"{page}: {command}: takes no argument {left}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            linked = page.parent / target
            assert linked.exists(), f"{page.name} links to {target}"
            if linked.suffix == ".png":
                assert linked.read_bytes()[:4] == b"\x89PNG", f"{target} is no picture"


@pytest.mark.parametrize("command", ["sweep", "check", "test", "proof"])
def test_the_make_targets_of_the_readme_exist(command: str) -> None:
    done = subprocess.run(
        ["make", "-n", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sys.version_info >= (3, 11)
