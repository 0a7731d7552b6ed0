"""Whatever stands in a file, it is planned or refused; nothing crashes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from infx.config.inferencex.evals import Evaluations
from infx.config.inferencex.native import to_native
from infx.config.inferencex.shelf import Shelf
from infx.config.project import Project, packaged
from infx.domain.errors import ConfigError, InfxError
from tests.config.inferencex.sample import AGENTIC_MULTI, RUNNERS, WHOLE, masters, rows

JUNK = [None, -1, 0, 10**30, 1.5, True, "", "x", "\x1b", [], [1], [[]], {}, {"a": 1}]
Holder = dict[str, Any] | list[Any]


def places(tree: Any) -> Iterator[tuple[Holder, Any]]:
    """Yield every mapping or list with each of its keys or indices."""
    if not isinstance(tree, dict | list):
        return
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        yield from places(tree[key])


def spoilt(text: str, junk: Any) -> Iterator[str]:
    """Yield the file with junk at one place after another."""
    tree = yaml.safe_load(text)
    for holder, key in list(places(tree)):
        kept, holder[key] = holder[key], junk
        yield yaml.dump(tree, Dumper=yaml.CSafeDumper)
        holder[key] = kept


@pytest.mark.slow
@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_junk_in_an_entry_never_crashes(tmp_path: Path, junk: Any) -> None:
    shelf = Shelf.of(Project(tmp_path, packaged()))
    refused = 0
    for text in spoilt(WHOLE + AGENTIC_MULTI, junk):
        try:
            read = masters(tmp_path, text)
        except ConfigError as error:
            refused += all(finding.where for finding in error.findings)
            continue
        for evals in (Evaluations(), Evaluations(every=True)):
            rows(read, evals)
        to_native(read, read.entries, shelf, 3)
    assert refused


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_junk_in_the_runners_never_crashes(tmp_path: Path, junk: Any) -> None:
    for text in spoilt(RUNNERS, junk):
        with suppress(InfxError):
            rows(masters(tmp_path, WHOLE + AGENTIC_MULTI, text))
