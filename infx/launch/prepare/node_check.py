"""A small job that says whether a compute node can run a bundle: a login node tells little."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from shlex import quote

from infx.config.sites import Cluster, SlurmSite
from infx.domain.errors import InfraError
from infx.launch.transport import Transport

__all__ = ["NodeCheck", "check_node", "read_log", "submission"]

PATIENCE_S = 900.0
"""How long the check may wait in the queue and run."""

GRACE_S = 15.0
"""A shared folder may show what a node wrote this much later."""

QUICK_S, SLOW_S = 0.5, 10.0

QUEUED = ("PENDING", "CONFIGURING", "REQUEUED", "RESIZING", "SUSPENDED")
ALIVE = (*QUEUED, "RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "STOPPED")

PROGRAM = """
import importlib, importlib.metadata, json, platform, sys
versions, lacks = {}, []
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
        versions[name] = importlib.metadata.version(name)
    except BaseException as error:
        lacks.append("%s cannot be imported: %s: %s" % (name, type(error).__name__, error))
    else:
        if not module.__file__.startswith(sys.prefix):
            lacks.append("%s comes from %s: unset PYTHONPATH" % (name, module.__file__))
facts = {"python": platform.python_version(), "glibc": platform.libc_ver()[1]}
print("found\\t" + json.dumps({**facts, "versions": versions, "lacks": lacks}))
"""

MODULES = {
    "bench": ("aiperf", "lm_eval"),
    "engine": ("torch", "tokenizers"),
    "llamacpp": ("xllamacpp",),
    "png": ("matplotlib",),
}
"""Those of an extra that hold compiled code, or need modules that do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCheck:
    """checked.json: what a compute node said. It can run the bundle when ``lacks`` is empty."""

    node: str = ""
    job: str = ""
    python: str = ""
    glibc: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()


def check_node(
    cluster: Cluster,
    transport: Transport,
    folder: str,
    python: str,
    *,
    extras: Sequence[str] = (),
    exclude: Sequence[str] = (),
    patience_s: float = PATIENCE_S,
) -> NodeCheck:
    """Run the job on one node and return what it found; ``folder`` gets its log.

    Raises InfraError ``check-failed`` when sbatch refuses it, or when it does not end in
    ``patience_s`` (then it is cancelled).
    """
    modules = ("infx", *(name for extra in extras for name in MODULES.get(extra, ())))
    answer = transport.run(submission(cluster, folder, python, modules, exclude))
    job = answer.out.strip().split(";")[0]
    if answer.code or not job.isdigit():
        said = (answer.err or answer.out).strip()
        hint = f"correct partition, account, qos or directives of cluster {cluster.name}"
        raise InfraError("check-failed", f"sbatch refused the check job: {said}", hint=hint)
    try:
        return _followed(transport, folder, job, patience_s)
    except BaseException:
        with suppress(InfraError):
            transport.run(f"scancel {job}")
        raise


def submission(
    cluster: Cluster, folder: str, python: str, modules: Sequence[str], exclude: Sequence[str]
) -> str:
    """Return the script that submits the check and prints the id of its job."""
    site = cluster.slurm
    assert site is not None
    options = ["--parsable", "--job-name=infx-check", "--nodes=1", "--ntasks=1", "--time=5"]
    options += ["--no-requeue", "--chdir=/", f"--output={folder}/check-%j.log"]
    for name in ("partition", "account", "qos"):
        if value := getattr(site, name):
            options.append(f"--{name}={value}")
    options += _one_gpu(site) if cluster.gpus_per_node else []
    options += [f"--exclude={','.join(exclude)}"] if exclude else []
    words = " ".join(map(quote, [*options, *site.directives]))
    return f"printf %s {quote(_script(python, modules))} | sbatch {words}\n"


def _one_gpu(site: SlurmSite) -> list[str]:
    """Partitions of accelerators often refuse jobs that want none."""
    kind = f"{site.gpu_type}:" if site.gpu_type else ""
    known = {"gres": f"--gres=gpu:{kind}1", "gpus-per-node": f"--gpus-per-node={kind}1"}
    return [known[site.gpus]] if site.gpus in known else []


def _script(python: str, modules: Sequence[str]) -> str:
    return f"""#!/bin/sh
printf 'node\\t%s\\n' "${{SLURMD_NODENAME:-$(hostname)}}"
command -v bash >/dev/null || printf 'lacks\\tbash, which job scripts need\\n'
if [ -x {quote(python)} ]; then
    {quote(python)} -P -c {quote(PROGRAM)} {" ".join(modules)} 2>&1
else
    printf 'lacks\\t%s: the folder or the interpreter is not on this node\\n' {quote(python)}
fi
printf 'end\\n'
"""


def _followed(transport: Transport, folder: str, job: str, patience_s: float) -> NodeCheck:
    deadline, pause, gone = time.monotonic() + patience_s, QUICK_S, 0.0
    log = f"{folder}/check-{job}.log"
    script = (
        f"squeue -h -t all -j {job} -o '%T|%r|%N' 2>&1; echo ----; cat {quote(log)} 2>/dev/null"
    )
    while True:
        state, _, said = transport.run(script).out.partition("----\n")
        if said.endswith("end\n"):
            return read_log(said, job)
        now = time.monotonic()
        gone = gone or now if _ended(state) else 0.0
        if gone and now - gone > GRACE_S:
            return _silent(state, said, job, folder)
        if now > deadline:
            waited = f"the check job {job} did not end in {patience_s:.0f} s: {state.strip()}"
            hint = "see squeue and sinfo for why, then infx cluster prepare again"
            raise InfraError("check-failed", waited, hint=hint)
        time.sleep(pause)
        pause = min(pause * 1.5, SLOW_S)


def _ended(state: str) -> bool:
    """A scheduler that does not answer says nothing about the job."""
    if "error" in state:
        return "Invalid job id" in state
    return state.split("|")[0] not in ALIVE


def read_log(said: str, job: str) -> NodeCheck:
    """Return what the log of an ended check says; other lines tell why Python did not run."""
    rows = [line.partition("\t")[::2] for line in said.splitlines()]
    node = next((value for key, value in rows if key == "node"), "")
    lacks = [value for key, value in rows if key == "lacks"]
    found = next((json.loads(value) for key, value in rows if key == "found"), None)
    if found is None and not lacks:
        noise = [key for key, value in rows if not value and key != "end"]
        lacks = [f"Python does not run: {' '.join(noise[-2:]) or 'it said nothing'}"]
    facts = found or {"python": "", "glibc": "", "versions": {}, "lacks": []}
    lacks += facts.pop("lacks")
    return NodeCheck(node=node, job=job, lacks=tuple(lacks), **facts)


def _silent(state: str, said: str, job: str, folder: str) -> NodeCheck:
    """It ended without its last line: no log at all is how Slurm tells of a missing folder."""
    node = state.strip().rpartition("|")[2] if "|" in state else ""
    why = f"{folder} is not there, or cannot be written" if not said else "the check was cut short"
    told = state.strip().replace("|", " ") or "gone from the queue"
    return NodeCheck(node=node, job=job, lacks=(f"{why} (job {job}: {told})",))
