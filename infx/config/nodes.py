"""Strict YAML: a file as a tree of nodes that know their line and column.

Duplicate keys, anchors, aliases, merge keys, tags, second documents and scalars that YAML versions
read differently are faults. A fault is reported and reading goes on, so that one pass finds all of
them; only broken syntax ends the reading of its file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import yaml

from infx.config.scalars import LARGEST, beyond, doubt, resolve
from infx.config.suggestions import closest
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = [
    "ListNode",
    "MapNode",
    "Node",
    "Report",
    "ScalarNode",
    "is_null",
    "parse_yaml",
    "plain",
    "read_yaml",
]

Key = str | int
_DEEPEST = 40
_TABBED = re.compile(r"^ *\t", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A value with its source text; ``faulty`` ones have been reported and mean nothing.

    ``text_col`` is the column of the text's first character when it stands on one line as written
    (no escapes), else 0.
    """

    value: str | int | float | bool | None
    text: str
    where: Where
    quoted: bool = False
    text_col: int = 0
    faulty: bool = False


@dataclass(frozen=True, slots=True)
class ListNode:
    """A sequence."""

    items: tuple[Node, ...]
    where: Where


@dataclass(frozen=True, slots=True)
class MapNode:
    """A mapping in the order of the file; ``keys`` holds the place of each key."""

    values: dict[Key, Node]
    keys: dict[Key, Where]
    where: Where

    def get(self, key: Key) -> Node | None:
        """Return the node under ``key``, or None."""
        return self.values.get(key)


Node = ScalarNode | ListNode | MapNode


@dataclass(slots=True)
class Report:
    """Findings as they are met, in any number of files."""

    findings: list[Finding] = field(default_factory=list)

    def error(self, code: str, sentence: str, where: Where, hint: str = "") -> None:
        """Add an error."""
        self.findings.append(Finding(code, "error", sentence, where, hint))

    def advise(self, code: str, where: Where, hint: str) -> None:
        """Give what was found at ``where`` a better hint, from a reader that knows more."""
        self.findings = [
            replace(finding, hint=hint)
            if (finding.code, finding.where) == (code, where)
            else finding
            for finding in self.findings
        ]

    def take(self, error: ConfigError) -> None:
        """Add the findings of a caught error."""
        self.findings.extend(error.findings)

    def check(self) -> None:
        """Raise ConfigError with all findings, in the order of files and lines, if any."""
        if self.findings:
            order = {w.file: n for n, w in reversed(list(enumerate(self._places())))}
            raise ConfigError(sorted(self.findings, key=lambda f: _position(f, order)))

    def _places(self) -> Iterator[Where]:
        return (finding.where for finding in self.findings if finding.where)


def read_yaml(path: Path, name: str, report: Report) -> tuple[Node | None, str]:
    """Return the only document of ``path`` and the sha256 of its bytes.

    ``name`` is what findings call the file. The node is None after a fault that leaves nothing to
    look at (all are in ``report``); the digest is then empty when the file was not read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        report.error("file-not-found", f"there is no file {name}", Where(name), _near(path))
        return None, ""
    except OSError as error:
        sentence = f"{name} cannot be read: {error.strerror}"
        report.error("file-unreadable", sentence, Where(name))
        return None, ""
    return parse_yaml(data, name, report), hashlib.sha256(data).hexdigest()


def plain(node: Node) -> Any:
    """Return the node as dicts, lists and scalars; a faulty scalar as None."""
    match node:
        case MapNode():
            return {key: plain(value) for key, value in node.values.items()}
        case ListNode():
            return [plain(item) for item in node.items]
        case ScalarNode():
            return None if node.faulty else node.value


def is_null(node: Node) -> bool:
    """Return True for a value that is nothing, on purpose (``null``)."""
    return isinstance(node, ScalarNode) and node.value is None and not node.faulty


def _near(path: Path) -> str:
    others = (other.name for other in path.parent.glob("*.y*ml"))
    if found := closest(path.name, others):
        return f"did you mean `{path.parent / found}`?"
    return "try `infx plan quickstart`"


def parse_yaml(data: bytes, name: str, report: Report) -> Node | None:
    """Return the only document of ``data``, which findings call ``name``; None after a fault that
    leaves nothing to look at (all are in ``report``)."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        sentence = f"byte 0x{data[error.start]:02x} is not UTF-8"
        report.error("not-utf8", sentence, _after(before, name), "save the file as UTF-8")
        return None
    events = iter(yaml.parse(text, Loader=yaml.CSafeLoader))
    try:
        return _Reader(events, name, report).document()
    except yaml.reader.ReaderError as error:
        before = text.split(chr(error.character))[0]
        sentence = f"the character U+{error.character:04X} is not allowed in YAML"
        report.error("yaml-syntax", sentence, _after(before, name))
    except yaml.MarkedYAMLError as error:
        _syntax(error, text, name, report)
    except _TooDeepError as error:
        report.error("yaml-syntax", f"nested deeper than {_DEEPEST} levels", error.args[0])
    return None


