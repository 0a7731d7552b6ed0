"""InferenceX's files as they are: YAML 1.1 as PyYAML loads it, with the place of every value.

Mappings and sequences are dicts and lists, so that a row of a plan may hold them as they stand. A
key that stands twice is a warning: their loader keeps the last one and says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from infx.config.nodes import Report, read_yaml
from infx.domain.findings import Finding, Where

__all__ = ["Map", "Notes", "Seq", "read_tree"]

_DEEPEST = 40
_BROKEN = {"file-not-found", "file-unreadable", "not-utf8", "tab-indent", "yaml-syntax"}
_MERGE = "<<"


@dataclass(slots=True)
class Notes(Report):
    """Findings of both levels as they are met."""

    def warn(self, code: str, sentence: str, where: Where, hint: str = "") -> None:
        """Add a warning."""
        self.findings.append(Finding(code, "warning", sentence, where, hint))

    def inform(self, code: str, sentence: str, where: Where, hint: str = "") -> None:
        """Add what is good to know."""
        self.findings.append(Finding(code, "info", sentence, where, hint))

    def refuse(self) -> None:
        """Raise ConfigError with all findings when one of them is an error."""
        if any(finding.level == "error" for finding in self.findings):
            self.check()


class Map(dict[str, Any]):
    """A mapping; its ``places`` hold the marks of each key and of its value."""

    __slots__ = ("file", "mark", "places")
    file: str
    mark: Any
    places: dict[str, tuple[Any, Any]]

    @property
    def where(self) -> Where:
        """Its first character."""
        return _where(self.file, self.mark)

    def key_at(self, key: str) -> Where:
        """Return the place of a key, or of the whole where it is absent."""
        return _where(self.file, self.places[key][0] if key in self.places else self.mark)

    def value_at(self, key: str) -> Where:
        """Return the place of a key's value, or of the whole where it is absent."""
        return _where(self.file, self.places[key][1] if key in self.places else self.mark)


class Seq(list[Any]):
    """A sequence; its ``places`` hold the mark of each item."""

    __slots__ = ("file", "mark", "places")
    file: str
    mark: Any
    places: list[Any]

    @property
    def where(self) -> Where:
        """Its first character."""
        return _where(self.file, self.mark)

    def at(self, index: int) -> Where:
        """Return the place of an item."""
        return _where(self.file, self.places[index])


