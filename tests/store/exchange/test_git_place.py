"""A branch of git as a place: real repositories, real races."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infx.domain.errors import InfraError, UsageError
from infx.store import Store, find_run
from infx.store.exchange import git_place, place_of, push
from infx.store.exchange.git_place import GitPlace
from tests.store.machines import RUN, Machine, what
from tests.store.tiny_plans import judge

pytestmark = pytest.mark.slow


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clones(tmp_path: Path) -> tuple[Path, Path]:
    """Two clones of a bare repository with one commit on main."""
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", bare], check=True)
    found = tmp_path / "one", tmp_path / "two"
    for clone in found:
        subprocess.run(["git", "clone", "-q", bare, clone], check=True, capture_output=True)
        git(clone, "config", "user.name", "somebody")
        git(clone, "config", "user.email", "somebody@localhost")
    (found[0] / "readme").write_text("x")
    git(found[0], "checkout", "-q", "-b", "main")
    git(found[0], "add", "readme")
    git(found[0], "commit", "-q", "-m", "first")
    git(found[0], "push", "-q", "origin", "main")
    return found


@pytest.fixture
def machines(clones):
    with Machine(clones[0]) as one, Machine(clones[1]) as two:
        yield one, two


def remote(clone: Path, branch: str = "infx") -> GitPlace:
    found = place_of(f"git:origin/{branch}", clone, ["origin"])
    assert isinstance(found, GitPlace)
    return found


def test_a_run_goes_through_a_branch_of_its_own(clones, machines):
    one, two = machines
    one.whole()
    assert what(one.pushes(remote(clones[0]))) == ["new"]
    assert what(two.pulls(remote(clones[1]))) == ["new"]
    assert two.files() == one.files()
    bare = clones[0].parent / "bare.git"
    assert git(bare, "log", "--format=%an %s", "infx") == f"infx infx: {RUN}.tar.gz"
    assert subprocess.run(["git", "-C", bare, "merge-base", "main", "infx"]).returncode == 1
    assert git(clones[0], "status", "--porcelain", "--", "readme") == ""
    assert git(clones[0], "branch", "--format=%(refname:short)") == "main"


def test_again_makes_no_commit(clones, machines):
    one, two = machines
    one.whole()
    one.pushes(remote(clones[0]))
    bare = clones[0].parent / "bare.git"
    tip = git(bare, "rev-parse", "infx")
    assert what(one.pushes(remote(clones[0]))) == ["kept"]
    two.pulls(remote(clones[1]))
    assert what(two.pushes(remote(clones[1]))) == ["kept"]
    assert git(bare, "rev-parse", "infx") == tip


def test_a_branch_without_remote_is_of_this_repository(clones, machines):
    one, _ = machines
    one.whole()
    place = place_of("git:results/kept", clones[0], ["origin"])
    assert what(one.pushes(place)) == ["new"]
    assert git(clones[0], "ls-tree", "-r", "--name-only", "results/kept") == f"runs/{RUN}.tar.gz"
    one.pushes(place)
    assert git(clones[0], "rev-list", "--count", "results/kept") == "1"


def test_what_is_not_there_yet_holds_nothing(clones, machines):
    assert machines[0].pulls(remote(clones[0], "later")).pulled == ()


def test_branches_of_something_else_are_refused(clones, machines):
    one, _ = machines
    one.whole()
    with pytest.raises(UsageError, match="is a branch of something else: it holds readme"):
        one.pushes(remote(clones[0], "main"))
    with pytest.raises(UsageError, match="is checked out"):
        one.pushes(place_of("git:main", clones[0], ["origin"]))
    with pytest.raises(UsageError, match="cannot be the name"):
        one.pushes(place_of("git:a..b", clones[0], ["origin"]))
    with pytest.raises(UsageError, match="in no repository"):
        one.pushes(place_of("git:x", clones[0].parent, []))


def test_a_remote_that_is_gone_is_the_machines_fault(clones, machines):
    one, _ = machines
    one.whole()
    git(clones[0], "remote", "set-url", "origin", str(clones[0].parent / "gone.git"))
    with pytest.raises(InfraError) as caught:
        one.pushes(remote(clones[0]))
    assert caught.value.code == "transfer-failed"


@pytest.mark.parametrize("where", ["git:origin/infx", "git:infx"])
def test_who_comes_second_begins_again_with_what_the_first_pushed(clones, machines, where: str):
    one, two = machines
    first, second = "20260101-000000-aaaa", "20260102-000000-bbbb"
    one.whole(first)
    two.whole(second)
    mine, other = (place_of(where, clones[0], ["origin"]) for _ in range(2))
    seen: list[int] = []

    def guard(live, _):
        seen.append(len(live))
        if len(seen) == 1:
            two.pushes(other, second, guard=lambda *_: ())
        return ()

    one.pushes(mine, first, guard=guard)
    assert seen == [0, 4]  # the guard was asked again, with the curves of the other
    names = mine.read(lambda box: box.names())
    assert names == ["live.json", f"runs/{first}.tar.gz", f"runs/{second}.tar.gz"]


def test_pushes_at_once_lose_nothing(clones, machines):
    names = [f"2026010{n}-000000-aaaa" for n in range(1, 7)]
    for number, run_id in enumerate(names):
        machines[number % 2].whole(run_id)

    def pushes(number: int) -> None:
        clone, machine = clones[number], machines[number]
        with Store(machine.results / "store.sqlite") as store:  # a connection is its thread's
            for run_id in names[number::2]:
                push(store, remote(clone), [find_run(store, run_id)], judge)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(pushes, range(2)))
    listed = git(clones[0].parent / "bare.git", "ls-tree", "-r", "--name-only", "infx")
    assert listed.split() == [f"runs/{name}.tar.gz" for name in names]


def test_a_race_that_is_always_lost_ends(clones, machines, monkeypatch):
    one, _ = machines
    one.whole()
    monkeypatch.setattr(git_place, "TRIES", 3)
    hook = clones[0].parent / "bare.git/hooks/update"
    hook.write_text("#!/bin/sh\necho 'cannot lock ref' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(InfraError, match="others pushed before us 3 times"):
        one.pushes(remote(clones[0]))


def test_a_host_that_refuses_is_quoted(clones, machines):
    one, _ = machines
    one.whole()
    hook = clones[0].parent / "bare.git/hooks/update"
    hook.write_text("#!/bin/sh\necho 'branch is protected' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(InfraError, match="remote: branch is protected"):
        one.pushes(remote(clones[0]))


def test_what_git_hosts_refuse_is_said_before(clones, machines, monkeypatch):
    one, _ = machines
    one.whole()
    monkeypatch.setattr(git_place, "MOST_BYTES", 1000)
    with pytest.raises(InfraError, match="hosts of git refuse") as caught:
        one.pushes(remote(clones[0]))
    assert "--light" in caught.value.hint


def test_a_shallow_clone_of_ci_pushes_and_pulls(clones, machines, tmp_path: Path):
    one, _ = machines
    one.whole()
    one.pushes(remote(clones[0]))
    one.whole("20260101-000000-aaaa")
    one.pushes(remote(clones[0]), "20260101-000000-aaaa")
    shallow = tmp_path / "shallow"
    bare = f"file://{clones[0].parent}/bare.git"
    subprocess.run(["git", "clone", "-q", "--depth=1", bare, shallow], check=True)
    with Machine(shallow) as three:
        three.pulls(remote(shallow), RUN)
        assert git(shallow, "rev-list", "--count", "refs/infx-places/origin/infx") == "1"
        three.whole("20270101-000000-cccc")
        assert what(three.pushes(remote(shallow), "20270101-000000-cccc")) == ["new"]
    listed = git(clones[0].parent / "bare.git", "ls-tree", "-r", "--name-only", "infx")
    assert len(listed.split()) == 3
