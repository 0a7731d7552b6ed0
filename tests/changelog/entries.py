"""Entries of changelogs, and strategies for them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from infx.domain.findings import Finding

LINK = "https://github.com/o/r/pull/7"


def entry(key: str = "a-b", told: str = "Something", link: str = LINK, more: str = "") -> str:
    return (
        f'- config-keys:\n    - "{key}"\n  description:\n    - {json.dumps(told)}\n'
        f"{more}  pr-link: {link}\n"
    )


def changelog(*entries: str) -> str:
    return "\n".join(entries)


def codes(found: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in found if finding.level == "error"]


def places(found: Sequence[Finding]) -> list[str]:
    return [f"{finding.where}: {finding.code}" for finding in found]


TOLD = st.text(
    st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"], exclude_characters="\x7f"),
    min_size=1,
    max_size=12,
).filter(str.strip)

LINKS = st.builds("https://github.com/o/r/pull/{}".format, st.integers(1, 9))

KEYS = st.sampled_from(["a", "a-*", "b.c", "d1"])

LISTS = st.lists(st.builds(entry, KEYS, TOLD, LINKS), max_size=3)
"""What stood there."""

FRESH = st.lists(st.builds(entry, KEYS, TOLD, LINKS | st.just("XXX")), max_size=3)
"""What a branch appends."""
