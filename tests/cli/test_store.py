"""infx store push and pull as they are typed, and killed in the middle."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from infx.domain.status import OK, Status
from tests.cli.commands import INFX, ROOT, as_json, environment, here, infx
from tests.store.machines import HEAVY, RUN, Machine
from tests.store.tiny_plans import job, plan

LATER = "20260103-000000-bbbb"

pytestmark = pytest.mark.slow


@pytest.fixture
def one(tmp_path: Path):
    with Machine(tmp_path / "one") as found:
        yield found


def run(*words: object, results: Path) -> subprocess.CompletedProcess[str]:
    return here("store", *words, "--results", results)


def test_to_an_archive_and_back(one: Machine, tmp_path: Path):
    one.whole()
    archive = tmp_path / "artifact.tar.gz"
    pushed = run("push", archive, "last", results=one.results)
    assert pushed.returncode == 0, pushed.stderr
    assert pushed.stdout.startswith(f"run {RUN} is there now: 4 of 4 points done, ")
    pulled = run("pull", archive, results=tmp_path / "two")
    assert pulled.stdout == f"run {RUN} is here now: 4 of 4 points done\n"
    shown = here("status", RUN, "--results", tmp_path / "two", "--json")
    assert {p["status"]["state"] for p in as_json(shown)["data"]["points"]} == {"ok"}
    again = run("push", archive, RUN, results=one.results)
    assert "was there already" in again.stdout


def test_what_a_light_push_leaves_behind_is_said(one: Machine, tmp_path: Path):
    one.measures(one.begins().jobs[0], heavy=HEAVY)
    done = run("push", tmp_path / "place", RUN, "--light", "--json", results=one.results)
    [told] = as_json(done)["data"]["runs"]
    assert (told["what"], told["points_done"], told["points"]) == ("new", 2, 4)
    assert [Path(name).name for name in told["left"]] == ["profile_export.jsonl"] * 2
    text = run("push", tmp_path / "other", RUN, "--light", results=one.results)
    assert "left behind: 2 files, 800 KiB: profile_export.jsonl 400 KiB" in text.stderr


def test_a_publish_that_would_drop_points_names_them_and_does_nothing(one, tmp_path: Path):
    place = tmp_path / "place"
    one.whole()
    assert run("push", place, RUN, "--live", results=one.results).returncode == 0
    for of in one.begins(plan(job(0)), LATER).jobs:
        one.measures(of, run_id=LATER)
    done = run("push", place, LATER, "--live", results=one.results)
    assert done.returncode == 1
    assert done.stderr.count("points-dropped") == 2
    assert "is on the live curve of tiny" in done.stderr
    assert not (place / f"runs/{LATER}.tar.gz").exists()
    told = as_json(run("push", place, LATER, "--live", "--json", results=one.results))
    assert [f["code"] for f in told["diagnostics"]] == ["points-dropped"] * 2
    assert run("push", place, LATER, "--live", "--drop-points", results=one.results).returncode == 0
    assert f"live: tiny, 2 points of {LATER}" in run("pull", place, results=tmp_path / "2").stdout


def test_what_cannot_be_is_said_with_its_exit_code(one: Machine, tmp_path: Path):
    one.whole()
    place = tmp_path / "place"
    assert run("push", place, RUN, "--drop-points", results=one.results).returncode == 2
    assert run("push", place, "nope", results=one.results).returncode == 2
    assert run("pull", place, results=tmp_path / "two").returncode == 2
    for name in ("place.zip", "a.json"):
        (tmp_path / "a.json").write_text("{}")
        done = run("push", tmp_path / name, RUN, results=one.results)
        assert done.returncode == 2
        assert f"{name} is neither a folder nor a .tar.gz" in done.stderr
    told = run("push", place, RUN, results=one.results).stdout
    assert told.endswith(f" in {place}\n")
    named = run("pull", place, "nope", results=tmp_path / "two")
    assert named.returncode == 2
    assert f"its newest: {RUN}" in named.stderr
    parcel = place / f"runs/{RUN}.tar.gz"
    parcel.write_bytes(parcel.read_bytes()[:-100])
    cut = run("pull", place, results=tmp_path / "two")
    assert cut.returncode == 3
    assert "parcel-broken" in cut.stderr


def test_git_is_asked_where_the_command_is_typed(one: Machine, tmp_path: Path):
    one.whole()
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", repository], check=True)
    for word, code in (("push", 0), ("pull", 0)):
        runs = (RUN,) if word == "push" else ()
        done = infx("store", word, "git:kept", *runs, "--results", one.results, cwd=repository)
        assert done.returncode == code, done.stderr
    outside = infx("store", "pull", "git:kept", "--results", one.results, cwd=tmp_path)
    assert outside.returncode == 2
    assert "in no repository" in outside.stderr


@pytest.mark.parametrize("name", ["place", "place.tar.gz"])
def test_a_push_that_is_killed_leaves_what_was_there(one: Machine, tmp_path: Path, name: str):
    place = tmp_path / "shared" / name
    first, second = one.begins().jobs
    one.measures(first)
    assert run("push", place, RUN, results=one.results).returncode == 0
    one.measures(second)
    (one.folder() / "large").write_bytes(os.urandom(16 << 20))
    words = ("store", "push", place, RUN, "--results", one.results)
    child = subprocess.Popen(
        [*INFX, *map(str, words)], cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL
    )
    wait_for(lambda: half_written(place.parent) > 1 << 20, child)
    child.kill()
    child.wait()
    assert half_written(place.parent) < 16 << 20  # it was killed in the middle
    with Machine(tmp_path / "two") as two:
        assert run("pull", place, results=two.results).returncode == 0
        assert [p.status.state for p in two.points()] == ["ok", "ok", "pending", "pending"]
        done = run("push", place, RUN, results=one.results)
        assert "is there as it is now" in done.stdout, done.stderr
        run("pull", place, results=two.results)
        assert [p.status for p in two.points()] == [OK] * 4
    assert not list(place.parent.rglob(".infx-part*"))


def test_a_pull_that_is_killed_leaves_the_run_as_it_was(one: Machine, tmp_path: Path):
    place, first = tmp_path / "place", one.begins().jobs[0]
    one.measures(first)
    run("push", place, RUN, results=one.results)
    with Machine(tmp_path / "two") as two:
        run("pull", place, results=two.results)
        before = two.files()
        (one.folder() / "large").write_bytes(os.urandom(48 << 20))
        one.measures(one.store.records(RUN) and plan().jobs[1], Status("failed", "server-hung"))
        run("push", place, RUN, results=one.results)
        words = ("store", "pull", place, "--results", two.results)
        child = subprocess.Popen(
            [*INFX, *map(str, words)], cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL
        )
        wait_for(lambda: any(two.results.glob(".pull-*/run/*")), child)
        child.kill()
        child.wait()
        assert two.files() == before
        done = run("pull", place, results=two.results)
        assert "is here as it is there" in done.stdout, done.stderr
        assert not list(two.results.glob(".pull-*"))


def half_written(folder: Path) -> int:
    sizes = []
    for path in folder.rglob("*.part"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return max(sizes, default=0)


def wait_for(done, child: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + 60
    while not done():
        assert child.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < until_s
        time.sleep(0.005)
