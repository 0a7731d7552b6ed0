"""What `infx ci plan` reads: an event, comments, two revisions, a store."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from infx.ci.reuse import refusals
from infx.cli.revisions import project_at

if TYPE_CHECKING:
    from infx.changelog.entry import Changelog
    from infx.ci.labels import LabelRules
    from infx.ci.plan import Change, CiPlan
    from infx.config.project import Project
    from infx.domain.findings import Finding
    from infx.domain.plan import Plan
    from infx.store import Store

__all__ = ["ci_plan", "label_rules", "plan_of_all", "reuse_of"]


def ci_plan(
    event: Path,
    base: str,
    head: str,
    comments: Path | None,
    labels: Path | None,
    results: Path | None,
) -> CiPlan:
    """Return what CI does for the event. Raises ConfigError for what any of the files says wrong,
    UsageError for a file or a revision that is not there."""
    from infx.ci.events import read_comments, read_event
    from infx.ci.plan import plan
    from infx.cli.options import project

    read = read_event(_bytes(event), str(event))
    said = read_comments(_bytes(comments), str(comments)) if comments else ()
    rules = label_rules(labels)
    change = _change(base, head, read.pull_request.html_url, project())
    return plan(read, change, rules, comments=said, stored=_stored(results))


def label_rules(path: Path | None) -> LabelRules:
    """Return the rules in a file, or infx's own. Raises ConfigError."""
    from infx.ci.labels import read_rules
    from infx.config.nodes import Report, plain, read_yaml

    path = path or Path(str(files("infx.ci") / "data" / "labels.yaml"))
    report = Report()
    node, _ = read_yaml(path, str(path), report)
    report.check()
    return read_rules(plain(node) if node else None, str(path))


def reuse_of(made: CiPlan, results: Path | None) -> tuple[str, tuple[Finding, ...]]:
    """Return the run of the store in ``results`` that a comment reuses, and why it cannot stand for
    what is planned; without a store, or a comment, there is nothing to say.

    A comment that names no run means the newest that can stand for everything. Raises UsageError
    ``unknown-run`` where the store has none of that name.
    """
    from infx.cli.options import existing_store

    if made.decision != "reuse" or not made.reuse or not made.plan or results is None:
        return "", ()
    with existing_store(results) as store:
        known = _oldest_first(store)
        names = [_known(made.reuse.run, known)] if made.reuse.run else known[::-1]
        tried = ((name, refusals(made.plan.points, store.records(name), name)) for name in names)
        fits = list(tried) if made.reuse.run else [pair for pair in tried if not pair[1]][:1]
    return fits[0] if fits else ("", (_none_fits(results),))


def _known(run: str, known: Sequence[str]) -> str:
    from infx.config.suggestions import did_you_mean
    from infx.domain.errors import UsageError

    if run in known:
        return run
    hint = did_you_mean(run, known)
    raise UsageError("unknown-run", f"the store has no run {run}, which a comment names", hint=hint)


def _none_fits(results: Path) -> Finding:
    from infx.domain.findings import Finding

    sentence = f"no run in {results} has measured everything that is planned"
    return Finding("reuse-refused", "error", sentence, hint="name a run to see what it lacks")


def _stored(results: Path | None) -> dict[str, str]:
    """Return the runs of the points that are ok in a store; of several the newest."""
    from infx.cli.options import existing_store

    if results is None:
        return {}
    with existing_store(results) as store:
        return {point: run for run in _oldest_first(store) for point in _ok(store, run)}


def _oldest_first(store: Store) -> list[str]:
    return [row.run_id for row in sorted(store.runs(), key=lambda row: row.created_s)]


def _ok(store: Store, run: str) -> list[str]:
    return [r.point.point_id for r in store.records(run) if r.status.state == "ok"]


def plan_of_all(project: Project) -> Plan:
    """Return the plan of every matrix in the project's own configs/; a master configuration of
    InferenceX is none. Raises ConfigError with the faults of all."""
    from infx.config.inferencex.recognise import is_master
    from infx.config.load import load_matrix
    from infx.config.project import CLUSTERS, HARDWARE
    from infx.plan.make import make_plan

    paths = sorted((project.root / "configs").glob("*.yaml"))
    own = [path for path in paths if path.stem not in (CLUSTERS, HARDWARE) and not is_master(path)]
    return make_plan(load_matrix(own, project))


def _change(base: str, head: str, pr_link: str, here: Project) -> Change:
    from infx.changelog.rules import additions
    from infx.ci.plan import Change

    with project_at(base, here) as old, project_at(head, here) as new:
        before, findings = _base_plan(old)
        text = _changelog_bytes(old).decode("utf-8", "replace")
        changelog = _checked(_changelog_bytes(new), text, pr_link)
        return Change(
            base=before,
            head=plan_of_all(new),
            additions=additions(text, changelog),
            findings=findings,
        )


def _base_plan(project: Project) -> tuple[Plan, tuple[Finding, ...]]:
    """Return the plan of the base; an empty one, and why, where it cannot be planned any more."""
    from infx.config.matrix import Matrix
    from infx.domain.errors import ConfigError
    from infx.domain.findings import Finding
    from infx.plan.make import make_plan

    try:
        return plan_of_all(project), ()
    except ConfigError as error:
        first = error.findings[0]
        sentence = f"the base cannot be planned, so every point counts as new: {first}"
        empty = make_plan(Matrix(entries=(), inputs={}))
        return empty, (Finding("base-unreadable", "warning", sentence, first.where),)


def _checked(data: bytes, base: str, pr_link: str) -> Changelog:
    """Return the changelog. Raises ConfigError with every error of it."""
    from infx.changelog.entry import read_changelog
    from infx.changelog.rules import check
    from infx.cli.changelog import FILE
    from infx.domain.errors import ConfigError

    changelog = read_changelog(data, FILE)
    found = check(changelog, base=base, pr_link=pr_link)
    if faults := [finding for finding in found if finding.level == "error"]:
        raise ConfigError(faults)
    return changelog


def _changelog_bytes(project: Project) -> bytes:
    from infx.cli.changelog import FILE

    path = project.root / FILE
    return path.read_bytes() if path.is_file() else b""


def _bytes(path: Path) -> bytes:
    """Return a file's bytes. Raises UsageError ``bad-option`` where it cannot be read."""
    from infx.domain.errors import UsageError

    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError("bad-option", f"{path} cannot be read: {error.strerror}") from error
