"""configs/hardware.yaml: prices and provisioned power by hardware class."""

from __future__ import annotations

from collections.abc import Mapping

from infx.config.library import Library
from infx.config.names import NAME_HINT, is_name
from infx.config.nodes import ListNode, MapNode, Node, Report, ScalarNode, is_null, plain
from infx.config.project import Project, is_file
from infx.config.shape import shaped
from infx.domain.findings import Where
from infx.domain.hardware import Hardware, Price, Provisioned

__all__ = ["VERSION", "read_hardware"]

VERSION = "version"
"""What no hardware is called: it counts the states of the file's constants."""


def read_hardware(project: Project) -> Mapping[str, Hardware]:
    """Return what the project, else infx itself, says of each hardware class; empty without a file.

    Raises ConfigError with every fault of the file.
    """
    path = project.hardware_path()
    if not is_file(path):
        return {}
    library = Library(project)
    node = library.read(path)
    found = _classes(node, library.report) if node else {}
    library.report.check()
    return found


def _classes(node: MapNode, report: Report) -> dict[str, Hardware]:
    found = {}
    for key, below in node.values.items():
        name, where = str(key), node.keys[key]
        if name == VERSION:
            _check_version(below, report)
            continue
        if not is_name(name):
            report.error("bad-name", f"`{name}` cannot name hardware", where, NAME_HINT)
        found[name] = _hardware(name, below, report)
    return found


def _check_version(node: Node, report: Report) -> None:
    said = plain(node)
    if isinstance(said, bool) or not isinstance(said, int) or said < 1:
        hint = "raise it by one with each change of a constant"
        report.error("out-of-range", "`version` counts from 1", node.where, hint)


def _hardware(name: str, node: Node, report: Report) -> Hardware:
    shaped(node, "HardwareSection", f"the hardware `{name}`", report)
    below = node.get("prices") if isinstance(node, MapNode) else None
    prices = [_price(item, report) for item in below.items] if isinstance(below, ListNode) else []
    known = [price for price in prices if price]
    if isinstance(below, ListNode):
        _refuse_twice(below, report)
    return Hardware(name=name, prices=tuple(known), provisioned=_provisioned(node, report))


def _price(node: Node, report: Report) -> Price | None:
    section = shaped(node, "PriceSection", "a price", report)
    return Price(**section) if section else None


def _provisioned(node: Node, report: Report) -> Provisioned | None:
    below = node.get("provisioned") if isinstance(node, MapNode) else None
    if below is None or is_null(below):
        return None
    section = shaped(below, "ProvisionedSection", "`provisioned`", report)
    return Provisioned(**section) if section else None


def _refuse_twice(prices: ListNode, report: Report) -> None:
    seen: dict[str, Where] = {}
    for item in prices.items:
        tier = item.get("tier") if isinstance(item, MapNode) else None
        if not isinstance(tier, ScalarNode):
            continue
        if tier.text in seen:
            sentence = f"the tier `{tier.text}` stands at {seen[tier.text]} already"
            report.error("duplicate-key", sentence, tier.where, "rename one")
        seen.setdefault(tier.text, tier.where)
