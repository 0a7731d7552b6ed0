"""The entries of a changelog with their places, read strictly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from infx.changelog.text import byte_findings, decoded, is_bare, readable
from infx.config.nodes import ListNode, MapNode, Node, Report, ScalarNode, is_null, parse_yaml
from infx.config.suggestions import did_you_mean
from infx.domain.findings import Finding, Where
from infx.domain.point import Agentic, FixedLengths, Workload

__all__ = [
    "PLACEHOLDER",
    "PLANNED",
    "SCENARIO_TYPES",
    "SINCE",
    "Changelog",
    "Entry",
    "Key",
    "of_run",
    "read_changelog",
]

PLACEHOLDER = "XXX"
"""Stands for the pull request's address until it has one."""

PLANNED = "planned: "
"""How each sentence of a description begins that tells what is not measured yet."""

SINCE = "since run "
"""How each sentence of a description begins that compares with an earlier run."""

SCENARIO_TYPES: Mapping[type[Workload], str] = {
    FixedLengths: "fixed-seq-len",
    Agentic: "agentic-coding",
}
"""The public names of throughput workloads."""

_FIELDS = (
    *("config-keys", "description", "pr-link", "evals-only", "all-evals", "append-only"),
    *("scenario-type", "eval-min-prefill-ep"),
)


