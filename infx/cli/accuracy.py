"""infx accuracy: did an evaluation change, question by question, and what would have been seen."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.analysis.answers import ComparedAnswers, ScoreChange, ScoresApart
    from infx.analysis.paired import PairedVerdict
    from infx.analysis.samples import Samples
    from infx.analysis.unpaired import Counted, UnpairedVerdict

__all__ = ["register"]

_SIDE = "a samples file of lm-eval, its folder, or a score: 1199/1319, 0.909/1319"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("accuracy", help="Say whether two evaluations differ, and how sure that is.")(
        _accuracy
    )


def _accuracy(
    a: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    b: Annotated[str, typer.Argument(metavar="B", help="the same of the other side")],
    as_json: Json = False,
) -> int:
    from infx.analysis.answers import compare_answers
    from infx.cli.output import emit

    found = compare_answers(_side(a), _side(b))
    if as_json:
        emit("accuracy", found)
    else:
        _show(found)
    return 0


def _side(text: str) -> Samples | Counted:
    import os
    from pathlib import Path

    from infx.analysis.samples import find_samples, read_samples
    from infx.analysis.unpaired import counted

    score = None if os.path.exists(text) else counted(text)  # noqa: PTH110 - False for any text
    return score or read_samples(find_samples(Path(text)))


def _show(found: ComparedAnswers) -> None:
    from infx.cli.output import table

    print(f"A  {found.a}\nB  {found.b}\n{_basis(found)}\n")
    told = ("LOST, WON", "DISCORDANT") if found.basis == "paired" else ("Z",)
    rows = [_row(change) for change in found.changes]
    table(("FILTER", "A", "B", "CHANGE", *told, "P", "DETECTABLE", "VERDICT"), rows)
    print()
    for line in (*_sentences(found), *_notes(found)):
        print(textwrap.fill(line, 100, subsequent_indent="  ", break_on_hyphens=False))


def _basis(found: ComparedAnswers) -> str:
    if found.basis == "unpaired":
        return f"Unpaired, since {found.why}: two-sample z test."
    questions = found.changes[0].verdict.questions
    return f"Paired: the same {questions} questions on both sides, exact McNemar test."


def _row(change: ScoreChange | ScoresApart) -> tuple[object, ...]:
    from infx.analysis.chance import shown, words

    verdict = change.verdict
    scores = zip((verdict.before, verdict.after), verdict.stderrs, strict=True)
    return (
        change.filter,
        *(f"{score:.4f} ± {stderr:.4f}" for score, stderr in scores),
        f"{100 * (verdict.after - verdict.before):+.1f} pp",
        *_evidence(verdict),
        shown(verdict.p).removeprefix("= "),
        None if verdict.detectable is None else f"{100 * verdict.detectable:.1f} pp",
        words(verdict.change),
    )


def _evidence(verdict: PairedVerdict | UnpairedVerdict) -> tuple[str, ...]:
    from infx.analysis.paired import PairedVerdict

    if isinstance(verdict, PairedVerdict):
        return f"-{verdict.lost} +{verdict.won}", _percent(verdict.discordance)
    return (f"{verdict.z:.1f}",)


def _sentences(found: ComparedAnswers) -> list[str]:
    from infx.analysis.answers import ScoreChange
    from infx.analysis.chance import reason, words

    told = [
        f"{change.filter or 'A → B'}: {words(verdict.change)}: "
        f"{reason(verdict.change, verdict.p, verdict.detectable)}."
        for change in found.changes
        if (verdict := change.verdict)
    ]
    same = {c.identical for c in found.changes if isinstance(c, ScoreChange)}
    return told + [f"Agreement: {_percent(share)} of answers are the same text." for share in same]


def _notes(found: ComparedAnswers) -> list[str]:
    from infx.analysis.chance import LEVELS, REACH

    power = f"{found.seen:g} in {_percent(found.power)} of cases"
    detectable = f"± is one standard error. Detectable: the change that is seen at {power}"
    if found.basis == "unpaired":
        how = f"{REACH:.2f} pooled standard errors (normal law)."
        return [LEVELS, f"{detectable}: {how} Pairing by samples files detects less."]
    return [LEVELS, f"{detectable}, with as many discordant answers as here (Connor 1987)."]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace(".0 %", " %")
