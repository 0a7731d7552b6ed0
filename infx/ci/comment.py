"""What is told in a pull request: the reviewer's checks, the plan, the report of what was run.

One comment for each mark, written again in place. GitHub takes 65,536 characters: lists are cut,
and that is said; no text is read as markup, as a link or as a mention.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from infx.ci.printed import Check, Plan, PrintedPlan, PrintedReview
from infx.domain.findings import Finding
from infx.report.markdown import markdown
from infx.report.markdown_parts import Cut, bold, folded, safe, table
from infx.report.model import ReportModel

__all__ = ["LIMIT", "Told", "comment", "hidden_mark"]

LIMIT = 65_536
"""Characters of a comment's text that GitHub takes."""

_MARK = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

_MOST = ((50, 400), (20, 200), (10, 100), (3, 60), (1, 30))
"""Entries of a list and characters of a text, the first of these with which the whole fits."""

_REPORT = 20_000
"""Characters that are kept for the report: lists of one entry always fit into as many."""

_SETTLED = ("PASS", "N/A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a comment says; what is None, or empty, is left out.

    ``head`` is the commit that all is about, ``image`` the address of a picture of the report,
    ``links`` maps words to addresses; ``notes`` are sentences that stand above everything.
    """

    head: str
    plan: PrintedPlan | None = None
    review: PrintedReview | None = None
    report: ReportModel | None = None
    image: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def idle(self) -> bool:
        """True when all it says is that nobody asks for anything: worth no comment of its own."""
        plan = self.plan.data if self.plan else None
        more = self.review or self.report or self.notes
        return bool(plan and plan.decision == "nothing" and not plan.settings and not more)


def hidden_mark(name: str) -> str:
    """Return the line that the comment of that name begins with, which readers do not see.

    Raises ValueError for a name of more than lower-case letters, digits and ``.``, ``_``, ``-``.
    """
    if not _MARK.fullmatch(name):
        raise ValueError(f"{name!r} names no comment: a-z, 0-9, . _ -, 64 of them at most")
    return f"<!-- infx ci comment: {name} -->"


def comment(mark: str, told: Told) -> str:
    """Return the comment's text, its mark first, of `LIMIT` characters at most."""
    text = ""
    for most, longest in _MOST:
        text = _whole(mark, told, Cut(most, longest))
        if len(text) <= LIMIT:
            break
    return text


def _whole(mark: str, told: Told, cut: Cut) -> str:
    above = [mark, *(bold(cut.text(note)) for note in told.notes)]
    above += [*_review(told.review, cut), *_plan(told.plan, cut), *_picture(told.image)]
    below = [f"Left out, to fit into a comment: {', '.join(cut.told)}."] if cut.told else []
    below.append(_foot(told))
    if told.report:
        room = LIMIT - len("\n\n".join([*above, *below])) - 2
        above.append(markdown(told.report, max(room, _REPORT)).rstrip("\n"))
    return "\n\n".join([*above, *below])


def _picture(address: str) -> list[str]:
    return [f"![The curves of the report](<{address}>)"] if address else []


def _foot(told: Told) -> str:
    links = [f"[{safe(words)}](<{address}>)" for words, address in told.links.items()]
    return " · ".join([f"At commit {safe(told.head[:12])}", *links])


def _review(told: PrintedReview | None, cut: Cut) -> list[str]:
    if told is None:
        return []
    if told.data is None:
        return ["### FAIL: the reviewer's checks cannot be made", *_findings(told.diagnostics, cut)]
    checks, note = told.data.checks, told.data.note
    said = ", ".join(f"{n} {verdict}" for verdict, n in Counter(c.verdict for c in checks).items())
    open_ = [check for check in checks if check.verdict not in _SETTLED]
    settled = [check for check in checks if check.verdict in _SETTLED]
    parts = [f"### {told.data.verdict}: the reviewer's checks ({said})"]
    parts += [_checks(open_, cut), *_seen(open_, cut)] if open_ else []
    parts += [folded(f"{len(settled)} PASS or N/A", [_checks(settled, cut)])] if settled else []
    return [*parts, safe(cut.text(note))] if note else parts


def _checks(checks: Sequence[Check], cut: Cut) -> str:
    rows = [(f"{c.number} {c.name}", c.verdict, c.sentence) for c in cut.few(checks, "checks")]
    return table(("Check", "", "Why"), rows, cut)


def _seen(checks: Sequence[Check], cut: Cut) -> list[str]:
    """Return what the checks were seen in, folded."""
    pairs = [(check, evidence) for check in checks for evidence in check.evidence]
    if not pairs:
        return []
    rows = [(str(c.number), e.where, e.text) for c, e in cut.few(pairs, "pieces of evidence")]
    shown = table(("Check", "Where", "What"), rows, cut)
    return [folded(f"Pieces of evidence: {len(pairs)}", [shown])]


def _plan(told: PrintedPlan | None, cut: Cut) -> list[str]:
    if told is None:
        return []
    found = _findings(told.diagnostics, cut)
    if told.data is None:
        return ["### FAIL: what is asked for cannot be planned", *found]
    head = "FAIL" if any(one.level == "error" for one in told.diagnostics) else "Plan"
    parts = [f"### {head}: {safe(cut.text(f'{told.data.decision}: {told.data.reason}'))}"]
    if not told.data.submission_valid:
        parts.append(bold("What is measured so is not valid for submission."))
    return [*parts, *found, *_jobs(told.data, cut)]


def _jobs(plan: Plan, cut: Cut) -> list[str]:
    if not plan.jobs:
        return []
    first = {canary.job_id for canary in plan.canaries}
    rows = [
        ("canary" if job.job_id in first else "", job.name, job.cluster, str(len(job.points)))
        for job in cut.few(plan.jobs, "jobs")
    ]
    shown = table(("First", "Job", "Cluster", "Points"), rows, cut)
    return [folded(f"Jobs: {len(plan.jobs)}", [shown])]


def _findings(findings: Sequence[Finding], cut: Cut) -> list[str]:
    lines = [f"- {safe(cut.text(f'{one.level}: {one}'))}" for one in cut.few(findings, "findings")]
    return ["\n".join(lines)] if lines else []
