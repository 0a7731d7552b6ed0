"""``srtctl apply``: the exact command, and what its answer means.

With --json srtctl prints one line a submission to stdout, ``{"status": "submitted",
"slurm_job_id": …, "output_dir": …}``, and prose to stderr; a failure is ``{"status": "error",
"error": …}`` and exit code 1 (tests of `srtctl apply --json` in NVIDIA/srt-slurm). A job's Slurm
name is the recipe's ``name``, unless RUNNER_NAME is set; ``-o DIR`` puts its files below DIR/<id>.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from infx.config.sites import SrtSite
from infx.domain.errors import InfraError, UsageError
from infx.launch.slurm.script import NO_FOLDER
from infx.launch.slurm.submit import Refusal, submit_refusal
from infx.launch.transport import Answer, Transport

__all__ = [
    "LEAST_VERSION",
    "Applied",
    "Given",
    "applied",
    "apply_script",
    "check_version",
    "dry_run",
]

LEAST_VERSION = 2
"""Schema 2, --set, --json and -o together: srtctl 2.0, September 2026."""

LIMIT_S = 300.0
"""srtctl starts in seconds; it may resolve git references and stat images on a slow disk."""

TAG = "infx"

_SBATCH = re.compile(r"sbatch(: error:| failed)|Batch job submission failed|slurm controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What srtctl is given of a job: the recipe's text (it ends with a line break), the variant of
    it (":override_tp64", or "") and keys to set."""

    text: str
    variant: str = ""
    set: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a submission: the ids of its jobs, a refusal, or neither where nobody knows
    (then its name is looked for)."""

    job_ids: tuple[str, ...] = ()
    refusal: Refusal | None = None


def apply_script(
    site: SrtSite, given: Given, *, folder: str, file: str, output: str, name: str
) -> str:
    """Return POSIX sh that submits the recipe ``file`` of ``folder`` as ``name``; its outputs go
    below ``output``. Exit code `NO_FOLDER`: the folder is not there."""
    words = [site.srtctl, "apply", "-f", f"{file}{given.variant}", "-o", output]
    words += ["--tags", f"{TAG},{name}", "--json", "-y"]
    words += [] if site.preflight else ["--no-preflight"]
    words += _sets(site, given)
    return f"{_environment(site)}cd {quote(folder)} || exit {NO_FOLDER}\n{_line(words)}\n"


def check_version(transport: Transport, site: SrtSite, cluster: str) -> None:
    """Ask srtctl its version.

    Raises InfraError ``srtctl-missing``, UsageError ``srtctl-old``, and what the transport raises.
    """
    answer = transport.run(f"{_environment(site)}{_line([site.srtctl, '--version'])}\n")
    where = transport.host or "this machine"
    told = _first(answer.out or answer.err)
    if answer.code in (126, 127):
        hint = f"install srt-slurm there, or correct `srtctl` in the cluster {cluster!r}"
        raise InfraError("srtctl-missing", f"{where} cannot run {site.srtctl}: {told}", hint=hint)
    found = re.search(r"\b(\d+)\.\d+", answer.out) if answer.code == 0 else None
    if answer.code or (found and int(found[1]) < LEAST_VERSION):
        hint = f"update srt-slurm there to {LEAST_VERSION}.0 or later"
        message = f"{site.srtctl} on {where} reads no recipes of schema 2: {told}"
        raise UsageError("srtctl-old", message, hint=hint)


def dry_run(transport: Transport, site: SrtSite, given: Given) -> tuple[str, list[str]]:
    """Return why srtctl would refuse a recipe ("": it would not), and its warnings; nothing is
    submitted.

    An unknown key of srtslurm.yaml is only warned of, and the whole file is left aside then.
    Raises InfraError as the transport does.
    """
    words = _line(
        [site.srtctl, "dry-run", "-f", f"recipe.yaml{given.variant}", *_sets(site, given)]
    )
    script = (
        f'{_environment(site)}t=$(mktemp -d) && cd "$t" || exit 66\n'
        f"cat >recipe.yaml <<'INFX_RECIPE'\n{given.text}INFX_RECIPE\n"
        f'{words}; code=$?\ncd / && rm -rf "$t"; exit $code\n'
    )
    answer = transport.run(script, limit_s=LIMIT_S)
    told = _lines(answer)
    warnings = [line for line in told if re.search(r"\bWARNING\b", line)]
    return (_said(answer) if answer.code else ""), warnings


def applied(transport: Transport, script: str) -> Applied:
    """Run `apply_script`'s text and return what became of it."""
    try:
        answer = transport.run(script, limit_s=LIMIT_S)
    except InfraError:
        return Applied()
    records = list(_records(answer.out))
    ids = tuple(str(r["slurm_job_id"]) for r in records if _is_id(r.get("slurm_job_id")))
    if ids:
        return Applied(job_ids=ids)
    error = next((str(r.get("error")) for r in records if r.get("status") == "error"), "")
    if error or answer.code:
        return Applied(refusal=_refusal(answer, error))
    return Applied()


def _refusal(answer: Answer, error: str) -> Refusal:
    """sbatch's own words are read as elsewhere; any other refusal is srtctl's of the recipe."""
    if answer.code in (126, 127):
        return Refusal(kind="down", code="srtctl-missing", sentence=_said(answer))
    if _SBATCH.search(f"{error}\n{answer.err}"):
        lines = [line for line in answer.err.splitlines() if _SBATCH.search(line)]
        told = "\n".join(line[line.find("sbatch") :] for line in lines)
        return submit_refusal(re.sub(r"sbatch failed:\s*", "", told) or error, answer.code)
    if answer.code == NO_FOLDER and not error:
        return submit_refusal(_said(answer), answer.code)
    if not error and answer.code > 128:
        ended = f"srtctl ended by signal {answer.code - 128}"
        return Refusal(kind="ambiguous", code="submit-unclear", sentence=ended)
    said = _one_line(error) or _said(answer)
    return Refusal(kind="config", code="srt-refused", sentence=said)


def _records(out: str) -> Iterator[Mapping[str, Any]]:
    for line in out.splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # a library's own prose; what is no record says nothing
            continue
        if isinstance(record, dict):
            yield record


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and str(value).isdecimal()


def _environment(site: SrtSite) -> str:
    config = f"export SRTSLURM_CONFIG={quote(site.config)}\n" if site.config else ""
    return f"export LC_ALL=C.UTF-8 NO_COLOR=1 COLUMNS=500\nunset RUNNER_NAME\n{config}"


def _sets(site: SrtSite, given: Given) -> list[str]:
    """The site's word is the last: it knows what is there."""
    sets = {**given.set, **site.set}
    return [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]


def _line(words: Sequence[str]) -> str:
    return " ".join(quote(word) for word in words)


def _said(answer: Answer) -> str:
    """All from the last line that begins with an error, in one; else the last line."""
    lines = _lines(answer)
    starts = [n for n, line in enumerate(lines) if re.match(r"\W*\w*(error|failed)", line, re.I)]
    told = lines[starts[-1] :] if starts else lines[-1:]
    return " / ".join(told)[:500] or f"srtctl ended with exit code {answer.code}"


def _lines(answer: Answer) -> list[str]:
    """What was said, without the frames that rich draws."""
    lines = (line.strip(" │╭╰─╮╯") for line in f"{answer.out}\n{answer.err}".splitlines())
    return [line for line in lines if line]


def _one_line(text: str) -> str:
    return " / ".join(line.strip() for line in text.splitlines() if line.strip())[:500]


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no answer")
