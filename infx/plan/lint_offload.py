"""Offload of cache pages to host memory: with a budget, and within the share of a node.

An arm of g of a node's G accelerators may take floor(DRAM x g / G) of the node's DRAM, so that as
many such servers as the node has room for can run side by side; a machine without accelerators
gives all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from infx.config.sites import Cluster
from infx.domain.findings import Finding, Where
from infx.domain.point import Arm

__all__ = ["lint_offload", "share_gb"]


def lint_offload(arm: Arm, cluster: Cluster, at: Callable[..., Where]) -> Iterator[Finding]:
    """Yield offload without a budget, what only offload needs without it, and a budget over the
    arm's share of the node. ``at`` finds the line of an axis."""
    axes = arm.axes
    if axes.kv_offload == "none":
        yield from _unused(arm, at)
    elif axes.kv_offload_gb is None:
        sentence = f"kv-offload is {axes.kv_offload} and no budget says how much"
        where = at("kv_offload")
        yield Finding("offload-without-budget", "error", sentence, where, "add kv-offload-gb")
    elif cluster.dram_gb_per_node and axes.kv_offload_gb > (limit := share_gb(arm, cluster)):
        yield _over(arm, cluster, limit, at("kv_offload_gb", "kv_offload"))


def share_gb(arm: Arm, cluster: Cluster) -> int:
    """Return the host memory (GB) that the arm's accelerators may take of a node."""
    have = cluster.gpus_per_node
    if not have:
        return cluster.dram_gb_per_node
    return cluster.dram_gb_per_node * min(_accelerators(arm), have) // have


def _accelerators(arm: Arm) -> int:
    return arm.axes.tp * arm.axes.pp


def _unused(arm: Arm, at: Callable[..., Where]) -> Iterator[Finding]:
    hint = "write kv-offload: dram, or remove it"
    if arm.axes.kv_offload_gb is not None:
        sentence = f"kv-offload-gb is {arm.axes.kv_offload_gb} and kv-offload is none"
        yield Finding("budget-without-offload", "error", sentence, at("kv_offload_gb"), hint)
    if arm.axes.kv_offload_backend != "auto":
        sentence = f"kv-offload-backend is {arm.axes.kv_offload_backend} and kv-offload is none"
        where = at("kv_offload_backend")
        yield Finding("budget-without-offload", "error", sentence, where, hint)


def _over(arm: Arm, cluster: Cluster, limit: int, where: Where) -> Finding:
    have = cluster.gpus_per_node
    share = f"{_accelerators(arm)} of its {have} accelerators may take" if have else "it gives"
    sentence = (
        f"kv-offload-gb is {arm.axes.kv_offload_gb}; a node of {cluster.name} has "
        f"{cluster.dram_gb_per_node} GB of DRAM, and {share} {limit}"
    )
    return Finding("offload-over-limit", "error", sentence, where, f"write {limit} or less")
