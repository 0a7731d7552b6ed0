"""The section ``srt`` of a recipe: a recipe of srt-slurm's own, read and pinned when planning."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import yaml

from infx.config.nodes import MapNode, Node, is_null
from infx.config.project import is_file
from infx.config.shape import shaped
from infx.config.srt_sites import check_set
from infx.config.suggestions import did_you_mean
from infx.domain.findings import Where
from infx.domain.point import Delegated

if TYPE_CHECKING:
    from infx.config.library import Library

__all__ = ["read_delegated"]

_NAMED = re.compile(r"(?P<file>.+?)(?::(?P<selector>[A-Za-z_]\w*(?:\[\d+\])?))?")
_VARIANT = re.compile(r"(zip_)?override_")


def read_delegated(node: Node | None, library: Library) -> Delegated | None:
    """Return what the section says, with the text of the file that it names; None without a
    section, or after reporting its faults."""
    if node is None or is_null(node):
        return None
    section = shaped(node, "DelegatedSection", "`srt`", library.report)
    if section is None or not isinstance(node, MapNode):
        return None
    check_set(node.get("set"), library.report)
    named, where = node.get("recipe"), node.keys["recipe"]
    match = _NAMED.fullmatch(section["recipe"])
    assert match  # every text of one line fits
    file, selector = match["file"], match["selector"] or ""
    text = _text(file, named.where if named else where, library)
    if text is None or _fault(file, text, selector, where, library):
        return None
    return Delegated(text=text, gpus=section["gpus"], selector=selector, set=section["set"])


def _text(file: str, where: Where, library: Library) -> str | None:
    places = (library.project.root, library.project.fallback)
    path = next((found for place in places if is_file(found := place / file)), None)
    if path is None:
        sentence = f"there is no srt recipe {file}"
        hint = "name a file from the project's folder"
        library.report.error("unknown-reference", sentence, where, hint)
        return None
    try:
        data = path.read_bytes()
        text = data.decode()
    except (OSError, ValueError) as error:
        library.report.error("file-unreadable", f"{file}: {error}", where)
        return None
    library.inputs[library.project.shown(path)] = hashlib.sha256(data).hexdigest()
    return text


def _fault(file: str, text: str, selector: str, where: Where, library: Library) -> bool:
    """Report what srtctl would refuse, or make several jobs of."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        library.report.error("yaml-syntax", f"{file}: {error}", where)
        return True
    if not isinstance(content, dict):
        library.report.error("wrong-type", f"{file} is no mapping", where)
        return True
    variants = ["base", *filter(_VARIANT.match, map(str, content))] if "base" in content else []
    sentence = _sentence(file, content, selector, variants)
    if sentence:
        near = did_you_mean(selector, variants) if selector else ""
        hint = near or (f"it has {', '.join(variants)}" if variants else "")
        library.report.error("unknown-reference", sentence, where, hint)
    return bool(sentence)


def _sentence(file: str, content: dict[str, Any], selector: str, variants: list[str]) -> str:
    base = content.get("base")
    declared = (content, base if isinstance(base, dict) else {})
    if not any(part.get("schema") == 2 for part in declared):
        return f"{file} is no recipe of schema 2 (srtctl migrate makes one)"
    if variants and selector.partition("[")[0] not in variants:
        return f"{file} has no variant `{selector}`" if selector else f"{file}: which variant?"
    return f"{file} has no variants, so no `{selector}`" if selector and not variants else ""
