"""The rules of the changelog that need more than one entry: links, keys, what was there before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from infx.changelog.entry import PLACEHOLDER, Changelog, Entry
from infx.changelog.history import LINK, History, history_of
from infx.config.suggestions import did_you_mean
from infx.domain.findings import Finding
from infx.domain.point import Point

__all__ = ["additions", "append_only_findings", "check"]

_FATAL = ("not-utf8", "yaml-syntax", "history-changed", "mixed-change")
"""What is no matter of an entry's own: an error wherever it stands."""


def check(
    head: Changelog,
    *,
    known: Collection[str] | None = None,
    base: str | None = None,
    pr_link: str = "",
) -> tuple[Finding, ...]:
    """Return all that is wrong with ``head``, in the order of lines.

    ``known`` are the entries of all matrices (None: keys are not judged). ``base`` is the file as
    it was before: its entries must stand there byte for byte but for links made canonical, what was
    wrong with them already is a warning, and new entries may have a placeholder for a link or else
    ``pr_link``, where it is given. Without ``base`` every link must be canonical, and keys that
    name nothing any more are warnings.
    """
    history = history_of(head.text if base is None else base, head.text, head.file)
    new = {block.line for block in history.added}
    found = [*head.findings, *history.findings, *_mixed(head, history)]
    for entry in head.entries:
        fresh = entry.where.line in new
        found += _link(entry, fresh, pr_link)
        found += _keys(entry, fresh, known)
    if base is not None:
        found = [_softened(finding, history.boundary) for finding in found]
    return tuple(sorted(found, key=_place))


def additions(base: str, head: Changelog) -> tuple[Entry, ...]:
    """Return the entries of ``head`` that follow those of ``base``; they alone select what runs."""
    lines = {block.line for block in history_of(base, head.text, head.file).added}
    return tuple(entry for entry in head.entries if entry.where.line in lines)


def append_only_findings(
    entry: Entry, before: Sequence[Point], after: Sequence[Point]
) -> tuple[Finding, ...]:
    """Return what ``entry`` may not do under append-only: points gone (or changed, which is the
    same: they are told by their content), and new ones on no curve that had the same image.

    ``before`` and ``after`` are all points of the plans of the base and of the head.
    """
    was = [point for point in before if entry.selects(point.entry)]
    now = [point for point in after if entry.selects(point.entry)]
    held, curves = {p.point_id for p in now}, {_curve(p) for p in was}
    stood = {p.point_id for p in was}
    gone = [
        Finding("point-removed", "error", f"{p.label} is not there any more", entry.where)
        for p in was
        if p.point_id not in held
    ]
    strange = [
        Finding("curve-differs", "error", f"{p.label} is on no curve that was there", entry.where)
        for p in now
        if p.point_id not in stood and _curve(p) not in curves
    ]
    return (*gone, *strange)


def _curve(point: Point) -> tuple[str, str, str]:
    """Return what a reader sees as one line: the scenario of an entry, at one image."""
    return point.entry, type(point.workload).__name__, point.arm.image


def _link(entry: Entry, fresh: bool, pr_link: str) -> Iterator[Finding]:
    link = entry.pr_link
    if fresh and link in (PLACEHOLDER, pr_link):
        return
    if fresh and pr_link:
        sentence = f"the link of a new entry is `{link}`, not {pr_link} or {PLACEHOLDER}"
    elif not LINK.fullmatch(link):
        sentence = f"`{link}` is no canonical link of a pull request"
    else:
        return
    yield Finding("link-form", "error", sentence, entry.link_where)


def _keys(entry: Entry, fresh: bool, known: Collection[str] | None) -> Iterator[Finding]:
    if known is None:
        return
    for key in entry.keys:
        if key.text not in known and not ("*" in key.text and key.named(known)):
            hint = did_you_mean(key.text, sorted(known)) if fresh else None
            sentence = f"`{key.text}` names no entry of a matrix"
            found = Finding("key-unmatched", "warning", sentence, key.where, hint or "")
            yield replace(found, level="error") if fresh else found


def _mixed(head: Changelog, history: History) -> Iterator[Finding]:
    """Yield corrections beside new entries, and new entries of which only some are append-only."""
    for block in history.corrected if history.added else ():
        sentence = "the link is corrected here, and new entries stand below"
        where = next(e.link_where for e in head.entries if e.where.line == block.line)
        yield Finding("mixed-change", "error", sentence, where)
    lines = {block.line for block in history.added}
    new = [entry for entry in head.entries if entry.where.line in lines]
    for entry in new if any(entry.append_only for entry in new) else ():
        if not entry.append_only:
            sentence = "a new entry without append-only stands beside one with it"
            yield Finding("mixed-change", "error", sentence, entry.where)


def _softened(finding: Finding, boundary: int) -> Finding:
    """Return what was wrong already as a warning: history cannot be mended."""
    stood = finding.where is not None and finding.where.line < boundary
    return replace(finding, level="warning") if stood and finding.code not in _FATAL else finding


def _place(finding: Finding) -> tuple[int, int]:
    return (finding.where.line, finding.where.col) if finding.where else (0, 0)
