"""Checks of what a change and a started server hold: architecture (8), engine patches (10)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from infx.review.bundle import Bundle
from infx.review.facts import added_lines, grouped, in_servers, matches, new_files, said_links
from infx.review.people import signed
from infx.review.result import Evidence, Said
from infx.review.rules import Rules

__all__ = ["no_architecture_change", "no_engine_patch"]

_BLANK = re.compile(
    r"<!--.*?-->|^[ \t]*[-*]?[ \t]*(?:<[^>\n]*>|\[[^\]\n]*\]|n/?a|none|tbd|todo|xxx|fixme|-+|\.*)"
    r"[ \t.:]*$",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""What a template holds before somebody fills it."""

_LINK = re.compile(r"https?://\S+")


def no_architecture_change(bundle: Bundle, rules: Rules) -> Said:
    """Neither the change nor a started server alters what the model computes."""
    patterns = rules.source.architecture
    found = _held(bundle, rules, patterns)
    if found:
        said = "; ".join(one.text for one in found)
        return Said("FAIL", f"changes the model's architecture: {said}", found)
    return Said("PASS", f"none of {len(patterns)} patterns in {_looked_at(bundle)}")


def no_engine_patch(bundle: Bundle, rules: Rules) -> Said:
    """The image runs as shipped, or a waiver of this pull request says why not, all of it."""
    patterns = rules.source.patching
    found = (*_patch_files(bundle, rules), *_held(bundle, rules, patterns))
    if not found:
        seen = f"no patch file, and none of {len(patterns)} patterns in {_looked_at(bundle)}"
        return Said("PASS", seen)
    path = _waiver_path(bundle)
    said = "; ".join(one.text for one in found)
    if not path:
        sentence = f"the engine is patched ({said}) without {_waiver_name(bundle)}"
        return Said("FAIL", sentence, found)
    if faults := [*_waiver_faults(path, found, bundle, rules)]:
        sentence = f"the engine is patched ({said}), and {path} {'; '.join(faults)}"
        return Said("FAIL", sentence, found)
    waiver = Evidence(f"head/{path}", "waiver with " + ", ".join(rules.source.waiver_sections))
    if not _is_linked(path, bundle, rules):
        sentence = f"the engine is patched ({said}); the sign-off does not link {path}"
        return Said("WARN", sentence, (*found, waiver))
    return Said("PASS", f"the engine is patched ({said}) with a filled {path}", (*found, waiver))


def _looked_at(bundle: Bundle) -> str:
    return f"{len(bundle.records)} started servers and the added lines"


def _held(bundle: Bundle, rules: Rules, patterns: Sequence[str]) -> tuple[Evidence, ...]:
    added = added_lines(bundle.diff, rules.source.prose)
    lines = (line.evidence for line in added if matches(patterns, line.text))
    started = grouped(in_servers(bundle.records, patterns))
    return (*lines, *(Evidence("records.json", said) for said in started))


def _patch_files(bundle: Bundle, rules: Rules) -> Iterator[Evidence]:
    for path in new_files(bundle):
        if matches(rules.source.patch_files, path):
            yield Evidence("diff.patch", f"patch file {path}")


def _waiver_name(bundle: Bundle) -> str:
    return f"docs/waiver/{bundle.pull_request.number}.md"


def _waiver_path(bundle: Bundle) -> str:
    """Return the waiver that bears the pull request's number, wherever docs/ lies; "" without."""
    name = f"/{_waiver_name(bundle)}"
    return next((path for path in bundle.head if f"/{path}".endswith(name)), "")


def _waiver_faults(
    path: str, found: Sequence[Evidence], bundle: Bundle, rules: Rules
) -> Iterator[str]:
    """Yield what keeps a waiver from standing: it is filed in the pull request that it is of, each
    section is filled, the upstream one with a link, and it names each file that patches."""
    text = bundle.head[path]
    if path not in bundle.pull_request.changed:
        yield "is not of this pull request"
    sections = _sections(text, rules.source.waiver_sections)
    if lacking := [word for word, said in sections.items() if not said]:
        yield f"lacks {', '.join(lacking)}"
    if sections.get("upstream") and not _LINK.search(sections["upstream"]):
        yield "links no upstream pull request or issue"
    if silent := sorted({name for one in found if (name := _file_of(one)) and name not in text}):
        yield f"does not name {', '.join(silent)}"


def _file_of(found: Evidence) -> str:
    """Return the name of the file that a finding is in; "" of one in a server's command."""
    if found.where == "records.json":
        return ""
    path = found.text.removeprefix("patch file ") if found.where == "diff.patch" else found.where
    return path.rpartition("/")[2].partition(":")[0]


def _sections(text: str, words: Sequence[str]) -> Mapping[str, str]:
    """Return the text below the heading with each word; "" where it has none or was not filled."""
    parts = re.split(r"^#+[ \t]*(.*)$", text, flags=re.MULTILINE)
    read = [(title.lower(), said) for title, said in zip(parts[1::2], parts[2::2], strict=True)]
    return {
        word: next((left for title, said in read if word in title and (left := _filled(said))), "")
        for word in words
    }


def _filled(said: str) -> str:
    return _BLANK.sub("", said).strip()


def _is_linked(path: str, bundle: Bundle, rules: Rules) -> bool:
    comment = signed(bundle, rules)
    said = comment.body if comment else ""
    return path in said or any(link.endswith(path) for link in said_links(bundle))