def read_tree(path: Path, name: str, notes: Notes) -> Map | None:
    """Return the mapping that a file holds; None after reporting why there is none.

    ``name`` is what findings call the file.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        tree = _Reader(text, name, notes).document()
    except _FaultError as fault:
        notes.findings.append(fault.finding)
        return None
    except (OSError, ValueError, yaml.YAMLError):
        # What is broken for every reader is told by the strict one.
        read_yaml(path, name, strict := Report())
        notes.findings += [finding for finding in strict.findings if finding.code in _BROKEN]
        return None
    if isinstance(tree, Map):
        return tree
    sentence = f"{name} holds {_kind(tree)} where a mapping of keys to entries is expected"
    notes.error("file-empty" if tree is None else "wrong-type", sentence, Where(name, 1, 1))
    return None


def _is_merge(event: Any) -> bool:
    return type(event) is yaml.ScalarEvent and event.value == _MERGE and event.implicit[0]


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    return "a list" if isinstance(value, Seq) else "a single value"


def _where(file: str, mark: Any) -> Where:
    return Where(file, mark.line + 1, mark.column + 1)


class _FaultError(Exception):
    """Ends the reading of a file."""

    def __init__(self, code: str, sentence: str, where: Where, hint: str = "") -> None:
        super().__init__(sentence)
        self.finding = Finding(code, "error", sentence, where, hint)


class _Reader:
    """Turns the events of libyaml into trees: half the time that a load without places takes."""

    def __init__(self, text: str, name: str, notes: Notes) -> None:
        self._next: Callable[[], Any] = yaml.CSafeLoader(text).get_event
        self._resolver: Any = yaml.SafeLoader("")
        self._plain: dict[str, Any] = {}
        self._anchors: dict[str, Any] = {}
        self._name, self._notes, self._depth = name, notes, 0

    def document(self) -> Any:
        """Return what the only document holds; None for an empty file."""
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        tree = self._tree(self._next())
        self._next()
        if isinstance(after := self._next(), yaml.DocumentStartEvent):
            sentence = "a second document starts here; one is read"
            raise _FaultError("yaml-syntax", sentence, self._at(after), "use another file")
        return tree

    def _at(self, event: Any) -> Where:
        return _where(self._name, event.start_mark)

    def _tree(self, event: Any) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            if event.anchor not in self._anchors:
                sentence = f"`*{event.anchor}` names nothing that stands before it"
                raise _FaultError("anchor", sentence, self._at(event))
            return self._anchors[event.anchor]
        if event.tag is not None:
            sentence = f"`{event.tag}`: tags are not read"
            raise _FaultError("anchor", sentence, self._at(event), "write the value without it")
        tree = self._scalar(event) if kind is yaml.ScalarEvent else self._nested(event)
        if event.anchor:
            self._anchors[event.anchor] = tree
        return tree

    def _nested(self, event: Any) -> Map | Seq:
        self._depth += 1
        if self._depth > _DEEPEST:
            sentence = f"nested deeper than {_DEEPEST} levels"
            raise _FaultError("yaml-syntax", sentence, self._at(event))
        read = self._map if type(event) is yaml.MappingStartEvent else self._seq
        tree = read(event)
        self._depth -= 1
        return tree

    def _map(self, start: Any) -> Map:
        tree, merged = Map(), []
        tree.file, tree.mark, tree.places = self._name, start.start_mark, {}
        while type(event := self._next()) is not yaml.MappingEndEvent:
            if _is_merge(event):
                merged.append((self._tree(self._next()), event))
                continue
            key = self._tree(event)
            below = self._next()
            value = self._tree(below)
            if type(key) is not str:
                self._notes.error("wrong-type", f"the key `{key}` is not text", self._at(event))
            else:
                self._put(tree, key, value, (event.start_mark, below.start_mark))
        return self._merged(tree, merged) if merged else tree

    def _put(self, tree: Map, key: str, value: Any, places: tuple[Any, Any]) -> None:
        if key in tree.places:
            first, again = tree.key_at(key), _where(self._name, places[0])
            sentence = (
                f"`{key}` stands here again; their loader keeps this one and drops, without a "
                f"word, the one on line {first.line}"
            )
            self._notes.warn("duplicate-key", sentence, again, "rename or remove one of them")
        tree[key], tree.places[key] = value, places

    def _merged(self, own: Map, merged: Sequence[tuple[Any, Any]]) -> Map:
        """Return a mapping with what it merges, which stands first, as PyYAML puts it; of two that
        say a key the earlier one counts."""
        tree = Map()
        tree.file, tree.mark, tree.places = own.file, own.mark, {}
        for source in (s for value, event in merged for s in self._sources(value, event)):
            tree |= {key: value for key, value in source.items() if key not in tree}
            tree.places |= {key: p for key, p in source.places.items() if key not in tree.places}
        tree |= own
        tree.places |= own.places
        return tree

    def _sources(self, value: Any, event: Any) -> list[Map]:
        sources = value if type(value) is Seq else [value]
        if any(type(source) is not Map for source in sources):
            raise _FaultError("wrong-type", "`<<` merges mappings only", self._at(event))
        return sources

    def _seq(self, start: Any) -> Seq:
        tree = Seq()
        tree.file, tree.mark, tree.places = self._name, start.start_mark, []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            tree.append(self._tree(event))
            tree.places.append(event.start_mark)
        return tree

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if not event.implicit[0]:
            return text
        if text not in self._plain:
            self._plain[text] = self._resolved(text, event)
        return self._plain[text]

    def _resolved(self, text: str, event: Any) -> Any:
        """Return what PyYAML's safe loader takes a plain scalar for."""
        tag = self._resolver.resolve(yaml.ScalarNode, text, (True, False))
        try:
            return self._resolver.construct_object(yaml.ScalarNode(tag, text))
        except (ValueError, yaml.YAMLError):
            shown = f"{text[:24]}{'…' * (len(text) > 24)}"
            sentence = f"`{shown}` is no value that can be read"
            raise _FaultError("out-of-range", sentence, self._at(event), "quote it") from None
