"""Two evaluations: question by question and word by word, or by their scores alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from infx.analysis.chance import POWER, SEEN, SURE
from infx.analysis.paired import PairedVerdict, pair
from infx.analysis.pairing import Pair, Seen
from infx.analysis.samples import SAMPLES, Samples, questions_differ, read_samples
from infx.analysis.unpaired import Counted, UnpairedVerdict, apart
from infx.domain.errors import ConfigError

__all__ = [
    "ComparedAnswers",
    "ScoreChange",
    "ScoresApart",
    "compare_answers",
    "compare_scores",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreChange:
    """How one filter's score changed; ``identical`` is the share of questions that both sides
    answered with the same text."""

    filter: str
    verdict: PairedVerdict
    identical: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresApart:
    """How one filter's score changed, as far as scores alone tell ("" where none is named)."""

    filter: str
    verdict: UnpairedVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedAnswers:
    """A comparison of two evaluations. ``a`` and ``b`` say what each side is, ``why`` for what
    reason they are not paired; ``changes`` holds one a filter. A verdict calls a change one below
    ``sure``, perhaps one below ``seen``; ``power`` is that of its detectable change."""

    a: str
    b: str
    basis: Literal["paired", "unpaired"]
    why: str
    changes: tuple[ScoreChange, ...] | tuple[ScoresApart, ...]
    sure: float = SURE
    seen: float = SEEN
    power: float = POWER


def compare_answers(a: Samples | Counted, b: Samples | Counted) -> ComparedAnswers:
    """Return what changed from A to B: paired where both sides know their questions.

    Raises ConfigError (``questions-differ``, ``filter-missing``) where these are not the same.
    """
    if isinstance(a, Samples) and isinstance(b, Samples):
        return ComparedAnswers(a=a.file, b=b.file, basis="paired", why="", changes=_paired(a, b))
    counts = [side for side in (a, b) if isinstance(side, Counted)]
    sides = "both sides are" if len(counts) == 2 else f"{'A' if a is counts[0] else 'B'} is"
    return ComparedAnswers(
        a=_told(a),
        b=_told(b),
        basis="unpaired",
        why=f"{sides} a score without its answers",
        changes=_apart(a, b),
    )


def compare_scores(couple: Pair) -> tuple[ScoreChange, ...] | str:
    """Return the change of each filter that scores right or wrong, or why there is none to tell."""
    before, after = (side.record.score if side.record else None for side in (couple.a, couple.b))
    if not before or not after:
        return "a side has no score"
    if before.questions_hash != after.questions_hash:
        return "the questions differ"
    try:
        return _paired(_read(couple.a), _read(couple.b))
    except ConfigError as error:
        return str(error)


def _paired(a: Samples, b: Samples) -> tuple[ScoreChange, ...]:
    if difference := questions_differ(a, b):
        raise ConfigError([difference])
    same = sum(text == b.texts[question] for question, text in a.texts.items()) / len(a.texts)
    return tuple(
        ScoreChange(filter=name, verdict=pair(right, b.filters[name]), identical=same)
        for name, right in a.filters.items()
    )


def _apart(a: Samples | Counted, b: Samples | Counted) -> tuple[ScoresApart, ...]:
    before, after = _scores(a), _scores(b)
    names = before if "" in after else after
    return tuple(
        ScoresApart(
            filter=name, verdict=apart(before.get(name) or before[""], after.get(name) or after[""])
        )
        for name in names
    )


def _scores(side: Samples | Counted) -> Mapping[str, Counted]:
    """Return the score of each filter; a bare score has none to name."""
    if isinstance(side, Counted):
        return {"": side}
    return {name: side.score(name) for name in side.filters}


def _told(side: Samples | Counted) -> str:
    return str(side) if isinstance(side, Counted) else f"{side.file} ({len(side.lines)} questions)"


def _read(side: Seen) -> Samples:
    assert side.record
    return read_samples(side.folder / side.record.artifacts.get("lm-eval", "") / SAMPLES)
