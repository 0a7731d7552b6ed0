"""infx changelog: the entries that say what changed, written, checked and merged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.changelog import FILE
from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.changelog.entry import Changelog
    from infx.changelog.merge import Merged
    from infx.cli.entering import Drafted
    from infx.domain.findings import Finding

__all__ = ["register"]

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]", help=f"default: {FILE} in the project's folder", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="Entries that say what changed: add, check, merge.")
    commands.command("add", help="Write the entry of a run, or of what will be measured.")(_add)
    commands.command("check", help="Say what is wrong with a changelog: exit 1 for errors.")(_check)
    commands.command(
        "merge",
        help="Merge concurrent appends into OURS; git calls it: merge.infx-changelog.driver ="
        " infx changelog merge %O %A %B",
    )(_merge)
    app.add_typer(commands, name="changelog", no_args_is_help=True)


def _check(
    file: File = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REV|FILE",
            help="as it was before: its entries must stand there untouched",
            show_default=False,
        ),
    ] = None,
    pr_link: Annotated[
        str,
        typer.Option(
            "--pr", metavar="LINK", help="new entries link this pull request", show_default=False
        ),
    ] = "",
    append_only: Annotated[
        bool,
        typer.Option("--append-only", help="judge new entries as if each said append-only"),
    ] = False,
    as_json: Json = False,
) -> int:
    from infx.changelog.entry import read_changelog
    from infx.changelog.rules import check
    from infx.cli.changelogs import (
        appended_findings,
        base_text,
        check_link,
        known_entries,
        path_of,
        read,
    )

    if pr_link:
        check_link(pr_link)
    path = path_of(file)
    head = read_changelog(read(path), str(file or path.name))
    if base is None:
        _need_base(append_only)
        return _told(head, check(head, known=known_entries()), as_json)
    before = base_text(base, path)
    found = check(head, known=known_entries(), base=before, pr_link=pr_link)
    found += appended_findings(head, before, base, forced=append_only)
    return _told(head, found, as_json)


def _need_base(append_only: bool) -> None:
    from infx.domain.errors import UsageError

    if append_only:
        hint = "name what was there before: --base origin/main"
        raise UsageError("bad-option", "--append-only needs --base", hint=hint)


def _told(head: Changelog, found: tuple[Finding, ...], as_json: bool) -> int:
    from collections import Counter

    from infx.cli.output import emit, say, talking
    from infx.config.diagnostics import format_findings
    from infx.report.figures import count

    counts = Counter(finding.level for finding in found)
    if as_json:
        data = {"file": head.file, "entries": len(head.entries), "counts": dict(counts)}
        emit("changelog", data, ok=not counts["error"], diagnostics=found)
    else:
        lines = head.text.split("\n")
        marked = [f if f.level == "error" else _marked(f) for f in found]
        shown = format_findings(marked, lambda where: lines[where.line - 1] if where.line else None)
        with talking("stdout"):
            print(shown, end="\n" if shown else "")
        told = ", ".join(count(number, level) for level, number in sorted(counts.items()))
        of = "1 entry" if len(head.entries) == 1 else f"{len(head.entries)} entries"
        say(f"{head.file}: {of}, {told or 'nothing is wrong'}")
    return 1 if counts["error"] else 0


def _marked(finding: Finding) -> Finding:
    from dataclasses import replace

    return replace(finding, sentence=f"({finding.level}) {finding.sentence}")


def _merge(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="the common ancestor (%O)")],
    ours: Annotated[Path, typer.Argument(metavar="OURS", help="this side, written to (%A)")],
    theirs: Annotated[Path, typer.Argument(metavar="THEIRS", help="the other side (%B)")],
    ours_last: Annotated[
        bool | None,
        typer.Option(
            "--ours-last/--ours-first",
            help="whose new entries come last (default: those of the branch that is not published)",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    from infx.changelog.merge import merge
    from infx.cli.changelogs import are_ours_last, leave_to_git, text_of, write
    from infx.domain.errors import ConfigError

    try:
        texts = (text_of(base), text_of(ours), text_of(theirs))
    except ConfigError:
        leave_to_git(base, ours, theirs)
        raise
    merged = merge(*texts, ours_last=are_ours_last() if ours_last is None else ours_last)
    if isinstance(merged, tuple):
        leave_to_git(base, ours, theirs)
        return _refused(merged, as_json)
    write(ours, merged.text)
    return _merged(merged, as_json)


def _refused(found: tuple[Finding, ...], as_json: bool) -> int:
    from infx.cli.output import emit, say
    from infx.config.diagnostics import format_findings

    if as_json:
        emit("changelog", {"merged": False}, ok=False, diagnostics=found)
    else:
        say(format_findings(found, lambda _: None))
        say("infx: merge-refused: the history differs, so git's own merge stands in the file")
    return 1


def _merged(merged: Merged, as_json: bool) -> int:
    from infx.cli.output import emit, say

    if as_json:
        emit("changelog", {"merged": True, "ours": merged.ours, "theirs": merged.theirs})
    else:
        say(f"merged: {merged.ours} new entries of ours, {merged.theirs} of theirs")
    return 0


def _add(
    file: File = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--from-run",
            metavar="RUN",
            help="what a run measured: its name, or last",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REV",
            help="what the matrices plan otherwise than at this revision, before it is measured:"
            " the entry by which CI selects; that of the run takes its place",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="RUN",
            help="tell what changed since this run, what is `live`, or `none`; may be repeated"
            " (default: what is live of its entries, else their newest earlier run)",
            show_default=False,
        ),
    ] = None,
    pr_link: Annotated[
        str,
        typer.Option(
            "--pr", metavar="LINK", help="the pull request's address (default: a placeholder)"
        ),
    ] = "XXX",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print the entry, write nothing")
    ] = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.changelogs import check_link, path_of
    from infx.cli.entering import drafted
    from infx.domain.errors import UsageError

    check_link(pr_link)
    path = path_of(file)
    if (run is None) == (base is None):
        hint = "--from-run RUN: what was measured; --base REV: what will be"
        raise UsageError("bad-option", "an entry is of a run, or of what is planned", hint=hint)
    if base is not None:
        return _announce(path, base, pr_link, dry_run, as_json)
    assert run is not None
    draft = drafted(run, baseline or (), pr_link, results)
    return _enter(path, draft, pr_link, dry_run, as_json)


def _enter(path: Path, draft: Drafted, pr_link: str, dry_run: bool, as_json: bool) -> int:
    from infx.cli.changelogs import text_of, write
    from infx.cli.entering import entered
    from infx.cli.output import emit, say
    from infx.report.figures import count

    done = entered(text_of(path, missing=""), str(path), draft, pr_link)
    written = done.written and not dry_run
    if written:
        write(path, done.text)
    if as_json:
        told = {"file": str(path), "run_id": draft.run_id, "entry": draft.text}
        emit("changelog", told | {"written": written, "against": draft.against})
        return 0
    if done.written or dry_run:
        print(draft.text, end="")
        say(draft.against)
        if draft.under_way:
            left = count(draft.under_way, "measurement")
            say(f"warning: run {draft.run_id} is not over: {left} to come (infx ci wait, resume)")
    say("nothing is written" if dry_run else done.sentence)
    return 0


def _announce(path: Path, base: str, pr_link: str, dry_run: bool, as_json: bool) -> int:
    from infx.cli.announcing import announced
    from infx.cli.changelogs import text_of, write
    from infx.cli.entering import put
    from infx.cli.output import emit, say

    entry, found = announced(base, pr_link)
    done = put(text_of(path, missing=""), str(path), entry)
    written = done.written and not dry_run
    if written:
        write(path, done.text)
    if as_json:
        told = {"file": str(path), "entry": entry, "written": written}
        emit("changelog", told, diagnostics=found)
        return 0
    print(entry, end="")
    for finding in found:
        say(f"{finding.level}: {finding}")
    say("nothing is written" if dry_run else done.sentence)
    return 0
