"""The section ``srt`` of a cluster: what its site's srt-slurm wants."""

from __future__ import annotations

from infx.config.nodes import MapNode, Node, Report, ScalarNode, is_null
from infx.config.shape import shaped
from infx.config.sites import SrtSite

__all__ = ["check_set", "read_srt"]

# What infx says itself of every recipe: another word would take its job or its outputs from it.
_OWN = ("name", "schema", "base", "sweep", "output", "benchmark.type", "benchmark.command")


def read_srt(name: str, node: MapNode, report: Report) -> SrtSite | None:
    """Return the site of the cluster ``name``; None without one, or after reporting its faults."""
    below, executor = node.get("srt"), node.get("executor")
    asked = executor.value if isinstance(executor, ScalarNode) else ""
    if below is None or is_null(below):
        if asked == "srt":
            sentence = f"the cluster `{name}` has `executor: srt` and no section `srt`"
            report.error("missing-key", sentence, node.where, "add srt: {srtctl: PROGRAM}")
        return None
    if asked in ("local", "slurm"):
        sentence = f"the cluster `{name}` has `executor: {asked}` and a section `srt`"
        report.error("conflicting-keys", sentence, node.keys["srt"], "write executor: srt")
    return _site(below, report)


def _site(node: Node, report: Report) -> SrtSite | None:
    section = shaped(node, "SrtSection", "`srt`", report)
    if not isinstance(node, MapNode):
        return None
    if _given(node, "ssh") and not _given(node, "folder"):
        sentence = "`srt` has `ssh` and no `folder`, where runs would lie there"
        report.error("missing-key", sentence, node.keys["ssh"], "add folder: /PATH/SHARED/THERE")
    check_set(node.get("set"), report)
    if section is None:
        return None
    return SrtSite(**{key: value for key, value in section.items() if value is not None})


def check_set(node: Node | None, report: Report) -> None:
    """Report keys of ``set`` that infx says itself."""
    if not isinstance(node, MapNode):
        return
    for key in node.values:
        if any(f"{key}.".startswith(f"{own}.") for own in _OWN):
            sentence = f"infx writes `{key}` of a recipe itself"
            report.error("conflicting-keys", sentence, node.keys[key], "leave it out")


def _given(node: MapNode, key: str) -> bool:
    below = node.get(key)
    return below is not None and not is_null(below)
