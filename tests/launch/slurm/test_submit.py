"""What sbatch answered. SEEN is of a 22.05 cluster, LATER of the error tables up to 25.11."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.codes import CODES
from infx.launch.slurm.submit import parse_submit, submit_refusal

FAILED = "sbatch: error: Batch job submission failed: "
POLICY = (
    FAILED + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
)

SEEN = [
    (f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}", "limit"),
    (f"sbatch: error: QOSGrpSubmitJobsLimit\n{POLICY}", "limit"),
    (f"sbatch: error: AssocMaxSubmitJobLimit\n{POLICY}", "limit"),
    (f"sbatch: error: QOSMaxGRESPerJob\n{POLICY}", "config"),  # QOS flag DenyOnLimit
    (
        "sbatch: error: invalid partition specified: nope\n"
        f"{FAILED}Invalid partition name specified",
        "config",
    ),
    (f"{FAILED}Invalid account or account/partition combination specified", "config"),
    (f"{FAILED}Invalid qos specification", "config"),
    (f"{FAILED}Requested node configuration is not available", "config"),
    (
        "sbatch: error: Memory specification can not be satisfied\n"
        f"{FAILED}Requested node configuration is not available",
        "config",
    ),
    ("sbatch: error: Invalid generic resource (gres) specification", "config"),
    ("sbatch: error: Invalid --time specification", "config"),
    (f"{FAILED}Invalid job array specification", "config"),
    (f"{FAILED}Invalid feature specification", "config"),
    (f"{FAILED}Invalid node name specified", "config"),
    (f"{FAILED}Requested reservation is invalid", "config"),
    (f"{FAILED}Invalid license specification", "config"),
    (f"{FAILED}Pathname of a file, directory or other parameter too long", "config"),
    ("sbatch: error: Unable to open file nofile.sh", "config"),
    ("sbatch: error: Batch script is empty!", "config"),
    ("sbatch: error: invalid number of nodes (-N 3-2)", "config"),
    ("sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information", "config"),
    (
        "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.",
        "config",
    ),
    (
        "sbatch: error: No cluster 'other' known by database.\n"
        "sbatch: error: 'other' can't be reached now, or it is an invalid entry for --cluster.  "
        "Use 'sacctmgr list clusters' to see available clusters.",
        "config",
    ),
    (f"{FAILED}Required partition not available (inactive or drain)", "down"),
    (f"{FAILED}Unable to contact slurm controller (connect failure)", "down"),
    (
        "sbatch: error: If munged is up, restart with --num-threads=10\n"
        'sbatch: error: Munge encode failed: Failed to access "munge.sock": No such file or '
        "directory (Did you start munged?)\n"
        f"{FAILED}Protocol authentication error",
        "down",
    ),
    # The controller was stopped for longer than MessageTimeout; the job ran when it went on.
    (f"{FAILED}Socket timed out on send/recv operation", "ambiguous"),
]
LATER = [
    (f"{FAILED}MaxJobCount limit reached", "limit"),
    (f"{FAILED}Unable to create job record, try again", "limit"),
    (f"{FAILED}Rate limit exceeded, please retry momentarily", "limit"),
    (POLICY, "limit"),
    (f"sbatch: error: AssocMaxWallDurationPerJobLimit\n{POLICY}", "config"),
    (f"sbatch: error: MaxSubmitJobsPerAccount\n{POLICY}", "limit"),
    (f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)", "config"),
    (f"{FAILED}User's group not permitted to use this partition", "config"),
    (f"{FAILED}Invalid GRES specification (with and without type identification)", "config"),
    (f"{FAILED}System submissions disabled", "down"),
    (f"{FAILED}Controller is in standby mode, try a different controller", "down"),
    (f"{FAILED}Connection timed out establishing", "down"),
    (f"{FAILED}Connection refused", "down"),
    (f"{FAILED}Zero Bytes were transmitted or received", "ambiguous"),
    (f"{FAILED}Unexpected message received", "ambiguous"),
    (f"{FAILED}Unable to contact slurm controller (receive failure)", "ambiguous"),
    (f"{FAILED}Connection timed out reading", "ambiguous"),
    ("", "ambiguous"),
    (f"{FAILED}Slurm internal error, contact system administrator", "other"),
    ("sbatch: error: our site wants a project code", "other"),  # a site's submit plugin
]


@pytest.mark.parametrize(("stderr", "kind"), SEEN + LATER)
def test_why_sbatch_gave_no_id(stderr: str, kind: str) -> None:
    told = submit_refusal(stderr, 1)
    assert told.kind == kind
    assert CODES[told.code].family == "infra"
    assert told.sentence


def test_the_sentence_is_slurms_without_its_prefix() -> None:
    told = submit_refusal(f"sbatch: Warning: x\n{FAILED}Invalid qos specification\n", 1)
    assert told.sentence == "Invalid qos specification"


def test_a_misleading_text_gets_a_hint() -> None:
    text = f"{FAILED}Pathname of a file, directory or other parameter too long"
    assert "max_script_size" in submit_refusal(text, 1).sentence


def test_a_limit_on_one_job_is_explained() -> None:
    told = submit_refusal(f"sbatch: error: QOSMaxGRESPerJob\n{POLICY}", 1)
    assert "more than one job may have" in told.sentence


def test_lines_that_a_shell_joined_are_still_lines() -> None:
    for text, kind in SEEN + LATER:
        assert submit_refusal(text.replace("\n", ";") + ";", 1).kind == kind
    told = submit_refusal(f"sbatch: error: QOSMaxGRESPerJob;{POLICY};", 1)
    assert told.kind == "config"
    assert told.sentence.startswith("QOSMaxGRESPerJob / Job violates")


def test_what_may_have_arrived_decides_over_all_else() -> None:
    both = f"{FAILED}Socket timed out on send/recv operation\nsbatch: error: Invalid --x"
    assert submit_refusal(both, 1).kind == "ambiguous"


@pytest.mark.parametrize(
    ("out", "job"),
    [
        ("67\n", "67"),
        ("66;lab\n", "66"),  # -M, or a federation
        ("Welcome to our cluster\n68\n", "68"),
        ("Submitted batch job 5\n", None),
        ("", None),
        ("12_3\n", None),
    ],
)
def test_the_id_of_a_submission(out: str, job: str | None) -> None:
    assert parse_submit(out) == job


@settings(max_examples=50)
@given(st.text(), st.integers())
def test_any_answer_is_understood_somehow(text: str, rc: int) -> None:
    parse_submit(text)
    assert submit_refusal(text, rc).code in CODES
