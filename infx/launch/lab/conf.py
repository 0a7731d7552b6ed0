"""The configuration files of a lab: a Slurm whose nodes are all this machine. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "ACCOUNT",
    "LOW",
    "MAIN",
    "LabSpec",
    "Place",
    "gres_conf_text",
    "slurm_conf_text",
    "slurmdbd_conf_text",
]

MAIN = "gpu"
"""The default partition, which configs/clusters.yaml names for the lab."""
LOW = "low"
"""The partition whose jobs are requeued when one of MAIN needs their place."""
ACCOUNT = "bench"
"""The Slurm account that every user of a lab with accounting belongs to."""


@dataclass(frozen=True, slots=True)
class LabSpec:
    """What a lab pretends to be: ``nodes`` of ``cpus``, ``memory_mb`` and ``gpus`` each.

    ``folder`` holds everything it writes. ``accounting`` adds slurmdbd and a database, for sacct,
    accounts and QOS.
    """

    folder: Path
    nodes: int = 4
    gpus: int = 8
    gpu_type: str = "h200"
    cpus: int = 64
    memory_mb: int = 512_000
    accounting: bool = False

    @property
    def node_names(self) -> tuple[str, ...]:
        """``node1``, ``node2``, …"""
        return tuple(f"node{number}" for number in range(1, self.nodes + 1))

    @property
    def conf(self) -> Path:
        """Where slurm.conf is; the other files lie beside it."""
        return self.folder / "etc" / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        """The socket of the lab's own munged."""
        return self.folder / "run" / "munge.sock"


@dataclass(frozen=True, slots=True)
class Place:
    """What the machine lends to a lab: a name no other lab has, its host, its user, its ports."""

    cluster: str
    host: str
    user: str
    first_port: int

    @property
    def controller_port(self) -> int:
        """Where slurmctld listens."""
        return self.first_port

    @property
    def accounting_port(self) -> int:
        """Where slurmdbd listens."""
        return self.first_port + 1

    def node_port(self, number: int) -> int:
        """Where the slurmd of node ``number`` (from 1) listens."""
        return self.first_port + 1 + number


def slurm_conf_text(spec: LabSpec, place: Place) -> str:
    """Return slurm.conf."""
    parts = [_daemons(spec, place), _without_cgroups(), _scheduling(spec), _accounting(spec, place)]
    return "\n".join([*parts, *_nodes(spec, place), *_partitions(spec), ""])


def gres_conf_text(spec: LabSpec) -> str:
    """Return gres.conf. Slurm takes only device files for GPUs; a link to one will do."""
    if not spec.gpus:
        return ""
    files = spec.folder / "dev" / f"nvidia[0-{spec.gpus - 1}]"
    return f"Name=gpu Type={spec.gpu_type} File={files}\n"


def slurmdbd_conf_text(spec: LabSpec, place: Place) -> str:
    """Return slurmdbd.conf.

    ``localhost`` makes it reach its database by a socket: MYSQL_UNIX_PORT says by which.
    """
    return f"""\
AuthType=auth/munge
AuthInfo=socket={spec.munge_socket}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={place.accounting_port}
SlurmUser={place.user}
LogFile={spec.folder}/log/slurmdbd.log
PidFile={spec.folder}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={place.user}
StorageLoc=slurm
"""


def _daemons(spec: LabSpec, place: Place) -> str:
    run, log = spec.folder / "run", spec.folder / "log"
    return f"""\
ClusterName={place.cluster}
SlurmctldHost={place.host}(127.0.0.1)
SlurmctldPort={place.controller_port}
SlurmUser={place.user}
SlurmdUser={place.user}
AuthType=auth/munge
AuthInfo=socket={spec.munge_socket}
CredType=cred/munge
StateSaveLocation={spec.folder}/state
SlurmdSpoolDir={spec.folder}/spool/%n
SlurmctldPidFile={run}/slurmctld.pid
SlurmdPidFile={run}/slurmd-%n.pid
SlurmctldLogFile={log}/slurmctld.log
SlurmdLogFile={log}/slurmd-%n.log
SlurmdTimeout=15
ReturnToService=2
MailProg=/bin/true"""


def _without_cgroups() -> str:
    # OverMemoryKill stands in for the kernel's killer: it acts on jobs that ask for memory.
    return """\
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=5
JobAcctGatherParams=OverMemoryKill"""


def _scheduling(spec: LabSpec) -> str:
    # KillWait, MinJobAge and MaxArraySize are Slurm's defaults, written out: sites have them.
    gres = "GresTypes=gpu\n" if spec.gpus else ""
    return f"""\
{gres}SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=5,batch_sched_delay=1,sched_min_interval=20000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=30
MinJobAge=300
MaxArraySize=1001"""


def _accounting(spec: LabSpec, place: Place) -> str:
    # Without AccountingStoragePass sacct looks for /run/munge, and hangs for minutes.
    if not spec.accounting:
        return "AccountingStorageType=accounting_storage/none\nJobCompType=jobcomp/none"
    tres = "\nAccountingStorageTRES=gres/gpu" if spec.gpus else ""
    return f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={place.accounting_port}
AccountingStoragePass={spec.munge_socket}
AccountingStorageEnforce=associations,limits,qos{tres}"""


def _nodes(spec: LabSpec, place: Place) -> list[str]:
    gres = f" Gres=gpu:{spec.gpu_type}:{spec.gpus}" if spec.gpus else ""
    size = f"CPUs={spec.cpus} RealMemory={spec.memory_mb}{gres} State=UNKNOWN"
    return [
        f"NodeName={name} NodeHostname={place.host} NodeAddr=127.0.0.1"
        f" Port={place.node_port(number)} {size}"
        for number, name in enumerate(spec.node_names, 1)
    ]


def _partitions(spec: LabSpec) -> list[str]:
    common = f"Nodes=node[1-{spec.nodes}] MaxTime=24:00:00 DefaultTime=10:00 State=UP"
    return [
        f"PartitionName={MAIN} {common} Default=YES PriorityTier=10 PreemptMode=OFF",
        f"PartitionName={LOW} {common} PriorityTier=1 PreemptMode=REQUEUE",
    ]
