"""Many sbatch in one call. The shell is real, sbatch a program that plays what it may do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from infx.launch.slurm.script import TASKS
from infx.launch.slurm.submission import (
    ONE_CALL,
    SCRIPT,
    Submitted,
    batch_dir,
    submit,
    write_batch,
)
from infx.launch.slurm.submission import test_only as refusal_of
from infx.launch.transport import Answer, LocalTransport
from tests.launch.slurm.played import SILENCE, Played
from tests.launch.slurm.sample_batches import batch

FAILED = "sbatch: error: Batch job submission failed: "
POLICY = f"{FAILED}Job violates accounting/QOS policy (job submit limit)"


class Site:
    """A run's folder with batches, and an sbatch that does what ``plays`` says by batch."""

    def __init__(self, folder: Path) -> None:
        self.run_dir, self.programs = folder / "run", folder / "bin"
        self.programs.mkdir()
        sbatch = self.programs / "sbatch"
        sbatch.write_text('#!/bin/sh\necho "$(basename "$PWD")" >> ../../tried\n. ./plays\n')
        sbatch.chmod(0o755)

    def plays(self, name: str, script: str) -> None:
        folder = Path(batch_dir(self.run_dir, name))
        folder.mkdir(parents=True)
        (folder / "plays").write_text(script)

    def submit(self, *names: str) -> Mapping[str, Submitted]:
        path = f"{self.programs}:{os.environ['PATH']}"
        return submit(LocalTransport({"PATH": path}), names, str(self.run_dir))

    @property
    def tried(self) -> list[str]:
        return (self.run_dir / "tried").read_text().split()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def says(err: str, code: int = 1) -> str:
    return f"cat >&2 <<'END'\n{err}\nEND\nexit {code}\n"


def test_ids_in_one_call(site: Site) -> None:
    site.plays("a", "echo 12")
    site.plays("b", "echo '13;lab'")
    told = site.submit("a", "b")
    assert [(told[n].job_id, told[n].refusal) for n in "ab"] == [("12", None), ("13", None)]


@pytest.mark.parametrize(
    "script",
    [
        "echo Welcome; echo 12",
        "echo 12; echo 'submitted to | our cluster'",
        "echo '3 | 4'; echo 12",
        "echo 'sbatch: lua: hello | you' >&2; echo 12",
    ],
)
def test_what_a_site_says_beside_the_id_is_noise(site: Site, script: str) -> None:
    site.plays("a", script)
    site.plays("b", "echo 13")
    told = site.submit("a", "b")
    assert [told[n].job_id for n in "ab"] == ["12", "13"]


def test_a_good_end_without_an_id_leaves_it_open(site: Site) -> None:
    site.plays("a", "echo nothing")
    assert (site.submit("a")["a"].job_id, site.submit("a")["a"].refusal) == ("", None)


@pytest.mark.parametrize(
    ("err", "kind"),
    [
        (f"{FAILED}Invalid qos specification", "config"),
        (f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}", "limit"),
        (f"sbatch: error: QOSMaxGRESPerJob\n{POLICY}", "config"),
        (f"sbatch: warning: a | b; c\n{FAILED}Invalid partition name specified", "config"),
        (f"{FAILED}Socket timed out on send/recv operation", "ambiguous"),
        ("sbatch: error: a project | code, please", "other"),
        ("", "ambiguous"),
    ],
)
def test_an_error_of_many_lines_is_understood(site: Site, err: str, kind: str) -> None:
    site.plays("a", says(err))
    site.plays("b", "echo 13")
    told = site.submit("a", "b")
    assert told["a"].refusal
    assert told["a"].refusal.kind == kind
    assert told["b"].job_id == "13"


def test_the_sentence_keeps_its_pipes_and_loses_its_prefix(site: Site) -> None:
    site.plays("a", says(f"sbatch: error: use a | b\n{FAILED}Invalid account"))
    refusal = site.submit("a")["a"].refusal
    assert refusal
    assert refusal.sentence == "use a | b / Invalid account"


def test_when_the_controller_goes_in_the_middle_the_rest_is_not_tried(site: Site) -> None:
    site.plays("a", "echo 12")
    site.plays("b", says(f"{FAILED}Unable to contact slurm controller (connect failure)"))
    site.plays("c", "echo 14")
    told = site.submit("a", "b", "c")
    assert told["a"].job_id == "12"
    refusals = [told[n].refusal for n in "bc"]
    assert [refusal.kind for refusal in refusals if refusal] == ["down", "down"]
    assert site.tried == ["a", "b"]


def test_a_batch_whose_folder_is_not_there_is_not_accepted(site: Site) -> None:
    site.plays("b", "echo 13")
    told = site.submit("a", "b")
    assert told["a"].refusal
    assert "no folder" in told["a"].refusal.sentence
    assert told["b"].job_id == "13"


def test_more_batches_than_one_call_takes(site: Site) -> None:
    names = [f"n{n:02}" for n in range(ONE_CALL + 1)]
    for number, name in enumerate(names):
        site.plays(name, f"echo {number + 1}")
    told = site.submit(*names)
    assert [told[name].job_id for name in names] == [str(n + 1) for n in range(len(names))]
    assert site.tried == names


def test_a_lost_answer_leaves_its_whole_call_open_and_the_later_ones_untried() -> None:
    names = [f"n{n:02}" for n in range(ONE_CALL * 3)]
    first = "".join(f"{name}|0|{n}|\n" for n, name in enumerate(names[:ONE_CALL]))
    transport = Played(submit=lambda s: first if names[0] in s else SILENCE)
    told = submit(transport, names, "/r")
    assert all(told[name].job_id for name in names[:ONE_CALL])
    unsure = [told[name] for name in names[ONE_CALL : 2 * ONE_CALL]]
    assert all(not answer.job_id and answer.refusal is None for answer in unsure)
    untried = [told[name].refusal for name in names[2 * ONE_CALL :]]
    assert all(refusal and refusal.kind == "down" for refusal in untried)
    assert len(transport.asked) == 2


def test_half_an_answer_leaves_the_other_half_open() -> None:
    transport = Played(submit=Answer(137, "motd\na|0|12|\nb|0", ""))
    told = submit(transport, ["a", "b", "c"], "/r")
    assert told["a"].job_id == "12"
    assert all(told[n].job_id == "" and told[n].refusal is None for n in "bc")


def test_names_with_spaces_reach_the_shell_whole(tmp_path: Path) -> None:
    folder = tmp_path / "it's a place"
    folder.mkdir()
    site = Site(folder)
    site.plays("a", "echo 12")
    assert site.submit("a")["a"].job_id == "12"


def test_a_batch_is_its_script_and_its_tasks(tmp_path: Path) -> None:
    made = batch(2, run_dir=tmp_path)
    write_batch(made, tmp_path, "#!/bin/bash\n")
    folder = Path(batch_dir(tmp_path, made.name))
    assert (folder / TASKS).read_text() == "jobs/j0/a1\njobs/j1/a1\n"
    assert (folder / SCRIPT).read_text() == "#!/bin/bash\n"


def test_a_test_submits_nothing_and_tells_the_refusal() -> None:
    transport = Played(sbatch=Answer(1, "", f"{FAILED}Invalid qos specification"))
    refusal = refusal_of(transport, "#!/bin/bash\n#SBATCH --qos=x\n")
    assert refusal
    assert refusal.kind == "config"
    assert "--test-only" in transport.asked[0]
    assert refusal_of(Played(), "#!/bin/bash\n") is None
