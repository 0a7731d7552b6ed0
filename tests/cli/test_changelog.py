"""infx changelog as a command: a real git repository, real merges, a run of the store."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from infx.changelog.written import written
from infx.ci.revised import Aside, set_aside
from infx.store.live import Live, LivePoint, write_live
from tests.changelog.entries import LINK, changelog, entry
from tests.cli.commands import ROOT, as_json, environment, here
from tests.report.many_points import STARTED_S, many_plan, many_points, many_records, write_run

FILE = "perf-changelog.yaml"
SMOL, MINI = "smollm2-135m-q4-cpu-llamacpp", "minimaxm3-mini-cpu-infx"
BASE = entry(SMOL)
OLD, NEW = "20261128-0900-old", "20261129-1740-new"


def git(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    names = {f"GIT_{who}_{what}": "n@h" for who in ("AUTHOR", "COMMITTER")
             for what in ("NAME", "EMAIL")}  # fmt: skip
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(
        ["git", *words], cwd=folder, env=environment(**names, **quiet),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def commit(text: str) -> None:
    Path(FILE).write_text(text)
    assert git("commit", "-qam", "more").returncode == 0


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project under git on main, with one entry, that merges changelogs by our driver."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    matrix = (ROOT / "configs/quickstart.yaml").read_text()
    (tmp_path / "configs/quickstart.yaml").write_text(matrix)
    (tmp_path / FILE).write_text(BASE)
    (tmp_path / ".gitattributes").write_text((ROOT / ".gitattributes").read_text())
    program = f"'{sys.executable}' -m infx changelog merge %O %A %B"
    for words in (
        ("init", "-q", "-b", "main"),
        ("config", "merge.infx-changelog.driver", program),
        ("add", "."),
        ("commit", "-qm", "base"),
    ):
        assert git(*words).returncode == 0
    return tmp_path


def test_a_clean_file_is_clean(project: Path) -> None:
    done = here("changelog", "check")
    assert (done.returncode, done.stdout) == (0, "")
    assert "1 entry, nothing is wrong" in done.stderr


def test_findings_have_their_place_and_line(project: Path) -> None:
    commit(changelog(BASE, entry("smolm*", link="XXX")))
    done = here("changelog", "check", "--base", "main~1")
    assert done.returncode == 1
    assert f"{FILE}:8:7: key-unmatched" in done.stdout
    assert '\n    8 |     - "smolm*"\n' in done.stdout
    told = here("changelog", "check", "--base", "main~1", "--json")
    assert [(f["code"], f["where"]["line"]) for f in as_json(told)["diagnostics"]] == [
        ("key-unmatched", 8)
    ]
    assert told.returncode == 1


def test_the_base_is_a_revision_or_a_file(project: Path) -> None:
    (project / "before.yaml").write_text(BASE)
    commit(BASE.replace("Something", "Else"))
    for base in ("main~1", "before.yaml"):
        done = here("changelog", "check", "--base", base)
        assert done.returncode == 1
        assert f"{FILE}:4:8: history-changed" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("check", "no.yaml"), "file-not-found"),
        (("check", "--base", "nowhere"), "git knows no commit nowhere"),
        (("check", "--append-only"), "--append-only needs --base"),
        (("add", "--from-run", "last", "--results", "none"), "unknown-run"),
        (("merge", FILE, FILE, "no.yaml"), "file-not-found"),
        (("check", "--pr", "7"), "--pr '7' is no pull request"),
        (("add", "--from-run", "last", "--pr", f"{LINK}/files"), "is no pull request"),
        (("add", "--from-run", "last", "--pr", ""), "--pr '' is no pull request"),
    ],
)
def test_what_cannot_be_asked(project: Path, words: tuple[str, ...], told: str) -> None:
    done = here("changelog", *words)
    assert done.returncode == 2
    assert told in done.stderr


def test_append_only_looks_at_the_points_of_both_plans(project: Path) -> None:
    commit(changelog(BASE, entry(SMOL, "More", "XXX")))
    matrix = project / "configs/quickstart.yaml"
    text = matrix.read_text()
    asked = ("changelog", "check", "--base", "main~1", "--append-only")
    assert here(*asked).returncode == 0
    matrix.write_text(text.replace("conc: [1, 2, 4]", "conc: [1, 2, 3, 4]", 1))
    assert here(*asked).returncode == 0
    matrix.write_text(text.replace("conc: [1, 2, 4]", "conc: [1, 2]", 1))
    done = here(*asked)
    assert done.returncode == 1
    assert f"{FILE}:7:3: point-removed" in done.stdout
    assert "point-removed" not in here(*asked[:-1]).stdout


def branches(theirs: str, *ours: str) -> None:
    """Leave the working folder on a branch with commits of ``ours``, and main with ``theirs``."""
    assert git("checkout", "-qb", "mine").returncode == 0
    for text in ours:
        commit(text)
    assert git("checkout", "-q", "main").returncode == 0
    commit(theirs)
    assert git("checkout", "-q", "mine").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [("merge", "-q", "main", "-m", "m"), ("rebase", "-q", "main")])
def test_git_puts_the_branch_after_what_is_published(project: Path, words: tuple[str, ...]) -> None:
    mine, theirs = entry(SMOL, "Mine", "XXX"), entry(MINI, "Theirs", LINK)
    more = entry(MINI, "Mine too", "XXX")
    branches(changelog(BASE, theirs), changelog(BASE, mine), changelog(BASE, mine, more))
    done = git(*words)
    assert done.returncode == 0, done.stderr
    assert Path(FILE).read_text() == changelog(BASE, theirs, mine, more)
    checked = here("changelog", "check", "--base", "main")
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.slow
def test_main_takes_a_branch_after_its_own(project: Path) -> None:
    mine, theirs = entry(SMOL, "Mine", "XXX"), entry(MINI, "Theirs", LINK)
    branches(changelog(BASE, theirs), changelog(BASE, mine))
    git("checkout", "-q", "main")
    assert git("merge", "-q", "mine", "-m", "m").returncode == 0
    assert Path(FILE).read_text() == changelog(BASE, theirs, mine)


@pytest.mark.slow
def test_history_that_differs_is_left_in_conflict(project: Path) -> None:
    changed = BASE.replace("Something", "Else")
    branches(changelog(changed, entry(MINI, "Theirs")), changelog(BASE, entry(SMOL, "Mine")))
    done = git("merge", "main")
    assert done.returncode == 1
    assert "theirs:4:8: history-changed" in done.stderr
    assert f"UU {FILE}" in git("status", "--short").stdout
    assert all(told in Path(FILE).read_text() for told in ("Else", "Mine", "Theirs"))


def test_a_side_that_is_no_text_is_left_in_conflict(project: Path) -> None:
    (project / "theirs").write_bytes(BASE.encode() + b"\n\xff\n")
    (project / "ours").write_text(changelog(BASE, entry(MINI)))
    done = here("changelog", "merge", FILE, "ours", "theirs")
    assert done.returncode == 2
    assert "theirs:7:1: not-utf8" in done.stderr
    assert b"\xff" in (project / "ours").read_bytes()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("entered")
    points = many_points(20)
    for n, (name, some) in enumerate({OLD: points[:18], NEW: points[1:]}.items()):
        records = many_records(some, run_id=name, repeats=2, faults=False, gain=1 + n / 5)
        write_run(folder, some, records, many_plan(some, 2), name, STARTED_S + 86_400 * n)
    return folder


def test_an_entry_of_a_run_is_written_below(project: Path, results: Path) -> None:
    words = ("changelog", "add", "--from-run", NEW, "--baseline", OLD, "--results", results)
    shown = here(*words, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert Path(FILE).read_text() == BASE
    done = here(*words, "--pr", LINK)
    text = Path(FILE).read_text()
    assert text == changelog(BASE, done.stdout)
    assert done.stdout == shown.stdout.replace("pr-link: XXX", f"pr-link: {LINK}")
    (added,) = yaml.safe_load(done.stdout)
    told = "\n".join(added["description"])
    assert f"since run {OLD}: 17 points compared. Throughput: better on" in told
    assert "2 points added: " in told
    assert "1 point dropped: " in told
    assert " tok/s/GPU (95 % " in told
    codes = {f["code"] for f in as_json(here("changelog", "check", "--json"))["diagnostics"]}
    assert codes <= {"key-unmatched"}


def test_a_run_is_entered_once_and_its_link_is_set_later(project: Path, results: Path) -> None:
    words = ("changelog", "add", "--from-run", NEW, "--results", results)
    first = here(*words)
    assert "written to" in first.stderr
    text = Path(FILE).read_text()
    again = here(*words)
    assert (again.returncode, again.stdout) == (0, "")
    assert f"run {NEW} is entered already, {project / FILE}:7:3: nothing is written" in again.stderr
    assert Path(FILE).read_text() == text
    linked = here(*words, "--pr", LINK)
    assert "its link is set" in linked.stderr
    assert Path(FILE).read_text() == text.replace("pr-link: XXX", f"pr-link: {LINK}")
    told = as_json(here(*words, "--json"))["data"]
    assert (told["written"], told["run_id"]) == (False, NEW)


def test_without_a_word_it_is_told_against_the_newest_earlier_run(
    project: Path, results: Path
) -> None:
    words = ("changelog", "add", "--dry-run", "--results", results, "--from-run")
    done = here(*words, NEW)
    assert f"told against the newest earlier run, {OLD}" in done.stderr
    assert f"since run {OLD}: 17 points compared" in done.stdout
    assert done.stdout == here(*words, NEW, "--baseline", OLD).stdout
    first = here(*words, OLD)
    assert "told against nothing: no earlier run has a point that" in first.stderr
    assert "since run" not in first.stdout
    none = here(*words, NEW, "--baseline", "none")
    assert "told against nothing, as asked" in none.stderr
    assert "since run" not in none.stdout
    both = here(*words, NEW, "--baseline", "none", "--baseline", OLD)
    assert (both.returncode, "stands beside a run" in both.stderr) == (2, True)


def test_what_is_live_comes_before_the_newest_earlier_run(project: Path, tmp_path: Path) -> None:
    """The live curve of one entry is of an older run; of the other entry nothing is live."""
    points = [point for point in many_points(30) if point.conc <= 4]
    names = ("20261127-0900-live", OLD, NEW)
    place = tmp_path / "results"
    for n, name in enumerate(names):
        records = many_records(points, run_id=name, repeats=2, faults=False)
        write_run(place, points, records, many_plan(points, 2), name, STARTED_S + 86_400 * n)
    entry_name = points[0].entry
    shown = tuple(LivePoint(run_id=names[0], point=p) for p in points if p.entry == entry_name)
    write_live(Live(entries={entry_name: shown}), place / "live.json")
    words = ("changelog", "add", "--dry-run", "--results", place, "--from-run", NEW)
    done = here(*words)
    told = f"what is live, of run {names[0]} and the newest earlier run, {OLD}"
    assert f"told against {told}" in done.stderr
    assert f"since run {names[0]}, {OLD}: 9 points compared" in done.stdout
    alone = here(*words, "--baseline", "live")
    assert f"since run {names[0]}: 6 points compared" in alone.stdout


def test_what_was_left_for_later_is_not_dropped(project: Path, tmp_path: Path) -> None:
    """A run of some points is told against these; the others are as they were."""
    points = many_points(6)
    place = tmp_path / "results"
    for n, (name, some) in enumerate({OLD: points[:5], NEW: points[4:]}.items()):
        plan = many_plan(points)
        later = {p.point_id: Aside("deferred", "later", "") for p in points if p not in some}
        plan = set_aside(plan, later)
        jobs = {point.point_id: job.job_id for job in plan.jobs for point in job.points}
        records = [
            replace(r, attempt=replace(r.attempt, job_id=jobs[r.point.point_id]))
            for r in many_records(some, run_id=name, faults=False)
        ]
        write_run(place, some, records, plan, name, STARTED_S + 86_400 * n)
    words = ("changelog", "add", "--dry-run", "--results", place, "--from-run", NEW)
    assert "dropped" not in here(*words).stdout
    assert "4 points dropped" in here(*words, "--baseline", OLD).stdout


def test_the_file_of_this_repository_is_clean() -> None:
    done = here("changelog", "check", ROOT / FILE)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_file_that_cannot_be_written(project: Path, results: Path) -> None:
    words = ("changelog", "add", project / "no/log.yaml", "--from-run", NEW, "--results", results)
    done = here(*words)
    assert done.returncode == 2
    assert "cannot write" in done.stderr


@pytest.mark.parametrize("broken", ["<<<<<<< ours\n" + BASE, "entries: 1\n"])
def test_nothing_is_written_below_what_cannot_be_read(
    project: Path, results: Path, broken: str
) -> None:
    Path(FILE).write_text(broken)
    done = here("changelog", "add", "--from-run", "last", "--results", results)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{FILE}:" in done.stderr
    assert "yaml-syntax" in done.stderr
    assert Path(FILE).read_text() == broken


def test_an_entry_begins_a_file_that_is_not_there(project: Path, results: Path) -> None:
    Path(FILE).unlink()
    done = here("changelog", "add", "--from-run", "last", "--results", results)
    assert done.returncode == 0, done.stderr
    assert Path(FILE).read_text() == done.stdout


def test_a_change_is_announced_then_the_run_takes_its_place(project: Path) -> None:
    matrix = Path("configs/quickstart.yaml")
    assert here("changelog", "add", "--base", "main").returncode == 2  # nothing is otherwise
    text = matrix.read_text()
    assert "conc: [1, 2, 4]" in text
    matrix.write_text(text.replace("conc: [1, 2, 4]", "conc: [1, 2, 4, 8]", 1))
    done = here("changelog", "add", "--base", "main")
    assert done.returncode == 0, done.stderr
    [told] = yaml.safe_load(done.stdout)
    assert told["config-keys"] == [SMOL]
    assert told["scenario-type"] == ["fixed-seq-len"]
    assert told["pr-link"] == "XXX"
    assert told["description"][0].startswith(f"planned: {SMOL}: 1 point appears: ")
    assert "8" in told["description"][0]
    assert "stands at" in here("changelog", "add", "--base", "main").stderr
    assert Path(FILE).read_text() == changelog(BASE, done.stdout)
    matrix.write_text(text.replace("conc: [1, 2, 4]", "conc: [1, 2, 4, 8, 16]", 1))
    done = here("changelog", "add", "--base", "main")  # the plan went on: so does its entry
    assert "2 points appear: " in done.stdout
    assert Path(FILE).read_text() == changelog(BASE, done.stdout)
    assert here("changelog", "check", "--base", "main").returncode == 0


def test_an_entry_is_of_a_run_or_of_a_plan(project: Path) -> None:
    for words in ((), ("--from-run", "last", "--base", "main")):
        done = here("changelog", "add", *words)
        assert done.returncode == 2
        assert "--base REV: what will be" in done.stderr


def test_what_a_run_measured_takes_the_place_of_what_was_planned(
    project: Path, results: Path
) -> None:
    words = ("changelog", "add", "--from-run", NEW, "--baseline", OLD, "--results", results)
    keys = yaml.safe_load(here(*words, "--dry-run").stdout)[0]["config-keys"]
    planned = written(keys, (), [f"planned: {keys[0]}: 1 point appears: new: conc 8"], "XXX")
    last = entry(SMOL, told="Another change.", link="XXX")
    Path(FILE).write_text(changelog(BASE, planned, last))
    done = here(*words)
    assert done.returncode == 0, done.stderr
    assert "in the place of what was planned" in done.stderr
    assert Path(FILE).read_text() == changelog(BASE, done.stdout, last)


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_reader_who_leaves_changes_no_exit_code(project: Path, words: tuple[str, ...]) -> None:
    Path(FILE).write_text(BASE + "\t\n")
    read, wrote = os.pipe()
    os.close(read)
    argv = [sys.executable, "-m", "infx", "changelog", "check", *words]
    done = subprocess.run(argv, env=environment(), stdout=wrote, check=False)
    os.close(wrote)
    assert done.returncode == 1


def test_a_run_that_is_not_over_is_entered_with_a_warning(project: Path, tmp_path: Path) -> None:
    points = many_points(4)
    records = many_records(points[:3], run_id=NEW, repeats=1, faults=False)
    write_run(tmp_path, points, records, many_plan(points), NEW, STARTED_S)
    done = here("changelog", "add", "--from-run", NEW, "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"warning: run {NEW} is not over: 1 measurement to come" in done.stderr
