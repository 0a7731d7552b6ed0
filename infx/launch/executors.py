"""From a cluster of the cluster file to what runs jobs on it."""

from __future__ import annotations

import os
from pathlib import Path

from infx.config.sites import Cluster
from infx.domain.errors import InfraError
from infx.launch.executor import Executor
from infx.launch.lab import lab_folder, slurm_conf
from infx.launch.local import LocalExecutor
from infx.launch.transport import Answer, LocalTransport, Transport

__all__ = ["executor_for", "transport_to"]

LAB_PACE_S = (2.0, 10.0)
LAB_PATIENCE_S = 10.0
"""The lab's scheduler serves one person and its files are on this machine's disk."""


def executor_for(cluster: Cluster) -> Executor:
    """Return a new executor; nothing is asked of a cluster yet."""
    if cluster.srt:
        from infx.launch.srt.executor import SrtExecutor

        return SrtExecutor(cluster, transport_to(cluster))
    if cluster.slurm is None:
        return LocalExecutor(cluster.name, cluster.limits)
    from infx.launch.slurm.executor import SlurmExecutor
    from infx.launch.slurm.watch import Pace

    transport = transport_to(cluster)
    if cluster.slurm.lab:
        return SlurmExecutor(cluster, transport, pace=Pace(*LAB_PACE_S), patience_s=LAB_PATIENCE_S)
    return SlurmExecutor(cluster, transport)


def transport_to(cluster: Cluster) -> Transport:
    """Return a way to the Slurm of a cluster that has one."""
    site = cluster.srt or cluster.slurm
    assert site
    if cluster.slurm and cluster.slurm.lab:
        return _LabTransport(slurm_conf(lab_folder()))
    if site.ssh:
        from infx.launch.transport.ssh import SshTransport

        return SshTransport(site.ssh)
    conf = os.environ.get("SLURM_CONF")  # the transport drops what a job would inherit
    return LocalTransport({"SLURM_CONF": conf} if conf else {})


class _LabTransport(LocalTransport):
    """This machine's commands for its own lab, which may not be up (any more)."""

    def __init__(self, conf: Path) -> None:
        super().__init__({"SLURM_CONF": str(conf)})
        self._conf = conf

    def run(self, script: str, *, limit_s: float = 30.0) -> Answer:
        """As any transport; raises InfraError ``lab-down``, too."""
        if not self._conf.is_file():
            message = f"the lab of this machine is not up: there is no {self._conf}"
            raise InfraError("lab-down", message, hint="start it with infx cluster up")
        return super().run(script, limit_s=limit_s)
