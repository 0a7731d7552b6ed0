"""What srtctl's answers mean, said by a transport that plays it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from infx.config.sites import SrtSite
from infx.domain.errors import InfraError, UsageError
from infx.launch.srt import apply
from infx.launch.transport import Answer, LocalTransport
from tests.launch.slurm.played import SILENCE, Played, Said

SITE = SrtSite(
    srtctl="/opt/srt/bin/srtctl",
    config="/opt/srt/srtslurm.yaml",
    preflight=False,
    set={"slurm.partition": "gpu", "environment.X": "it's 1"},
)
FACTS = json.loads(Path(__file__).with_name("facts.json").read_text())


def submitted(job: str) -> str:
    record = dict.fromkeys(FACTS["submitted"], "x") | {"status": "submitted", "slurm_job_id": job}
    return json.dumps(record) + "\n"


def failed(error: str) -> str:
    assert FACTS["failed"] == ["status", "error"]
    return json.dumps({"status": "error", "error": error}) + "\n"


SBATCH = "sbatch failed: sbatch: error: "
TABLE: list[tuple[Said, tuple[str, ...], str, str]] = [
    (submitted("4711"), ("4711",), "", ""),
    ("prose of a library\n" + submitted("7"), ("7",), "", ""),
    (submitted("7") + submitted("8"), ("7", "8"), "", ""),
    (Answer(0, "Job 12 submitted!", ""), (), "", ""),
    (Answer(0, "", ""), (), "", ""),
    (Answer(0, '{"status": "submitted", "slurm_job_id": null}', ""), (), "", ""),
    (Answer(0, '{"status": "submitted", "slurm_job_id": "dry"}', ""), (), "", ""),
    (Answer(0, '{"status": "subm', ""), (), "", ""),
    (SILENCE, (), "", ""),
    (Answer(1, failed("model.path: not there"), ""), (), "config", "model.path: not there"),
    (Answer(1, failed("- a\n- b"), ""), (), "config", "- a / - b"),
    (Answer(1, "", "Traceback\nKeyError: 'x'\n"), (), "config", "KeyError: 'x'"),
    (Answer(2, "", "srtctl: error: unrecognized --json"), (), "config", "unrecognized --json"),
    (Answer(127, "", "sh: srtctl: not found"), (), "down", "not found"),
    (Answer(66, "", "sh: 3: cd: can't cd to /r/a1"), (), "other", "can't cd to /r/a1"),
    (Answer(137, "", ""), (), "ambiguous", "signal 9"),
    (
        Answer(1, failed("exit status 1"), f"{SBATCH}invalid partition specified: x\n"),
        (), "config", "invalid partition specified: x",
    ),
    (
        Answer(1, failed("exit status 1"), f"{SBATCH}QOSMaxSubmitJobPerUserLimit\nsbatch: error: "
               "Batch job submission failed: Job violates accounting/QOS policy\n"),
        (), "limit", "Job violates accounting/QOS policy",
    ),
    (
        Answer(1, failed("exit status 1"), f"{SBATCH}Batch job submission failed: Unable to contact"
               " slurm controller (connect failure)\n"),
        (), "down", "Unable to contact slurm controller",
    ),
    (
        Answer(1, failed("exit status 1"), f"{SBATCH}Batch job submission failed: Socket timed out"
               " on send/recv operation\n"),
        (), "ambiguous", "Socket timed out",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("said", "ids", "kind", "sentence"), TABLE)
def test_what_an_answer_means(said: Said, ids: tuple[str, ...], kind: str, sentence: str) -> None:
    told = apply.applied(Played(apply=said), "srtctl apply")
    assert told.job_ids == ids
    assert (told.refusal.kind if told.refusal else "") == kind
    assert sentence in (told.refusal.sentence if told.refusal else "")


def test_the_command() -> None:
    script = apply.apply_script(
        SITE,
        apply.Given(
            text="", variant=":override_tp2", set={"a.b": "[1, 2]", "slurm.partition": "x"}
        ),
        folder="/runs/in fx/a1",
        file="srt.yaml",
        output="/runs/in fx/a1/srt",
        name="infx-r-1-a1",
    )
    *_, line = script.splitlines()
    assert shlex.split(line) == [
        *("/opt/srt/bin/srtctl", "apply", "-f", "srt.yaml:override_tp2"),
        *("-o", "/runs/in fx/a1/srt", "--tags", "infx,infx-r-1-a1", "--json", "-y"),
        *("--no-preflight", "--set", "a.b=[1, 2]"),
        *("--set", "slurm.partition=gpu", "--set", "environment.X=it's 1"),  # the site's is last
    ]
    assert "unset RUNNER_NAME" in script  # srtctl would name the job by it
    assert "export SRTSLURM_CONFIG=/opt/srt/srtslurm.yaml" in script
    assert "cd '/runs/in fx/a1' || exit 66" in script
    options = {word for word in line.split() if word.startswith("-")}
    assert options <= {*FACTS["apply_options"]}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (Answer(0, "srtctl 2.18.0 (commit 0123abcd, recipe schema 2)\n", ""), ""),
        (Answer(0, "srtctl (unknown version)\n", ""), ""),
        (Answer(0, "srtctl 1.0.36\n", ""), "srtctl-old"),
        (Answer(2, "", "usage: srtctl [-h] {apply,dry-run}"), "srtctl-old"),
        (Answer(127, "", "sh: 1: srtctl: not found"), "srtctl-missing"),
        (Answer(126, "", "sh: 1: srtctl: Permission denied"), "srtctl-missing"),
    ],
)
def test_the_version(said: Answer, code: str) -> None:
    transport = Played("login", version=said)
    if not code:
        apply.check_version(transport, SITE, "far")
        return
    with pytest.raises((InfraError, UsageError)) as raised:
        apply.check_version(transport, SITE, "far")
    assert raised.value.code == code
    assert raised.value.hint  # the next step


def test_a_missing_program_is_told_with_its_place_and_the_next_step() -> None:
    site = SrtSite(srtctl="/no/such/srtctl")
    with pytest.raises(
        InfraError, match=r"this machine cannot run /no/such/srtctl.*not found"
    ) as e:
        apply.check_version(LocalTransport({}), site, "far")
    assert e.value.exit_code == 3
    assert "correct `srtctl` in the cluster 'far'" in e.value.hint


@pytest.mark.parametrize(
    ("said", "refused", "warned"),
    [
        (Answer(0, "DRY-RUN", ""), "", []),
        (Answer(0, "", "12:00 WARNING srtslurm.yaml: unknown key x"), "",
         ["12:00 WARNING srtslurm.yaml: unknown key x"]),
        (Answer(1, "", "│ Error: Preflight failed for r.yaml: │\n│ - model.path: gone │\n"),
         "Error: Preflight failed for r.yaml: / - model.path: gone", []),
        (Answer(1, "", ""), "srtctl ended with exit code 1", []),
    ],
)  # fmt: skip
def test_a_dry_run(said: Answer, refused: str, warned: list[str]) -> None:
    transport = Played(mktemp=said)
    assert apply.dry_run(transport, SITE, apply.Given(text="schema: 2\n")) == (refused, warned)
    assert "schema: 2\nINFX_RECIPE\n" in transport.asked[0]
