"""Collecting and checking, from what was typed to what is to be told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.cli.golden_asking import Sampled
    from infx.cli.golden_engine import Choice
    from infx.config.library import Golden
    from infx.golden.curve import Curve
    from infx.golden.estimate import Estimate
    from infx.golden.judging import Verdict

__all__ = ["Collected", "Collecting", "Held", "check", "collect", "held", "measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collecting:
    """What `infx golden collect` was told beside its engine and its sampling."""

    ks: tuple[int, ...]
    modes: tuple[str, ...]
    output: Path | None
    logs: Path
    command: str
    again: bool
    fresh: bool


@dataclass(frozen=True, slots=True)
class Collected:
    """The curve, where it is, and whether it is whole (False: it was interrupted)."""

    path: Path
    curve: Curve | None
    whole: bool


@dataclass(frozen=True, slots=True)
class Held:
    """A golden file: its model and lengths, and the record beside it where infx measured it."""

    path: Path
    model: str
    lengths: Golden
    record: Curve | None


def collect(choice: Choice, sampled: Sampled, asked: Collecting) -> Collected:
    """Measure what the golden file lacks. Ctrl-C ends it early, with all values that are done."""
    from infx.cli.golden_asking import asked_prompts
    from infx.cli.golden_showing import telling
    from infx.cli.options import project
    from infx.golden.curve import Sampling
    from infx.job import golden_run

    here = project()
    sampling, prompts = asked_prompts(sampled.over(Sampling()))
    engine = choice.engine(asked.ks, sampling, here, asked.logs)
    path = asked.output or here.root / "golden_al" / f"{engine.slug}.yaml"
    curve = None if asked.fresh else _before(path)

    def save(found: Curve) -> None:
        nonlocal curve
        curve = found
        golden_run.save_curve(found, path)

    job = golden_run.Asked(
        wanted=tuple((mode, k) for k in engine.ks for mode in asked.modes),
        method=engine.method,
        sampling=sampling,
        prompts=prompts,
        source=choice.source,
        command=asked.command,
        hardware=choice.hardware,
        again=asked.again,
    )
    try:
        with telling() as tell:
            curve = golden_run.collect(engine.engines, job, curve, save, tell)
    except KeyboardInterrupt:
        return Collected(path, curve, whole=False)
    return Collected(path, curve, whole=True)


def check(
    golden: Held,
    choice: Choice,
    sampled: Sampled,
    k: str | None,
    thinking: str | None,
    logs: Path,
) -> list[Verdict]:
    """Measure values of a golden file again and judge each: those at ``k`` with ``thinking``, as
    typed (None: all of the file, or those at the K that the server at a URL has)."""
    from infx.cli.golden_asking import asked_prompts, chosen
    from infx.cli.golden_showing import telling
    from infx.cli.options import project
    from infx.golden.curve import Sampling
    from infx.golden.judging import judge
    from infx.job import golden_run

    record = golden.record
    sampling, prompts = asked_prompts(sampled.over(record.sampling if record else Sampling()))
    wanted = chosen(golden.lengths, golden.path.name, k, thinking)
    ks = () if choice.url and not k else tuple(dict.fromkeys(one for _, one in wanted))
    engine = _with_record(choice, record).engine(ks, sampling, project(), logs)
    wanted = wanted if ks else chosen(golden.lengths, golden.path.name, str(engine.ks[0]), thinking)
    job = golden_run.Asked(
        wanted=tuple(wanted), method=engine.method, sampling=sampling, prompts=prompts
    )
    with telling() as tell:
        now = golden_run.collect(engine.engines, job, None, lambda _: None, tell)
    verdicts = []
    for mode, at in wanted:
        then = measured(golden, mode, at)
        width, length = then.half_width if then else None, golden.lengths[mode][at]
        verdicts.append(judge(mode, at, length, width, now.values[mode][at].estimate))
    return verdicts


def held(path: Path) -> Held:
    """Return a golden file. Raises ConfigError for one that is none."""
    from infx.cli.options import project
    from infx.config.library import Library
    from infx.golden.curve import read_curve
    from infx.golden.text import record_path

    library = Library(project())
    found = library.golden_file(path)
    library.report.check()
    assert found  # else the report had an error
    return Held(path, *found, read_curve(record_path(path)))


def measured(golden: Held, mode: str, k: int) -> Estimate | None:
    """Return how a value of the file was measured; None when it is not the record's value."""
    if golden.record is None or not golden.record.has(mode, k):
        return None
    found = golden.record.values[mode][k].estimate
    return found if f"{found.length:.2f}" == f"{golden.lengths[mode][k]:.2f}" else None


def _before(path: Path) -> Curve | None:
    """Return the curve in a golden file that is there. Raises UsageError (``golden-settings``) for
    one without a record: its values are not ours to mix with."""
    from infx.domain.errors import UsageError
    from infx.golden.curve import read_curve
    from infx.golden.text import record_path

    record = read_curve(record_path(path))
    if record is None and path.exists():
        message = f"{path} was not collected by infx: {record_path(path).name} is not beside it"
        hint = "name another file with -o, or replace it with --fresh"
        raise UsageError("golden-settings", message, hint=hint)
    return record


def _with_record(choice: Choice, record: Curve | None) -> Choice:
    """Return the choice with what the record knows where nothing was typed."""
    if record is None:
        return choice
    method = choice.method or record.subject.method
    if choice.name or choice.url:
        return replace(choice, method=method)
    source = record.source
    return replace(choice, name=source.name, matrices=_here(source.matrices), method=method)


def _here(matrices: tuple[str, ...]) -> tuple[str, ...]:
    """Return recorded matrices as they are found from here: where a path leads nowhere, by name."""
    from infx.cli.options import project

    names = project().matrices()
    stems = ((one, Path(one).stem) for one in matrices)
    return tuple(stem if stem in names and not Path(one).is_file() else one for one, stem in stems)
