"""configs/clusters.yaml: each cluster with what its site's Slurm wants, or what is wrong with it.

The models check keys, types and names; here is what no type says. What looks sound but breaks a
job later (an option of sbatch that infx sets itself, accelerators that nobody asks for) is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from infx.config.names import NAME_HINT, is_name
from infx.config.nodes import ListNode, MapNode, Node, Report, ScalarNode, is_null
from infx.config.shape import shaped, wrong_type
from infx.config.sites import Cluster, Container, ExcludedNodes, SlurmSite, TimeLimits
from infx.config.srt_sites import read_srt
from infx.domain.findings import Finding, Where

__all__ = ["expired_exclusions", "read_clusters"]

_MOUNT = re.compile(r"/[^:,\s]*:/[^:,\s]*(:r[ow])?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_JOB_NEEDS = ("SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID", "PATH")

_OWN = {
    **dict.fromkeys(("--partition", "--account", "--qos", "--exclusive"), "write `{key}:`"),
    **dict.fromkeys(("--gres", "--gpus", "--gpus-per-node"), "write `gpus:` and `gpus-per-node:`"),
    "--exclude": "write `exclude-nodes:`, with a date and a reason",
    "--time": "write `time-limits: {{job: …}}`",
    "--array": "write `jobs-at-once:` or `largest-array:`",
    **dict.fromkeys(
        (
            *(
                "--job-name",
                "--output",
                "--error",
                "--open-mode",
                "--chdir",
                "--signal",
                "--export",
            ),
            *("--nodes", "--ntasks", "--requeue", "--no-requeue", "--kill-on-invalid-dep"),
            *("--wait", "--wrap", "--parsable", "--test-only", "--quiet", "--hold", "--input"),
            *("--dependency", "--begin", "--export-file", "--get-user-env", "--ignore-pbs"),
        ),
        "leave it out",
    ),
}
"""Options of sbatch that infx writes itself or relies on, with what to write instead."""


def read_clusters(node: MapNode, report: Report) -> dict[str, Cluster | None]:
    """Return the clusters of the file by name; None for one whose faults were reported."""
    found: dict[str, Cluster | None] = {}
    for key, value in node.values.items():
        name, where = str(key), node.keys[key]
        if not is_name(name):
            report.error("bad-name", f"`{name}` cannot name a cluster", where, NAME_HINT)
        found[name] = _cluster(name, where, value, report)
    return found


def expired_exclusions(cluster: Cluster, today: str) -> Iterator[Finding]:
    """Yield a warning for each exclusion of nodes whose last day is before ``today``
    (YYYY-MM-DD)."""
    for line in cluster.slurm.exclude_nodes if cluster.slurm else ():
        if line.expired(today):
            until = f"left out until {line.until} ({line.reason})"
            sentence = f"jobs run on {line.nodes} again: {until}"
            hint = "remove the line, or give it a later day"
            yield Finding("exclusion-expired", "warning", sentence, line.where, hint)


def _cluster(name: str, where: Where, node: Node, report: Report) -> Cluster | None:
    before = len(report.findings)
    section = shaped(node, "ClusterSection", f"the cluster `{name}`", report)
    if not isinstance(node, MapNode):
        return None
    _advise(node, report)
    limits = _limits(_present(node, "time-limits"), report)
    slurm, below = _slurm(name, node, report), node.get("slurm")
    srt = read_srt(name, node, report)
    if section and slurm and isinstance(below, MapNode):
        _check_gpus(slurm, section["gpus_per_node"], below, report)
    if section is None or len(report.findings) > before:
        return None
    keys = ("executor", "hardware", "gpus_per_node", "dram_gb_per_node")
    named = {key: section[key] for key in keys}
    return Cluster(name=name, limits=limits, slurm=slurm, srt=srt, where=where, **named)


def _advise(node: MapNode, report: Report) -> None:
    """Say what became of the key that limits had before there were three of them."""
    if old := node.get("time-limit-s"):
        seconds = old.text if isinstance(old, ScalarNode) else "3600"
        hint = f"write time-limits: {{job: {seconds}}}"
        report.advise("unknown-key", node.keys["time-limit-s"], hint)


def _limits(node: Node | None, report: Report) -> TimeLimits:
    section = shaped(node, "TimeLimitsSection", "`time-limits`", report) if node else None
    return TimeLimits(**section) if section else TimeLimits()


def _slurm(name: str, node: MapNode, report: Report) -> SlurmSite | None:
    executor, below = _text(node, "executor"), _present(node, "slurm")
    if below is None:
        if executor == "slurm":
            sentence = f"the cluster `{name}` has `executor: slurm` and no section `slurm`"
            report.error("missing-key", sentence, node.where, "add slurm: {partition: NAME}")
        return None
    if executor in ("local", "srt"):
        sentence = f"the cluster `{name}` has `executor: {executor}` and a section `slurm`"
        report.error("conflicting-keys", sentence, node.keys["slurm"], "write executor: slurm")
    return _site(below, report)


def _site(node: Node, report: Report) -> SlurmSite | None:
    section = shaped(node, "SlurmSection", "`slurm`", report)
    if not isinstance(node, MapNode):
        return None
    container = _container(_present(node, "container"), node, report)
    excluded = [_excluded(item, report) for item in _items(node, "exclude-nodes")]
    _check_reach(node, report)
    _check_directives(node, report)
    _check_strip(node, report)
    if section is None:
        return None
    said = {key: value for key, value in section.items() if value is not None}
    nested: dict[str, Any] = {
        "container": container,
        "exclude_nodes": tuple(line for line in excluded if line),
        "directives": tuple(said["directives"]),
        "strip": tuple(said["strip"]),
    }
    return SlurmSite(**(said | nested))


def _check_reach(node: MapNode, report: Report) -> None:
    ssh, lab = _present(node, "ssh"), _present(node, "lab")
    if ssh and isinstance(lab, ScalarNode) and lab.value is True:
        sentence = "`slurm` has `ssh` and `lab`, which is the cluster of this machine"
        report.error("conflicting-keys", sentence, node.keys["lab"], "remove one")
    if ssh and not _present(node, "folder"):
        sentence = "`slurm` has `ssh` and no `folder`, where runs would lie there"
        report.error("missing-key", sentence, node.keys["ssh"], "add folder: /PATH/SHARED/THERE")


def _check_gpus(site: SlurmSite, have: int, slurm: MapNode, report: Report) -> None:
    """Report accelerators that nobody would ask for, or that no node has."""
    asked = next((key for key in ("gpu-type", "gpus") if _present(slurm, key)), "")
    if site.gpus == "none":
        if site.gpu_type:
            sentence = f"`gpus: none` asks for no accelerator and `gpu-type` is {site.gpu_type}"
            where = slurm.keys["gpu-type"]
            report.error("conflicting-keys", sentence, where, "remove one")
        elif have and not site.exclusive:
            sentence = f"`gpus: none` would share the {have} accelerators of a node between jobs"
            hint = "add exclusive: true, or write gpus: gres"
            report.error("conflicting-keys", sentence, slurm.keys["gpus"], hint)
    elif asked and not have:
        sentence = f"`{asked}` is about accelerators, and `gpus-per-node` is 0"
        report.error("conflicting-keys", sentence, slurm.keys[asked], "write gpus-per-node: 8")


def _check_directives(node: MapNode, report: Report) -> None:
    for item in _texts(node, "directives"):
        option = item.text.partition("=")[0]
        if option in _OWN:
            hint = _OWN[option].format(key=option.removeprefix("--"))
            sentence = f"infx writes the option `{option}` itself"
            report.error("conflicting-keys", sentence, item.where, hint)


def _check_strip(node: MapNode, report: Report) -> None:
    for item in _texts(node, "strip"):
        for needed in (name for name in _JOB_NEEDS if fnmatchcase(name, item.text)):
            sentence = f"`{item.text}` takes {needed} from jobs, which need it"
            report.error("conflicting-keys", sentence, item.where, "name less")
            break


def _container(node: Node | None, slurm: MapNode, report: Report) -> Container | None:
    section = shaped(node, "ContainerSection", "`container`", report) if node else None
    if not isinstance(node, MapNode):
        return None
    for item in _texts(node, "mounts"):
        if not _MOUNT.fullmatch(item.text):
            wrong_type(item, "a mount", "HOST:INSIDE[:ro|rw], absolute paths", report)
    folder = _text(slurm, "folder")
    if section is None:
        return None
    if section["runtime"] == "none":
        _refuse_without_runtime(node, report)
    elif not section["images"] and not folder:
        sentence = "`container` has no `images`, and `slurm` no `folder` to put them in"
        report.error("missing-key", sentence, node.where, "add images: /PATH/SHARED/THERE")
    return Container(
        runtime=section["runtime"],
        mounts=tuple(section["mounts"]),
        images=section["images"] or (f"{folder}/images" if folder else ""),
        client=section["client"] or "",
    )


def _refuse_without_runtime(node: MapNode, report: Report) -> None:
    for key in (key for key in ("mounts", "images", "client") if _present(node, key)):
        sentence = f"`{key}` is about containers, and `runtime` is none"
        report.error("conflicting-keys", sentence, node.keys[key], "write runtime: pyxis")


def _excluded(node: Node, report: Report) -> ExcludedNodes | None:
    section = shaped(node, "ExcludedNodesSection", "an exclusion", report)
    until = node.get("until") if isinstance(node, MapNode) else None
    if isinstance(until, ScalarNode) and isinstance(until.value, str) and not _is_day(until.text):
        wrong_type(until, "`until`", "a day", report, "write YYYY-MM-DD in quotes")
    return ExcludedNodes(where=node.where, **section) if section else None


def _is_day(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def _present(node: MapNode, key: str) -> Node | None:
    below = node.get(key)
    return None if below is None or is_null(below) else below


def _text(node: MapNode, key: str) -> str:
    below = node.get(key)
    return below.value if isinstance(below, ScalarNode) and isinstance(below.value, str) else ""


def _items(node: MapNode, key: str) -> tuple[Node, ...]:
    below = node.get(key)
    return below.items if isinstance(below, ListNode) else ()


def _texts(node: MapNode, key: str) -> list[ScalarNode]:
    items = _items(node, key)
    return [item for item in items if isinstance(item, ScalarNode) and isinstance(item.value, str)]
