"""A batch as the exact sbatch script. Pure: the same batch gives the same bytes.

The attempts are in the file ``tasks`` beside the script, so an array of a thousand is as short as a
single job. Values are quoted for the shell and for sbatch, which reads its own lines by other
rules: quotes are the shell's, a backslash escapes even between quotes and switches replacement off,
``%%`` is a percent sign, and a job whose log has no folder dies without a word (exit code 0:53).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from shlex import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from infx.config.sites import Cluster, Container, SlurmSite
from infx.domain.errors import UsageError
from infx.launch.slurm.batch import Batch, Shape

__all__ = ["NOTICE_S", "NO_FOLDER", "NO_PYTHON", "TASKS", "Places", "render"]

TASKS = "tasks"
"""The file beside the script: one attempt's folder a line, relative to the run's folder."""

NO_FOLDER, NO_PYTHON = 66, 69
"""Exit codes of a job that did not start: its folder or interpreter is not on the node (EX_NOINPUT
and EX_UNAVAILABLE of sysexits.h)."""

NOTICE_S = 120
"""How long before the limit a job is told to stop; Slurm may be a minute early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Absolute paths there: the run's folder, the batch's own (it holds the script, `tasks` and the
    logs) and the interpreter."""

    run_dir: str
    folder: str
    python: str


def render(batch: Batch, cluster: Cluster, places: Places, *, today: str) -> str:
    """Return the script of ``batch``.

    Nodes left out: those of the cluster file on the day ``today`` (YYYY-MM-DD), and of the batch's
    shape. Raises UsageError ``bad-option`` for a folder that Slurm cannot take.
    """
    site = cluster.slurm
    assert site is not None  # the reader of the file sees to it
    _check(places)
    excluded = dict.fromkeys([*site.excluded(today), *batch.shape.exclude])
    return _template().render(
        batch=batch,
        site=site,
        places=places,
        gpus=_gpus(batch.shape, site),
        minutes=batch.shape.minutes,
        exclude=list(excluded),
        output=_output(batch, places),
        client=_client(site.container, places),
        notice_s=NOTICE_S,
        no_folder=NO_FOLDER,
        no_python=NO_PYTHON,
    )


def _gpus(shape: Shape, site: SlurmSite) -> str:
    if not shape.gpus or site.gpus == "none":
        return ""
    kind = f"{site.gpu_type}:" if site.gpu_type else ""
    option = "--gres=gpu:" if site.gpus == "gres" else "--gpus-per-node="
    return f"{option}{kind}{shape.gpus}"


def _output(batch: Batch, places: Places) -> str:
    return f"{places.folder.replace('%', '%%')}/{'%A_%a' if batch.array else '%j'}.log"


def _client(container: Container | None, places: Places) -> dict[str, object] | None:
    """Return the image that infx itself runs in, with what it sees of the node; None without."""
    if container is None or container.runtime != "pyxis" or not container.client:
        return None
    if any(c in places.run_dir for c in " ,:"):
        raise _refusal(places.run_dir, "a space, comma or colon", "pyxis cannot mount it")
    mounts = [f"{places.run_dir}:{places.run_dir}", *container.mounts]
    return {"image": container.client, "mounts": mounts}


def _check(places: Places) -> None:
    for path in (places.run_dir, places.folder, places.python):
        if not path.isprintable() or "\\" in path:
            raise _refusal(path, "a backslash or a control character", "Slurm cannot take it")


def _refusal(path: str, what: str, why: str) -> UsageError:
    hint = "keep results elsewhere: --results DIR, or `folder` in configs/clusters.yaml"
    return UsageError("bad-option", f"{path!r} holds {what}: {why}", hint=hint)


def _directive(text: str) -> str:
    option, equals, value = text.partition("=")
    return f"{option}{equals}{quote(value) if equals else ''}"


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("infx.launch.slurm"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(quote=quote, directive=_directive)
    return environment.get_template("job.sh.j2")