@dataclass(frozen=True, slots=True)
class Key:
    """The name of an entry of a matrix, in which ``*`` stands for anything."""

    text: str
    where: Where

    def named(self, names: Iterable[str]) -> list[str]:
        """Return those of ``names`` that it names."""
        matches = re.compile(".*".join(map(re.escape, self.text.split("*")))).fullmatch
        return [name for name in names if matches(name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry; ``where`` is its first key, ``link_where`` the link.

    ``scenario_types`` limits it to those scenarios, none to no scenario. ``eval_min_prefill_ep``
    is the least expert parallelism of the prefill servers that are evaluated, None for any.
    """

    keys: tuple[Key, ...]
    description: tuple[str, ...]
    pr_link: str
    evals_only: bool = False
    all_evals: bool = False
    append_only: bool = False
    scenario_types: tuple[str, ...] = ()
    eval_min_prefill_ep: int | None = None
    where: Where
    link_where: Where

    @property
    def keys_told(self) -> frozenset[str]:
        """The texts of its keys."""
        return frozenset(key.text for key in self.keys)

    def selects(self, name: str) -> bool:
        """Return True when a key names the matrix entry ``name``."""
        return any(key.named([name]) for key in self.keys)


@dataclass(frozen=True, slots=True)
class Changelog:
    """A whole file as text and as entries, with all that is wrong with its bytes and its format.

    An entry that lacks its keys, description or link is not among ``entries``.
    """

    file: str
    text: str
    entries: tuple[Entry, ...]
    findings: tuple[Finding, ...]


def of_run(run: str) -> str:
    """Return how the sentence of a description begins that tells which run the entry is of."""
    return f"run {run}: "


def read_changelog(data: bytes, file: str) -> Changelog:
    """Return the changelog in ``data``, which findings call ``file``; never raises."""
    text = decoded(data, file)
    if isinstance(text, Finding):
        return Changelog(file, data.decode("utf-8", "replace"), (), (text,))
    report = Report(list(byte_findings(text, file)))
    if is_bare(text):
        return Changelog(file, text, (), tuple(report.findings))
    root = parse_yaml(readable(text).encode(), file, report)
    entries = list(_entries(root, text.split("\n"), report))
    return Changelog(file, text, tuple(entry for entry in entries if entry), tuple(report.findings))


def _entries(root: Node | None, lines: list[str], report: Report) -> Iterator[Entry | None]:
    if root is None:
        return
    if not isinstance(root, ListNode):
        report.error("wrong-type", "a changelog is a list of entries", root.where)
        return
    for node in root.items:
        start = lines[node.where.line - 1].removeprefix("\ufeff")
        if not start.startswith("- config-keys:"):
            sentence = "the entry does not begin with `- config-keys:` at the margin"
            report.error("entry-start", sentence, Where(node.where.file, node.where.line, 1))
        yield _entry(node, report)


def _entry(node: Node, report: Report) -> Entry | None:
    if not isinstance(node, MapNode):
        report.error("wrong-type", "an entry is a mapping", node.where)
        return None
    _check_names(node, report)
    read = _Reader(node, report)
    keys, told, link = read.texts("config-keys"), read.texts("description"), read.text("pr-link")
    entry = Entry(
        keys=tuple(Key(scalar.text, scalar.where) for scalar in keys),
        description=tuple(scalar.text for scalar in told),
        pr_link=link.text if link else "",
        evals_only=read.flag("evals-only"),
        all_evals=read.flag("all-evals"),
        append_only=read.flag("append-only"),
        scenario_types=read.scenario_types(),
        eval_min_prefill_ep=read.count("eval-min-prefill-ep"),
        where=node.where,
        link_where=link.where if link else node.where,
    )
    _check_append_only(entry, report)
    return entry if keys and told and link else None


def _check_append_only(entry: Entry, report: Report) -> None:
    asks = entry.evals_only or entry.all_evals or entry.eval_min_prefill_ep is not None
    if entry.append_only and asks:
        sentence = "append-only stands beside evals-only, all-evals or eval-min-prefill-ep"
        report.error("conflicting-keys", sentence, entry.where)


def _check_names(node: MapNode, report: Report) -> None:
    for name, where in node.keys.items():
        if name not in _FIELDS:
            hint = did_you_mean(str(name), _FIELDS)
            report.error("unknown-key", f"`{name}` is no key of an entry", where, hint or "")
    for name in _FIELDS[:3]:
        if name not in node.keys:
            report.error("missing-key", f"the entry has no `{name}`", node.where)


class _Reader:
    """Reads the values of one entry; what is wrong goes to the report."""

    def __init__(self, node: MapNode, report: Report) -> None:
        self._node, self._report = node, report

    def texts(self, name: str) -> tuple[ScalarNode, ...]:
        """Return the distinct texts of a list that holds at least one."""
        node = self._node.get(name)
        if node is None:
            return ()
        if not isinstance(node, ListNode) or not node.items:
            self._wrong(name, "a list of at least one text")
            return ()
        scalars = (item for item in node.items if self._is_text(item, name))
        found = [item for item in scalars if isinstance(item, ScalarNode)]
        return tuple(self._distinct(found, name))

    def text(self, name: str) -> ScalarNode | None:
        """Return a text, or None."""
        node = self._node.get(name)
        return node if isinstance(node, ScalarNode) and self._is_text(node, name) else None

    def flag(self, name: str) -> bool:
        """Return true or false; false where it is absent."""
        value = self._scalar(name, lambda value: isinstance(value, bool), "true or false")
        return value is True

    def count(self, name: str) -> int | None:
        """Return a whole number of at least 1, None where it is absent."""
        value = self._scalar(name, _is_count, "a whole number of at least 1")
        return value if isinstance(value, int) else None

    def scenario_types(self) -> tuple[str, ...]:
        """Return the scenario types."""
        found = self.texts("scenario-type")
        for scalar in found:
            if scalar.text not in SCENARIO_TYPES.values():
                sentence = f"`{scalar.text}` is no scenario type"
                types = SCENARIO_TYPES.values()
                hint = did_you_mean(scalar.text, types) or " or ".join(types)
                self._report.error("unknown-value", sentence, scalar.where, hint)
        return tuple(scalar.text for scalar in found)

    def _scalar(self, name: str, fits: Callable[[object], bool], expected: str) -> object:
        node = self._node.get(name)
        if node is None or (isinstance(node, ScalarNode) and node.faulty):
            return None
        if isinstance(node, ScalarNode) and fits(node.value):
            return node.value
        self._wrong(name, expected)
        return None

    def _is_text(self, node: Node, name: str) -> bool:
        """Return True for text; a number or word that YAML reads as a value counts as none."""
        if isinstance(node, ScalarNode) and (isinstance(node.value, str) and node.text.strip()):
            return True
        if not (isinstance(node, ScalarNode) and node.faulty):
            what = "empty" if is_null(node) else "not text"
            self._report.error("wrong-type", f"a value of `{name}` is {what}", node.where)
        return False

    def _distinct(self, found: Iterable[ScalarNode], name: str) -> Iterator[ScalarNode]:
        seen: dict[str, Where] = {}
        for scalar in found:
            if scalar.text in seen and name != "description":
                sentence = f"`{scalar.text}` is on line {seen[scalar.text].line} already"
                self._report.error("repeated-value", sentence, scalar.where)
                continue
            seen[scalar.text] = scalar.where
            yield scalar

    def _wrong(self, name: str, expected: str) -> None:
        node = self._node.values[name]
        self._report.error("wrong-type", f"`{name}` must be {expected}", node.where)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
