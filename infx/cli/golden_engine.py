"""The engine that `infx golden` measures: of an entry, of a recipe, or one that runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.config.matrix import Entry
    from infx.config.project import Project
    from infx.golden.curve import Sampling, Source
    from infx.job.golden_run import Engines, Launched

__all__ = ["Choice", "Engine", "golden_path"]

DEFAULT_KS = tuple(range(1, 9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was typed about the engine; "" and () are not given."""

    name: str = ""
    matrices: tuple[str, ...] = ()
    url: str = ""
    framework: str = "infx"
    model: str = ""
    method: str = ""
    hardware: str = ""

    @property
    def source(self) -> Source:
        """What `infx golden check` starts again."""
        from infx.golden.curve import Source

        return Source(name=self.name, matrices=self.matrices)

    def engine(self, ks: Sequence[int], sampling: Sampling, project: Project, logs: Path) -> Engine:
        """Return the engine at ``ks`` (none: 1 to 8, or the K that runs at the URL).

        Raises UsageError and ConfigError for what cannot be, and for a URL what
        `infx.job.golden_server.connect` and `inspect` raise.
        """
        from infx.domain.errors import UsageError

        if bool(self.name) == bool(self.url):
            message = "expected the engine to measure: a NAME, or --url, and not both"
            hint = "NAME is an entry of the matrix that -c names, or a recipe"
            raise UsageError("bad-option", message, hint=hint)
        return self._standing(ks) if self.url else self._launched(ks, sampling, project, logs)

    def _launched(
        self, ks: Sequence[int], sampling: Sampling, project: Project, logs: Path
    ) -> Engine:
        ks = tuple(ks) or DEFAULT_KS
        entry = _named_entry(self.name, self.matrices, project)
        found = _launched(entry, ks, self.method, sampling, logs)
        arm = found.arms[ks[0]]
        return Engine(found, ks, arm.method, arm.model.name)

    def _standing(self, ks: Sequence[int]) -> Engine:
        from infx import frameworks
        from infx.domain.errors import UsageError
        from infx.job.golden_run import Standing
        from infx.job.golden_server import connect, inspect

        if len(ks) > 1:
            message = f"the server at {self.url} has one K"
            raise UsageError("bad-option", message, hint="leave --k out: it is asked")
        running = connect(frameworks.get(self.framework), self.url, self.model)
        told = inspect(running, ks[0] if ks else None, self.method)
        return Engine(Standing(running), (told.k,), told.method, running.model)


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that can be measured at ``ks``."""

    engines: Engines
    ks: tuple[int, ...]
    method: str
    model: str

    @property
    def slug(self) -> str:
        """The name of its golden file: MODEL_METHOD in letters that file names have."""
        return re.sub(r"[^a-z0-9._-]+", "-", f"{self.model}_{self.method}".lower())


def golden_path(text: str, project: Project) -> Path:
    """Return the golden file of a name in golden_al/, or of a path.

    Raises ConfigError (``unknown-reference``) with the nearest name.
    """
    from infx.config.suggestions import did_you_mean
    from infx.domain.errors import ConfigError
    from infx.domain.findings import Finding, Where

    if "/" in text or text.endswith((".yaml", ".yml")):
        return Path(text)
    if found := project.golden_path(text):
        return found
    sentence = f"there is no golden file `{text}` in golden_al/"
    hint = did_you_mean(text, project.goldens()) or "list them with infx golden show"
    raise ConfigError([Finding("unknown-reference", "error", sentence, Where(text), hint)])


def _named_entry(name: str, matrices: Sequence[str], project: Project) -> Entry:
    """Return the entry ``name`` of matrices, or one that serves the recipe ``name`` without them.

    Raises ConfigError, UsageError (``bad-option``) where no entry is called so.
    """
    from infx.config.library import Library
    from infx.config.load import load_matrix
    from infx.config.sites import Cluster
    from infx.config.suggestions import did_you_mean
    from infx.domain.errors import UsageError
    from infx.domain.findings import Where
    from infx.job.golden_arms import entry_of

    if matrices:
        matrix = load_matrix([project.matrix_path(one) for one in matrices], project, goldens=False)
        entries = {entry.name: entry for entry in matrix.entries}
        if name not in entries:
            message = f"there is no entry {name!r} in {', '.join(matrices)}"
            raise UsageError("bad-option", message, hint=did_you_mean(name, entries))
        return entries[name]
    library, where = Library(project), Where("infx golden")
    recipe = library.recipe(name, where)
    library.report.check()
    assert recipe  # else the report had an error
    here = Cluster(name="local", executor="local", hardware=recipe.hardware[0], where=where)
    return entry_of(recipe, here)


def _launched(
    entry: Entry, ks: Sequence[int], method: str, sampling: Sampling, folder: Path
) -> Launched:
    """Return what starts the entry's engine at each K, on this machine, with logs in ``folder``.

    Raises UsageError for a K that it cannot serve, or an engine that runs in a container.
    """
    from infx import frameworks
    from infx.domain.errors import UsageError
    from infx.job.golden_arms import arms
    from infx.job.golden_run import Launched
    from infx.job.spec import Site

    site = entry.cluster.slurm
    if site and site.container and site.container.runtime != "none":
        message = f"{entry.name} runs in a container on {entry.cluster.name}"
        hint = "start its server there and measure that with --url"
        raise UsageError("bad-option", message, hint=hint)
    framework = frameworks.get(entry.framework)
    found = arms(entry, framework, ks, seats=sampling.batch, method=method)
    place = Site(models=site.models if site else {}, start_limit_s=entry.cluster.limits.start)
    return Launched(framework, {k: place.placed(arm) for k, arm in found.items()}, folder)
