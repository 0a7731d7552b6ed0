"""From what was typed (matrices, names, a saved plan) to a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.config.matrix import Matrix
    from infx.config.project import Project
    from infx.config.sites import Cluster
    from infx.domain.findings import Finding
    from infx.domain.plan import Plan

__all__ = ["Repetition", "cluster_named", "matrix_of", "plan_of"]


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often points are measured, and whether arms take turns: see `infx.plan.repeats`."""

    repeats: int | None = None
    interleave: str | None = None
    evaluations: bool = False

    @property
    def asked(self) -> bool:
        """True when anything but once was said."""
        return self != Repetition()

    @property
    def words(self) -> tuple[str, ...]:
        """The options that say so."""
        return (
            *(("--repeats", str(self.repeats)) if self.repeats is not None else ()),
            *(("--interleave", self.interleave) if self.interleave is not None else ()),
            *(("--repeat-evaluations",) if self.evaluations else ()),
        )


def plan_of(
    sources: Sequence[str],
    globs: Sequence[str] | None,
    project: Project,
    on: str | None,
    again: Repetition = Repetition(),
    reuse: Path | None = None,
) -> Plan:
    """Return the plan of matrices, or the saved plan whose inputs have not changed.

    ``reuse`` names the results folder of runs whose measurements stand for points. Raises
    ConfigError for faults in files, UsageError where a choice fits nothing.
    """
    from infx.cli.reusing import without_measured
    from infx.domain.errors import UsageError
    from infx.plan.make import make_plan

    saved = [source for source in sources if source.endswith(".json")]
    if not saved:
        matrix = matrix_of(sources, globs, project, on)
        _check_once(again, reuse)
        plan = _again(make_plan(matrix), again)
        plan = without_measured(plan, reuse) if reuse else plan
        return replace(plan, findings=(*plan.findings, *_expired(matrix)))
    if len(sources) > 1 or globs or on or again.asked or reuse:
        message = f"{saved[0]} is run as it is: no other file, --entry, --on, --repeats or --reuse"
        hint = "choose when planning: infx plan MATRIX --entry … --repeats … -o plan.json"
        raise UsageError("bad-option", message, hint=hint)
    return _read_saved(Path(saved[0]), project)


def _check_once(again: Repetition, reuse: Path | None) -> None:
    """Raise UsageError where points are to be measured again, and not to be measured again."""
    from infx.domain.errors import UsageError

    if reuse and again.asked:
        message = f"--reuse measures nothing again, {again.words[0]} does"
        raise UsageError("bad-option", message, hint="leave one of them out")


def _again(plan: Plan, again: Repetition) -> Plan:
    from infx.plan.repeats import interleaved, repeated

    if again.interleave is None:
        return repeated(plan, again.repeats or 1, evaluations=again.evaluations)
    repeats = 2 if again.repeats is None else again.repeats
    return interleaved(plan, again.interleave, repeats, evaluations=again.evaluations)


def matrix_of(
    sources: Sequence[str], globs: Sequence[str] | None, project: Project, on: str | None
) -> Matrix:
    """Return the entries that the globs choose (all without a glob), on the cluster ``on``."""
    from infx.config.load import load_matrix
    from infx.domain.errors import UsageError

    for saved in (source for source in sources if source.endswith(".json")):
        raise UsageError("bad-option", f"{saved} is a saved plan", hint="name its matrix")
    matrix = load_matrix([project.matrix_path(source) for source in sources], project)
    matrix = _chosen(matrix, globs) if globs else matrix
    return _moved(matrix, cluster_named(on, project)) if on else matrix


def cluster_named(name: str, project: Project, asked: str = "--on") -> Cluster:
    """Return a cluster of configs/clusters.yaml, which ``asked`` names.

    Raises ConfigError ``unknown-reference``.
    """
    from infx.config.library import Library
    from infx.domain.findings import Where

    library = Library(project)
    cluster = library.cluster(name, Where(asked))
    library.report.check()
    assert cluster  # else the report had an error
    return cluster


def _expired(matrix: Matrix) -> list[Finding]:
    """Return a warning for each exclusion of nodes whose last day has passed."""
    from datetime import date

    from infx.config.clusters import expired_exclusions

    clusters = {entry.cluster.name: entry.cluster for entry in matrix.entries}
    today = date.today().isoformat()
    return [found for c in clusters.values() for found in expired_exclusions(c, today)]


def _moved(matrix: Matrix, cluster: Cluster) -> Matrix:
    entries = tuple(replace(entry, cluster=cluster) for entry in matrix.entries)
    return replace(matrix, entries=entries)


def _chosen(matrix: Matrix, globs: Sequence[str]) -> Matrix:
    from infx.config.suggestions import did_you_mean
    from infx.domain.errors import UsageError

    names = [entry.name for entry in matrix.entries]
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in names):
            hint = did_you_mean(glob, names)
            raise UsageError("bad-option", f"--entry {glob} fits no entry", hint=hint)
    entries = [e for e in matrix.entries if any(fnmatchcase(e.name, glob) for glob in globs)]
    return replace(matrix, entries=tuple(entries))


def _read_saved(path: Path, project: Project) -> Plan:
    from infx.plan.saved import check_inputs, read_plan

    plan = read_plan(path)
    check_inputs(plan, project.root)
    return plan
