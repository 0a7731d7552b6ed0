"""What a reader finds when opening a point: commands, evidence, provenance, as compact JSON.

What several points share (a command's words, a sentence, an environment) stands once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from infx.domain.codes import CODES
from infx.domain.record import EngineCounters
from infx.report.families import Family
from infx.report.figures import duration, figure, percent, plain, revision
from infx.report.model import PointRow

__all__ = ["mono_words", "opened"]

NAME, IDENTITY = "{name}", "{id}"
"""How a path says the name of its point and the digits of its identity."""


class Texts:
    """Sentences that several points say: each once, by its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """Return the number of ``text``."""
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def all(self) -> list[str]:
        """The texts, by their numbers."""
        return list(self._numbers)


def opened(rows: Sequence[PointRow], families: Sequence[Family]) -> dict[str, Any]:
    """Return ``families``, ``points`` (a list a field, in the order of ``rows``) and ``texts``, to
    which every sentence of a point is a number."""
    texts = Texts()
    points = {
        "of": _places(rows, families),
        "client": [_client(row.record.point.point_id, families) for row in rows],
        "said": [[texts(sentence) for sentence in _said(row)] for row in rows],
        "facts": [[texts(fact) for fact in _facts(row)] for row in rows],
        "made": [texts(_made(row)) for row in rows],
        "files": [[texts(path) for path in _files(row)] for row in rows],
        "repeats": [_repeats(row, texts) for row in rows],
    }
    return {
        "families": [_family(family) for family in families], "points": points, "texts": texts.all
    }  # fmt: skip


def mono_words(counters: EngineCounters | None) -> str:
    """Return what mono served of a point that claims it."""
    if counters is None or counters.mono_share is None:
        return "mono: the engine does not tell what it served"
    if counters.mono_coverage is None:
        return "mono: no decode step was eligible"
    coverage, share = map(percent, (counters.mono_coverage, counters.mono_share))
    return f"mono served {coverage} of its eligible steps, {share} of all decode steps"


def _family(family: Family) -> dict[str, Any]:
    return {
        "id": family.anchor,
        "server": family.server,
        "env": family.env,
        "columns": [column.values for column in family.columns],
        "clients": [command.words for command in family.clients],
    }


def _places(rows: Sequence[PointRow], families: Sequence[Family]) -> list[tuple[int, int]]:
    """Return the numbers of each row's family and, within it, of its arm."""
    arms = {
        arm.arm.arm_id: (number, index)
        for number, family in enumerate(families)
        for index, arm in enumerate(family.arms)
    }
    return [arms[row.record.point.arm.arm_id] for row in rows]


def _client(point_id: str, families: Sequence[Family]) -> list[Any]:
    """Return the number of the client's command in its family and the point's own words."""
    for family in families:
        for number, command in enumerate(family.clients):
            if point_id in command.values:
                return [number, *command.values[point_id]]
    return []


def _said(row: PointRow) -> list[str]:
    """Return the findings with what to do, and what mono served."""
    record = row.record
    said = [
        f"{found.level} {found.code}: {found.sentence}"
        + (f" → {CODES[found.code].action}" if found.code in CODES else "")
        for found in record.findings
    ]
    said += row.faults
    if record.point.arm.axes.mono != "on":
        return said
    refused = record.counters.mono_refusals if record.counters else {}
    by_most = sorted(refused.items(), key=lambda item: -item[1])
    return [*said, mono_words(record.counters), *(_refused(*item) for item in by_most)]


def _refused(code: str, steps: int) -> str:
    meaning = f" ({CODES[code].meaning})" if code in CODES else ""
    return f"{steps:,} steps not by mono: {code}{meaning}"


def _facts(row: PointRow) -> list[str]:
    record = row.record
    facts = [
        f"run {record.attempt.run_id}, attempt {record.attempt.number}",
        f"curve {record.point.curve_id[:8]}",
        f"series {record.point.series_id[:8]}",
    ]
    seen = record.measurement
    if seen:
        facts += [
            f"window {duration(seen.window_s)}",
            f"{figure(seen.observed_conc)} requests in flight",
            f"{figure(seen.isl.mean)} tokens in, {figure(seen.osl.mean)} out",
        ]
        if seen.theoretical_prefix_hit_share is not None:
            facts.append(f"{percent(seen.theoretical_prefix_hit_share)} of the input sent before")
    return facts + [f"{name} {duration(s)}" for name, s in record.phases_s.items()]


def _made(row: PointRow) -> str:
    """Return what made the number: versions and machine, each point's own."""
    made = row.record.provenance
    parts = {"infx": made.infx_version, "revision": revision(made)}
    parts |= {name: plain(value) for name, value in made.host.items()} | dict(made.packages)
    return " · ".join(f"{name} {value}" for name, value in parts.items() if value)


def _files(row: PointRow) -> list[str]:
    """Return the folder that the files share, then each of them in it; the point's name and
    identity are left to the reader, so that many points say the same."""
    paths = sorted(row.record.artifacts.values())
    if not paths:
        return []
    shared = "".join(f"{part}/" for part in _shared([path.split("/")[:-1] for path in paths]))
    told = shared.replace(row.name, NAME).replace(row.anchor, IDENTITY)
    return [told, *(path[len(shared) :] for path in paths)]


def _shared(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return the parts that all lists begin with."""
    told = takewhile(lambda parts: len(set(parts)) == 1, zip(*lists, strict=False))
    return [parts[0] for parts in told]


def _repeats(row: PointRow, texts: Texts) -> list[list[Any]]:
    """Return run, repeat, throughput and interactivity of each measurement where there are more."""
    if row.runs < 2:
        return []
    seen = [(r.attempt, r.measurement) for r in row.repeats if r.measurement]
    return [
        [
            texts(attempt.run_id),
            attempt.repeat,
            figure(measured.tput_tok_s_gpu),
            figure(measured.e2e_interactivity_tok_s.p90),
        ]
        for attempt, measured in seen
    ]
