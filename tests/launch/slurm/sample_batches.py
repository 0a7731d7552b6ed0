"""Batches of small jobs, on the clusters that infx ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from infx.config.clusters import read_clusters
from infx.config.nodes import MapNode, Report, read_yaml
from infx.config.sites import Cluster
from infx.domain.record import Attempt
from infx.launch.executor import Order
from infx.launch.slurm.batch import Batch, Shape
from tests.store.tiny_plans import job

ROOT = Path(__file__).parents[3]


def clusters(path: Path = ROOT / "configs/clusters.yaml") -> dict[str, Cluster]:
    """The sound clusters of a file."""
    report = Report()
    node, _ = read_yaml(path, path.name, report)
    assert isinstance(node, MapNode)
    found = read_clusters(node, report)
    assert not report.findings
    return {name: cluster for name, cluster in found.items() if cluster}


def batch(count: int = 1, run_dir: Path = Path("/runs/r1"), **fields: Any) -> Batch:
    """``count`` attempts of one shape: ``gpus``, ``time_limit_s``, ``exclude``, ``at_once``;
    with ``turns`` they take turns."""
    orders = []
    for number in range(count):
        name = f"infx-r1-{number:08x}-a1"
        attempt = Attempt(run_id="r1", job_id=f"{number:x}", number=1, unique_name=name)
        orders.append(
            Order(attempt=attempt, job=job(number), folder=run_dir / f"jobs/j{number}/a1")
        )
    at_once = fields.pop("at_once", 0)
    shape = Shape(**{"gpus": 0, "time_limit_s": 3600} | fields)
    name = orders[0].name if count == 1 else "infx-r1-0123abcd-array"
    return Batch(name=name, shape=shape, orders=tuple(orders), at_once=at_once)
