"""The runs of a report as Markdown: the baseline, evaluations, what was left out, the facts."""

from __future__ import annotations

from collections.abc import Iterable

from infx.analysis.changes import VERDICTS
from infx.analysis.metrics import METRICS
from infx.report.figures import blank, clock, count, percent
from infx.report.markdown_parts import Cut, bold, folded, safe, table
from infx.report.model import Baseline, ReportModel, ScoreRow

__all__ = ["accuracy", "changed", "excluded", "runs"]


def changed(model: ReportModel, cut: Cut) -> list[str]:
    """Return what changed since the baseline: settings, points, and each figure's verdicts."""
    since = model.baseline
    if since is None:
        return []
    names = ", ".join(facts.run_id for facts in since.runs)
    told = cut.few(since.sentences, "sentences")
    parts = [bold(cut.text(f"Since {names}")), _listed(told, cut)]
    settings = list(since.settings.items())
    rows = [(text, str(number)) for text, number in cut.few(settings, "settings that differ")]
    parts += [table(("Setting", "Pairs"), rows, cut)] if rows else []
    return [*parts, *_verdicts(since, cut), *_moved(since, cut)]


def _listed(texts: Iterable[str], cut: Cut) -> str:
    return "\n".join(f"- {safe(cut.text(text))}" for text in texts)


def _verdicts(since: Baseline, cut: Cut) -> list[str]:
    rows = [
        (METRICS[key].title, *(str(counts.get(verdict, 0)) for verdict in VERDICTS))
        for key, counts in since.verdicts.items()
        if key in METRICS
    ]
    heads = ("Figure", *(verdict.replace("-", " ") for verdict in VERDICTS))
    return [table(heads, rows, cut)] if rows else []


def _moved(since: Baseline, cut: Cut) -> list[str]:
    parts = []
    for name, labels in since.moved.items():
        shown = _listed(cut.few(labels, f"points {name}"), cut)
        parts.append(folded(f"{count(len(labels), 'point')} {name}", [shown]))
    if since.left_out:
        rows = [(one.label, one.run_id, one.why) for one in cut.few(since.left_out, "not compared")]
        shown = table(("Point", "Run", "Why"), rows, cut)
        parts.append(folded(f"{count(len(since.left_out), 'point')} not compared", [shown]))
    return parts


def accuracy(model: ReportModel, cut: Cut) -> list[str]:
    """Return a row for each filter of each evaluation, and the paired changes of the baseline."""
    rows = [cells for row in cut.few(model.scores, "evaluations") for cells in _score(row)]
    heads = ("Server", "Task", "Filter", "Score ± SE", "Bar", "Empty", "Cut", "Answer")
    notes = [f"{_who(row)}: {row.note}" for row in model.scores if row.note]
    shown = _listed(cut.few(notes, "notes"), cut)
    parts = [bold("Accuracy"), table(heads, rows, cut)] if rows else []
    return [*parts, *([shown] if shown else []), *_paired(model, cut)]


def _who(row: ScoreRow) -> str:
    told = f"{row.server} in {row.run}" if row.run else row.server
    return f"{told}, reused from {row.reused}" if row.reused else told


def _score(row: ScoreRow) -> list[tuple[str, ...]]:
    score = row.score
    if not score or not row.verdicts:
        return [(_who(row), row.record.point.name, *[blank] * 5, str(row.record.status))]
    task = f"{score.task}, {score.questions} questions, {score.shots}-shot"
    return [
        (
            _who(row),
            task,
            found.filter,
            f"{found.score:.3f} ± {found.stderr:.3f}",
            blank if found.bar is None else f"{found.bar:g}",
            str(score.empty),
            str(score.cut),
            found.answer,
        )
        for found in row.verdicts
    ]


def _paired(model: ReportModel, cut: Cut) -> list[str]:
    scores = model.baseline.scores if model.baseline else ()
    rows = [
        (
            score.b,
            score.task,
            change.filter,
            f"{change.verdict.before:.3f} → {change.verdict.after:.3f}",
            f"-{change.verdict.lost} +{change.verdict.won} of {change.verdict.questions}",
            f"{change.verdict.p:.3f}",
            f"{100 * change.verdict.detectable:.1f} pp",
            percent(change.identical),
            change.verdict.change.replace("-", " "),
        )
        for score in cut.few(scores, "compared evaluations")
        for change in score.changes
    ]
    heads = (
        "Evaluation", "Task", "Filter", "Score", "Lost, won", "p (McNemar)", "Detectable",
        "Same answers", "Verdict",
    )  # fmt: skip
    return [table(heads, rows, cut)] if rows else []


def excluded(model: ReportModel, cut: Cut) -> list[str]:
    """Return by what rule candidates were left out."""
    told = [
        (f"{rule.code} {rule.text}".strip(), f"{rule.candidates:,}")
        for rule in cut.few(model.excluded_by, "rules")
    ]
    if not told:
        return []
    shown = table(("Left out by", "Candidates"), told, cut)
    return [folded(f"{model.left_out_total:,} of {model.candidates:,} candidates not run", [shown])]


def runs(model: ReportModel, cut: Cut) -> list[str]:
    """Return when each run was made, by what."""
    rows = [
        (one.run_id, clock(one.started_s), one.infx_version or blank, one.command or blank)
        for one in cut.few(model.runs, "runs")
    ]
    return [table(("Run", "Started", "infx", "Command"), rows, cut)]
