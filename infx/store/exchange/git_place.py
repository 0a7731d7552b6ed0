"""A branch of git as a place: a commit a push, on a branch that shares nothing with the others."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TypeVar

from infx.domain.errors import InfraError, UsageError
from infx.store.exchange.places import MEMBER, Box, locked
from infx.store.live import LIVE

__all__ = ["MOST_BYTES", "GitPlace"]

T = TypeVar("T")

MOST_BYTES = 100 * 1024**2
"""GitHub and its like refuse a file above this size, and the push with it."""

TRIES = 12
_REFS = "refs/infx-places"
_LOST_RACE = (
    *("fetch first", "non-fast-forward", "stale info", "cannot lock ref", "failed to update ref"),
    *("incorrect old value", "reference already exists"),
)
_TELLING = ("fatal:", "remote:", "!")
_NAMES = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "infx"), ("EMAIL", "infx@localhost"))
}


@dataclass(slots=True)
class _GitBox:
    """The files of a commit, and those put since."""

    git: _Git
    commit: str
    scratch: Path
    put_blobs: dict[str, str] = field(default_factory=dict)
    _blobs: dict[str, str] | None = None

    def blobs(self) -> dict[str, str]:
        """Return the object of each file. Raises UsageError for a branch of something else."""
        if self._blobs is None:
            listed = self.git.lines("ls-tree", "-r", "-z", self.commit) if self.commit else []
            parts = (line.split("\t", 1) for line in listed)
            self._blobs = {name: told.split()[2] for told, name in parts}
            odd = [name for name in self._blobs if not MEMBER.fullmatch(name)]
            if odd:
                text = f"{self.git.shown} is a branch of something else: it holds {odd[0]}"
                raise UsageError("not-a-place", text, hint="name a branch that is infx's alone")
        return {**self._blobs, **self.put_blobs}

    def names(self) -> list[str]:
        """See `Box`."""
        return sorted(self.blobs())

    def get(self, name: str) -> Path | None:
        """See `Box`."""
        blob = self.blobs().get(name)
        if blob is None:
            return None
        path = self.scratch / f"{blob}-{name.replace('/', '-')}"
        if not path.exists():
            with path.open("wb") as handle:
                self.git.run("cat-file", "blob", blob, stdout=handle)
        return path

    def put(self, name: str, path: Path) -> None:
        """See `Box`. Raises InfraError for a file that hosts of git refuse."""
        if (size := path.stat().st_size) > MOST_BYTES:
            text = f"{name} is {size >> 20} MiB; hosts of git refuse files over 100 MiB"
            raise InfraError("parcel-too-large", text, hint="push it with --light, or to a folder")
        self.put_blobs[name] = self.git.text("hash-object", "-w", "--no-filters", str(path))
        path.unlink()


@dataclass(frozen=True, slots=True)
class _Git:
    """git in the repository of a folder."""

    folder: Path
    shown: str

    def run(
        self, *words: str, stdout: int | IO[bytes] = subprocess.PIPE, told: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Return how git ended. Raises InfraError ``transfer-failed`` where it failed."""
        done = self.tried(*words, stdout=stdout, told=told)
        if done.returncode:
            raise self.failure(words[0], done.stderr.decode(errors="replace"))
        return done

    def tried(
        self, *words: str, stdout: int | IO[bytes] = subprocess.PIPE, told: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Return how git ended, well or not."""
        argv = ["git", "-C", str(self.folder), *words]
        env = {**os.environ, **_NAMES, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        try:
            return subprocess.run(
                argv, input=told, stdout=stdout, stderr=subprocess.PIPE, env=env, check=False
            )
        except FileNotFoundError as error:
            text = f"{self.shown} needs git"
            raise UsageError("not-a-place", text, hint="install git") from error

    def text(self, *words: str, told: bytes | None = None) -> str:
        """Return what git printed."""
        return self.run(*words, told=told).stdout.decode().strip()

    def lines(self, *words: str) -> list[str]:
        """Return what git printed with -z."""
        return [line for line in self.run(*words).stdout.decode().split("\0") if line]

    def failure(self, what: str, stderr: str) -> InfraError:
        """Return the error of a command that failed."""
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith(_TELLING)] or lines[-1:]
        said = "; ".join(telling[:3]) or "it did not say why"
        hint = "see that the branch can be fetched and pushed from here"
        return InfraError("transfer-failed", f"{self.shown}: git {what}: {said}", hint=hint)


@dataclass(frozen=True, slots=True)
class GitPlace:
    """A branch of the repository that ``folder`` is in, or of one of its remotes."""

    folder: Path
    remote: str
    branch: str

    @property
    def shown(self) -> str:
        """See `Place`."""
        of = f"remote {self.remote}" if self.remote else "this repository"
        return f"branch {self.branch} of {of}"

    def read(self, use: Callable[[Box], T]) -> T:
        """See `Place`. A branch that is not there yet holds nothing."""
        git = self._git()
        with TemporaryDirectory(prefix="infx-git-") as scratch:
            return use(_GitBox(git, self._tip(git), Path(scratch)))

    def change(self, use: Callable[[Box], T]) -> T:
        """See `Place`. Whoever comes second is told by git, and begins again."""
        git = self._git()
        self._check_free(git)
        for number in range(TRIES):
            with TemporaryDirectory(prefix="infx-git-") as scratch:
                box = _GitBox(git, self._tip(git), Path(scratch))
                made = use(box)
                if not box.put_blobs or self._sent(git, box):
                    return made
            time.sleep(min(5.0, 0.1 * 2**number) * (0.5 + random.random()))
        text = f"{self.shown}: others pushed before us {TRIES} times"
        raise InfraError("transfer-failed", text, hint="push again")

    def _git(self) -> _Git:
        git = _Git(self.folder, self.shown)
        if git.tried("rev-parse", "--git-dir").returncode:
            text = f"{self.folder} is in no repository of git"
            raise UsageError("not-a-place", text, hint="go to one, or name a folder")
        if git.tried("check-ref-format", f"refs/heads/{self.branch}").returncode:
            text = f"{self.branch!r} cannot be the name of a branch"
            raise UsageError("not-a-place", text, hint="write git:REMOTE/BRANCH or git:BRANCH")
        return git

    def _check_free(self, git: _Git) -> None:
        """Raise UsageError for a branch that somebody has checked out: its files would be stale."""
        if self.remote:
            return
        listed = git.text("worktree", "list", "--porcelain").splitlines()
        if f"branch refs/heads/{self.branch}" in listed:
            text = f"{self.shown} is checked out"
            raise UsageError("not-a-place", text, hint="name a branch that is infx's alone")

    def _tip(self, git: _Git) -> str:
        """Return the branch's newest commit; empty where there is none."""
        if not self.remote:
            return self._known(git, f"refs/heads/{self.branch}")
        there = f"refs/heads/{self.branch}"
        if not git.text("ls-remote", self.remote, there):
            return ""
        shallow = git.text("rev-parse", "--is-shallow-repository") == "true"
        depth = ("--depth=1",) if shallow else ()
        with locked(Path(git.text("rev-parse", "--absolute-git-dir"))):
            kept = f"{_REFS}/{self.remote}/{self.branch}"
            words = ("--quiet", "--no-tags", "--no-write-fetch-head", *depth)
            git.run("fetch", *words, self.remote, f"+{there}:{kept}")
            return self._known(git, kept)

    def _known(self, git: _Git, ref: str) -> str:
        return git.tried("rev-parse", "--verify", "--quiet", ref).stdout.decode().strip()

    def _sent(self, git: _Git, box: _GitBox) -> bool:
        """Return True when the branch is what the box is; False when somebody was faster."""
        commit = self._commit(git, box)
        there = f"refs/heads/{self.branch}"
        if not self.remote:
            old = box.commit or "0" * len(commit)
            return self._won(git, git.tried("update-ref", there, commit, old), "update-ref")
        words = ("push", "--quiet", "--no-verify", "--porcelain", self.remote, f"{commit}:{there}")
        return self._won(git, git.tried(*words), "push")

    def _won(self, git: _Git, done: subprocess.CompletedProcess[bytes], what: str) -> bool:
        if not done.returncode:
            return True
        said = (done.stdout + done.stderr).decode(errors="replace")
        if any(sign in said for sign in _LOST_RACE):
            return False
        raise git.failure(what, said)

    def _commit(self, git: _Git, box: _GitBox) -> str:
        """Return a new commit with the box's files, after the branch's newest."""
        runs = {name: blob for name, blob in box.blobs().items() if name != LIVE}
        lines = [f"100644 blob {blob}\t{name.removeprefix('runs/')}" for name, blob in runs.items()]
        listed = [f"040000 tree {self._tree(git, lines)}\truns"] if runs else []
        if LIVE in box.blobs():
            listed.append(f"100644 blob {box.blobs()[LIVE]}\t{LIVE}")
        parents = ("-p", box.commit) if box.commit else ()
        told = " ".join(sorted(name.removeprefix("runs/") for name in box.put_blobs))
        return git.text("commit-tree", self._tree(git, listed), *parents, "-m", f"infx: {told}")

    def _tree(self, git: _Git, lines: list[str]) -> str:
        return git.text(
            "mktree", "-z", told="".join(f"{line}\0" for line in sorted(lines)).encode()
        )
