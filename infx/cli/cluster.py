"""infx cluster: a real Slurm on this machine, and what jobs need on clusters elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli import prepare
from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.launch.lab import LabState

__all__ = ["register"]

Folder = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        metavar="DIR",
        envvar="INFX_LAB",
        help="the lab's folder (default: infx/lab in the user's state folder)",
        show_default=False,
    ),
]

_NODES = ("NODE", "STATE", "CPUS A/I/O/T", "GPUS IN USE", "REASON")
_JOBS = ("JOB", "NAME", "USER", "STATE", "TIME", "WHERE")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="A real Slurm on this machine, and what jobs need on others.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("up", help="Start a Slurm whose nodes are all this machine.")(_up)
    group.command("down", help="End it with its jobs, and remove all that it wrote.")(_down)
    group.command("status", help="Show its daemons, nodes and jobs.")(_status)
    group.command("prepare", help=prepare.HELP)(prepare.prepare)
    app.add_typer(group, name="cluster")


def _up(
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", help="how many nodes")] = 4,
    gpus: Annotated[int, typer.Option("--gpus", metavar="N", help="GPUs a node poses to have")] = 8,
    accounting: Annotated[
        bool, typer.Option("--accounting", help="add slurmdbd: sacct, accounts and QOS")
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> int:
    from infx.cli.output import emit
    from infx.launch.lab import LabSpec, lab_folder, status, up

    spec = LabSpec(folder or lab_folder(), nodes=nodes, gpus=gpus, accounting=accounting)
    before = status(spec.folder)
    lab = up(spec, _tell)
    if as_json:
        emit("cluster-up", _plain(lab))
    else:
        _explain(lab, ran=before is not None and before.pids == lab.pids)
    return 0


def _down(folder: Folder = None, as_json: Json = False) -> int:
    from infx.cli.output import emit, say
    from infx.launch.lab import down, lab_folder

    where = folder or lab_folder()
    ended = down(where, _tell)
    if as_json:
        emit("cluster-down", {"folder": str(where), "ended": ended})
    elif not ended:
        say(f"there is no lab in {where}")
    else:
        say(f"down: {where} is removed")
    return 0


def _status(folder: Folder = None, as_json: Json = False) -> int:
    from infx.cli.output import emit, say
    from infx.launch.lab import existing, lab_folder
    from infx.launch.lab.view import job_rows, node_rows

    lab = existing(folder or lab_folder())
    answers = lab.pids["slurmctld"]
    nodes = node_rows(lab.spec) if answers else []
    jobs = job_rows(lab.spec) if answers else []
    if as_json:
        emit("cluster-status", {**_plain(lab), "nodes": nodes, "jobs": jobs}, ok=lab.is_up)
    else:
        _show(lab, nodes, jobs)
        if not lab.is_up:
            say(f"start again what is dead: {_command(lab)}")
    return 0 if lab.is_up else 3


def _tell(step: str, seconds: float) -> None:
    from infx.cli.output import say

    say(f"{seconds:6.2f} s  {step}")


def _plain(lab: LabState) -> dict[str, Any]:
    from infx.launch.lab import slurm_conf

    spec = {name: getattr(lab.spec, name) for name in ("gpus", "gpu_type", "cpus", "accounting")}
    return {
        "folder": str(lab.spec.folder),
        "slurm_conf": str(slurm_conf(lab.spec.folder)),
        "cluster": lab.place.cluster,
        **spec,
        "daemons": lab.pids,
    }


def _explain(lab: LabState, *, ran: bool) -> None:
    """Say on stderr how to use the lab; stdout has what a shell can eval."""
    from infx.cli.output import say
    from infx.launch.lab import lab_folder
    from infx.launch.lab.hosts import may_write

    spec = lab.spec
    nodes = f"{spec.nodes} nodes" if spec.nodes > 1 else "1 node"
    shape = f"{nodes} with {spec.gpus} {spec.gpu_type}{' each' if spec.nodes > 1 else ''}"
    say(f"{'already up' if ran else 'up'}: {shape}, in {spec.folder}")
    if not may_write():
        say("node1 and so on are names within Slurm only: root alone may write /etc/hosts")
    elsewhere = spec.folder != lab_folder()
    say("sweep on it:  infx sweep configs/quickstart.yaml --on lab")
    say("end it:       infx cluster down")
    if elsewhere:
        say("in a shell that has the first of these lines; the second is for sbatch and squeue:")
        print(f"export INFX_LAB={spec.folder}")
    else:
        say("for sbatch and squeue of your own:")
    print(f"export SLURM_CONF={spec.conf}")


def _command(lab: LabState) -> str:
    """Return the command that starts the lab as it is."""
    spec = lab.spec
    accounting = " --accounting" if spec.accounting else ""
    sizes = f"--nodes {spec.nodes} --gpus {spec.gpus}"
    return f"infx cluster up --dir {spec.folder} {sizes}{accounting}"


def _show(lab: LabState, nodes: list[Any], jobs: list[Any]) -> None:
    from infx.cli.output import table

    daemons = [(name, pid or "", "up" if pid else "dead") for name, pid in lab.pids.items()]
    table(("DAEMON", "PID", "STATE"), daemons)
    if nodes:
        print()
        table(_NODES, [(n.name, n.state, n.cpus, n.gpus_in_use, n.reason) for n in nodes])
    if jobs:
        print()
        table(_JOBS, [(j.id, j.name, j.user, j.state, j.elapsed, j.where) for j in jobs])