def _syntax(error: yaml.MarkedYAMLError, text: str, name: str, report: Report) -> None:
    mark = error.problem_mark or error.context_mark
    line, col = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    tabs = [_after(text[: match.end() - 1], name) for match in _TABBED.finditer(text)]
    if tabs and tabs[0].line <= line:
        sentence = f"a tab indents {len(tabs)} line{'s' * (len(tabs) > 1)}, the first here"
        report.error("tab-indent", sentence, tabs[0], "indent with spaces")
        return
    sentence = ", ".join(part for part in (error.context, error.problem) if part)
    report.error("yaml-syntax", sentence, Where(name, line, col))


def _after(before: str, name: str) -> Where:
    line = before.count("\n") + 1
    return Where(name, line, len(before) - (before.rfind("\n") + 1) + 1)


def _position(finding: Finding, order: dict[str, int]) -> tuple[int, int, int]:
    where = finding.where or Where("")
    return order.get(where.file, 0), where.line, where.col


class _Reader:
    """Turns the events of one file into nodes."""

    def __init__(self, events: Iterator[yaml.Event], name: str, report: Report) -> None:
        self._events, self._name, self._report = events, name, report
        self._depth = 0

    def document(self) -> Node | None:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            self._report.error("file-empty", f"{self._name} is empty", Where(self._name))
            return None
        node = self._node(next(self._events))
        next(self._events)
        after = next(self._events)
        if isinstance(after, yaml.DocumentStartEvent):
            sentence = "a second document starts here; a file of infx holds one"
            self._report.error("yaml-syntax", sentence, self._where(after), "use another file")
        return node

    def _where(self, event: yaml.Event) -> Where:
        mark: Any = event.start_mark
        return Where(self._name, mark.line + 1, mark.column + 1)

    def _node(self, event: yaml.Event) -> Node:
        self._refuse_decoration(event)
        where = self._where(event)
        match event:
            case yaml.ScalarEvent():
                return self._scalar(event, where)
            case yaml.SequenceStartEvent():
                return self._nested(where, self._list)
            case yaml.MappingStartEvent():
                return self._nested(where, self._map)
        return ScalarNode(None, "", where, faulty=True)

    def _refuse_decoration(self, event: yaml.Event) -> None:
        tag = getattr(event, "tag", None)
        anchor = getattr(event, "anchor", None)
        if not tag and not anchor:
            return
        sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
        text = f"{sign}{anchor}" if anchor else tag
        sentence = f"`{text}`: infx's files have no anchors, aliases or tags"
        self._report.error("anchor", sentence, self._where(event), "write the value out")

    def _nested(self, where: Where, read: Any) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _TooDeepError(where)
        node: Node = read(where)
        self._depth -= 1
        return node

    def _list(self, where: Where) -> ListNode:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event))
        return ListNode(tuple(items), where)

    def _map(self, where: Where) -> MapNode:
        node = MapNode({}, {}, where)
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event)
            value = self._node(next(self._events))
            self._put(node, key, value)
        return node

    def _put(self, node: MapNode, key: Node, value: Node) -> None:
        if isinstance(key, ScalarNode) and key.faulty:
            return
        if isinstance(key, ScalarNode) and key.text == "<<" and not key.quoted:
            self._report.error("anchor", "`<<`: infx's files have no merge keys", key.where)
            return
        name = key.value if isinstance(key, ScalarNode) else None
        if not isinstance(name, str | int) or isinstance(name, bool):
            self._report.error("wrong-type", "a key must be text or a whole number", key.where)
            return
        if name in node.keys:
            sentence = f"`{name}` stands here again; it is on line {node.keys[name].line} already"
            self._report.error("duplicate-key", sentence, key.where)
            return
        node.values[name], node.keys[name] = value, key.where

    def _scalar(self, event: yaml.ScalarEvent, where: Where) -> ScalarNode:
        text, quoted = event.value, bool(event.style)
        start, end = cast("Any", event.start_mark), cast("Any", event.end_mark)
        inline = end.line == start.line
        width = end.column - start.column - 2 * quoted
        text_col = where.col + quoted if inline and width == len(text) else 0
        if quoted or event.tag:
            return ScalarNode(text, text, where, True, text_col, bool(event.tag))
        if hint := doubt(text):
            sentence = f"`{text}` is read differently by different versions of YAML"
            self._report.error("ambiguous-scalar", sentence, where, hint)
            return ScalarNode(None, text, where, faulty=True)
        if beyond(text):
            sentence = f"`{text[:24]}{'…' * (len(text) > 24)}` is a number beyond {LARGEST}"
            self._report.error("out-of-range", sentence, where, "quote it if it is text")
            return ScalarNode(None, text, where, faulty=True)
        return ScalarNode(resolve(text), text, where, False, text_col)


class _TooDeepError(Exception):
    """Raised at a node that is nested deeper than any file of infx."""
