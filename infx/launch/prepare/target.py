"""Which machine a bundle is for: what a site has, and what of it fits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from infx.config.sites import Cluster, SlurmSite
from infx.domain.errors import ConfigError, InfraError, UsageError
from infx.domain.findings import Finding
from infx.launch.prepare import scripts
from infx.launch.prepare.bundle import bundle_id, constraints
from infx.launch.prepare.own_wheel import OwnWheel
from infx.launch.prepare.scripts import Interpreter, Survey
from infx.launch.prepare.wheels import Target
from infx.launch.transport import Transport

__all__ = ["chosen", "ids", "platform", "surveyed", "unwritable"]

PYTHONS = ("3.11", "3.12", "3.13")
"""In the order of preference: constraints.txt is tested with the first."""

MACHINES = ("x86_64", "aarch64")
GLIBCS = ((2, 28), (2, 17))
"""What wheels are built for; nodes of a site may be older than its login node, so not what is there
but the newest of these."""

SURVEY_S = 300.0


def ids(own: OwnWheel, extras: Sequence[str]) -> Mapping[Target, str]:
    """Return the bundle's id on every machine it may turn out to be for: one round trip then tells
    which machine, and what of its bundle is there."""
    lock = constraints().read_text()
    platforms = [f"manylinux_{a}_{b}_{m}" for a, b in GLIBCS for m in MACHINES]
    targets = [Target(python, platform) for python in PYTHONS for platform in platforms]
    return {target: bundle_id(lock, extras, own.digest, target) for target in targets}


def surveyed(transport: Transport, site: SlurmSite, python: str, ids: Sequence[str]) -> Survey:
    """Return what is in the site's folder and which interpreters its login node has.

    ``python`` ("3.12", or "" for any that infx runs with) is looked for, and the bundles ``ids``.
    Raises UsageError ``bad-option``, InfraError ``folder-unwritable`` and what transports raise.
    """
    if python and python not in PYTHONS:
        hint = f"infx runs with {', '.join(PYTHONS)}"
        raise UsageError("bad-option", f"--python {python}: no such version", hint=hint)
    versions = [python] if python else PYTHONS
    names = [site.python] if site.python else [*(f"python{v}" for v in versions), "python3"]
    answer = transport.run(scripts.survey(site.folder, names, ids), limit_s=SURVEY_S)
    found = scripts.read_survey(answer.out)
    if found.unwritable or answer.code:
        raise unwritable(transport.host, site.folder, found.unwritable or answer.err.strip())
    return found


def chosen(found: Survey, cluster: Cluster, host: str, python: str) -> Interpreter:
    """Return the first that fits.

    Raises ``python-missing``: ConfigError for the one that the site names, InfraError otherwise.
    """
    wanted = (python,) if python else PYTHONS
    for one in found.interpreters:
        if one.minor in wanted:
            return one
    seen = ", ".join(f"{one.name} is {one.version or 'broken'}" for one in found.interpreters)
    need = f"Python {python}" if python else f"Python {PYTHONS[0]} to {PYTHONS[-1]}"
    named = cluster.slurm.python if cluster.slurm else ""
    if named:
        sentence = f"`python` of {cluster.name}: {seen or f'{named} is not there'}; need {need}"
        hint = f"name an interpreter of {host or 'this machine'} that its nodes see too"
        raise ConfigError([Finding("python-missing", "error", sentence, cluster.where, hint)])
    sentence = f"{host or 'this machine'} has no {need} ({seen or 'no python3 on PATH'})"
    hint = f"install one where the nodes see it and name it: `python` of cluster {cluster.name}"
    raise InfraError("python-missing", sentence, hint=hint)


def platform(found: Survey, host: str) -> str:
    """Return the newest kind of wheel that runs there."""
    version = tuple(int(part) for part in re.findall(r"\d+", found.glibc)[:2])
    fits = [glibc for glibc in GLIBCS if glibc <= version]
    if fits and found.machine in MACHINES:
        return f"manylinux_{fits[0][0]}_{fits[0][1]}_{found.machine}"
    raise InfraError(
        "bundle-failed",
        f"{host or 'this machine'} is {found.machine} with glibc {found.glibc or 'unknown'}; wheels"
        f" exist for {' and '.join(MACHINES)} with glibc 2.17 or newer",
        hint="use a client image: container.client of the cluster",
    )


def unwritable(host: str, folder: str, said: str) -> InfraError:
    sentence = f"{host or 'this machine'}: {folder} cannot be written: {said}"
    hint = "name a folder that is yours and that the nodes see: `folder` of the cluster"
    return InfraError("folder-unwritable", sentence, hint=hint)
