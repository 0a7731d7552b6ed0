"""infx cluster prepare: what jobs need on a cluster without network, once for each lock file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.config.sites import Cluster
    from infx.launch.prepare import Prepared

__all__ = ["HELP", "prepare"]

HELP = "Give a cluster's nodes infx and its client, and check that one can run them."


def prepare(
    cluster: Annotated[
        str, typer.Argument(metavar="CLUSTER", help="a key of configs/clusters.yaml")
    ],
    extras: Annotated[
        str,
        typer.Option(
            "--extras",
            metavar="NAMES",
            help="extras of infx with commas between; engine where infx's own engine runs there",
        ),
    ] = "bench",
    python: Annotated[
        str | None,
        typer.Option(
            "--python",
            metavar="X.Y",
            help="Python of the nodes (default: the cluster's `python`, else what is found there)",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Run the command."""
    from infx.cli.options import project
    from infx.cli.planning import cluster_named

    chosen = cluster_named(cluster, project(), "CLUSTER")
    if image := _client(chosen):
        return _image(chosen, image, as_json)
    if chosen.slurm is None or not chosen.slurm.folder:
        return _nothing(chosen, as_json)
    return _bundle(chosen, [name for name in extras.split(",") if name], python or "", as_json)


def _client(cluster: Cluster) -> str:
    container = cluster.slurm.container if cluster.slurm else None
    return container.client if container else ""


def _image(cluster: Cluster, image: str, as_json: bool) -> int:
    from infx.cli.output import emit
    from infx.launch.executors import transport_to
    from infx.launch.prepare import check_image

    transport = transport_to(cluster)
    try:
        check_image(transport, image)
    finally:
        transport.close()
    if as_json:
        emit("cluster-prepare", {"image": image, "prepared": None})
    else:
        print(f"{cluster.name}: jobs find infx in the image {image}; nothing to prepare")
    return 0


def _nothing(cluster: Cluster, as_json: bool) -> int:
    from infx.cli.output import emit

    if as_json:
        emit("cluster-prepare", {"image": None, "prepared": None})
    else:
        print(f"{cluster.name}: jobs run with this infx itself (no `folder`); nothing to prepare")
    return 0


def _bundle(cluster: Cluster, extras: list[str], python: str, as_json: bool) -> int:
    from datetime import date

    from infx.cli.output import emit, say
    from infx.launch.executors import transport_to
    from infx.launch.prepare import prepare as prepare_there
    from infx.launch.prepare.bundle import cache_folder, own_wheel

    assert cluster.slurm
    cache = cache_folder()
    transport = transport_to(cluster)
    try:
        made = prepare_there(
            cluster,
            transport,
            own_wheel(cache),
            cache,
            extras=extras,
            python=python,
            exclude=cluster.slurm.excluded(date.today().isoformat()),
            say=say,
        )
    finally:
        transport.close()
    if as_json:
        emit("cluster-prepare", {"image": None, "prepared": made})
    else:
        _show(cluster.name, made)
    return 0


def _show(cluster: str, made: Prepared) -> None:
    from infx.cli.output import duration, table

    node = made.checked
    there = made.files - made.pushed_files
    versions = ", ".join(f"{name} {version}" for name, version in node.versions.items())
    rows = [
        ("bundle", f"{made.bundle}: {made.files} wheels, {made.bytes / 1e6:.1f} MB"),
        ("there already", f"{there} wheels{'' if made.installed else ', the environment'}"),
        ("pushed", f"{made.pushed_files} wheels, {made.pushed_bytes / 1e6:.1f} MB"),
        ("python", f"{made.python} ({made.python_version})"),
        ("checked", f"node {node.node}, glibc {node.glibc}: {versions}"),
        ("took", duration(made.seconds)),
        ("next", f"infx sweep MATRIX --on {cluster}"),
    ]
    table(("WHAT", "FOUND"), rows)
