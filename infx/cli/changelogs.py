"""What the commands of the changelog read: files, revisions, matrices, runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.changelog.entry import Changelog
    from infx.config.project import Project
    from infx.domain.findings import Finding

__all__ = [
    "appended_findings",
    "are_ours_last",
    "base_text",
    "check_link",
    "known_entries",
    "leave_to_git",
    "path_of",
    "read",
    "text_of",
    "write",
]


def path_of(given: Path | None) -> Path:
    """Return the changelog that is meant."""
    from infx.changelog import FILE
    from infx.cli.options import project

    return given if given else project().root / FILE


def read(path: Path) -> bytes:
    """Return the bytes of a file. Raises ConfigError where it cannot be read."""
    from infx.domain.errors import ConfigError
    from infx.domain.findings import Finding, Where

    try:
        return path.read_bytes()
    except FileNotFoundError:
        hint = "infx changelog add writes it"
        found = Finding("file-not-found", "error", "there is no such file", Where(str(path)), hint)
    except OSError as error:
        found = Finding("file-unreadable", "error", str(error.strerror), Where(str(path)))
    raise ConfigError([found])


def text_of(path: Path, missing: str | None = None) -> str:
    """Return the text of a file, ``missing`` where there is none and one is given. Raises
    ConfigError where it is not UTF-8 or cannot be read."""
    if missing is not None and not path.exists():
        return missing
    return _text(read(path), str(path))


def write(path: Path, text: str) -> None:
    """Put ``text`` in the place of a file, whole or not at all. Raises UsageError where it cannot
    be written."""
    import shutil

    from infx.domain.errors import UsageError

    whole = path.resolve()
    part = whole.with_name(f"{whole.name}.part")
    try:
        part.write_bytes(text.encode())
        if whole.exists():
            shutil.copymode(whole, part)
        part.replace(whole)
    except OSError as error:
        part.unlink(missing_ok=True)
        message = f"cannot write {path}: {error.strerror}"
        raise UsageError(
            "bad-option", message, hint="check the path and its permissions"
        ) from error


def check_link(link: str) -> None:
    """Raise UsageError for what is neither a pull request's canonical address nor a placeholder."""
    from infx.changelog.entry import PLACEHOLDER
    from infx.changelog.history import LINK
    from infx.domain.errors import UsageError

    if link != PLACEHOLDER and not LINK.fullmatch(link):
        hint = "write https://github.com/OWNER/REPOSITORY/pull/NUMBER"
        raise UsageError("bad-option", f"--pr {link!r} is no pull request", hint=hint)


def base_text(base: str, path: Path) -> str:
    """Return the changelog as it was: ``base`` is a file, or a revision of ``path``."""
    from infx.forge.revisions import text_at

    if Path(base).is_file():
        return text_of(Path(base))
    return _text(text_at(base, path), f"{base}:{path.name}")


def _text(data: bytes, name: str) -> str:
    from infx.changelog.text import decoded
    from infx.domain.errors import ConfigError
    from infx.domain.findings import Finding

    text = decoded(data, name)
    if isinstance(text, Finding):
        raise ConfigError([text])
    return text


def known_entries() -> set[str]:
    """Return the names of all entries in the project's configs/, of either format."""
    from infx.cli.options import project
    from infx.config.nodes import MapNode, Report, read_yaml

    known: set[str] = set()
    for path in _matrices(project()):
        node, _ = read_yaml(path, path.name, Report())
        known |= set(map(str, node.keys)) if isinstance(node, MapNode) else set()
    return known


def _matrices(project: Project) -> list[Path]:
    return [project.matrix_path(name) for name in project.matrices()]


def appended_findings(
    head: Changelog, before: str, base: str, *, forced: bool
) -> tuple[Finding, ...]:
    """Return what new entries with append-only (all of them where it is ``forced``) may not do to
    the points of the plans. Raises ConfigError for matrices that cannot be planned."""
    from infx.changelog.rules import additions, append_only_findings
    from infx.cli.options import project
    from infx.forge.planned import plan_of_all
    from infx.forge.revisions import project_at

    mine = project()
    entries = [e for e in additions(before, head) if forced or e.append_only]
    if not entries:
        return ()
    with project_at(base, mine) as old:
        was, now = plan_of_all(old).points, plan_of_all(mine).points
    told = [append_only_findings(entry, was, now) for entry in entries]
    return tuple(finding for found in told for finding in found)


def are_ours_last() -> bool:
    """Return True where the other side is what the branch will be merged into: git merges into a
    branch that is not published. A rebase puts commits onto what is."""
    from infx.forge.revisions import git

    here = Path.cwd()
    doing = ("rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD")
    paths = (git(here, "rev-parse", "--git-path", name).stdout.decode().strip() for name in doing)
    if any(path and (here / path).exists() for path in paths):
        return False
    branch = git(here, "symbolic-ref", "--short", "--quiet", "HEAD").stdout.decode().strip()
    remote = git(here, "symbolic-ref", "--short", "--quiet", "refs/remotes/origin/HEAD").stdout
    published = {"main", "master", remote.decode().strip().removeprefix("origin/")}
    return bool(branch) and branch not in published


def leave_to_git(base: Path, ours: Path, theirs: Path) -> None:
    """Write git's own merge, with its marks of conflict, to ``ours``."""
    from infx.forge.revisions import git

    names = (str(path.resolve()) for path in (ours, base, theirs))
    labels = (word for name in ("ours", "base", "theirs") for word in ("-L", name))
    git(Path.cwd(), "merge-file", *labels, *names)
