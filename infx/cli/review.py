"""infx review: the reviewer's checks over a bundle."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.review.bundle import Bundle
    from infx.review.result import CheckResult, Review, Verdict

__all__ = ["register"]

_SHOWN = 5
_INDENT = " " * 9


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("review", help="Say of each check 0–15 whether a pull request passes it.")(_review)


def _review(
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="a bundle's folder, .zip or .tar.gz")
    ],
    strict: Annotated[bool, typer.Option("--strict", help="exit with 1 on WARN too")] = False,
    text: Annotated[
        bool, typer.Option("--body", help="print the pull request's text, from what was measured")
    ] = False,
    as_json: Json = False,
) -> int:
    from infx.cli.output import emit, talking
    from infx.review.checks import review
    from infx.review.reading import read_bundle

    whole = read_bundle(bundle)
    if text:
        return _body(whole, as_json)
    found = review(whole)
    code = found.exit_code(strict=strict)
    if as_json:
        emit("review", found, ok=not code)
    else:
        with talking("stdout"):  # a reader who leaves (`| head`) changes no verdict
            _print(found)
    return code


def _body(bundle: Bundle, as_json: bool) -> int:
    from infx.cli.output import emit
    from infx.review.body import body
    from infx.review.rules import load_rules

    told = body(bundle, load_rules(bundle.rules))
    if as_json:
        emit("review-body", {"body": told})
    else:
        print(told, end="")
    return 0


def _print(found: Review) -> None:
    """Print what needs a reader first, the worst before the rest, and the verdict last."""
    order: tuple[Verdict, ...] = ("FAIL", "WARN", "PASS", "N/A")
    for check in sorted(found.checks, key=lambda check: order.index(check.verdict)):
        _print_check(check)
    ends = Counter(check.verdict for check in found.checks)
    counts = ", ".join(f"{ends[verdict]} {verdict}" for verdict in order if ends[verdict])
    which = f"{found.repository}#{found.pull_request} at {found.head[:12]}"
    print(f"\n{found.verdict}: {which}: {counts}")
    if found.rules:
        print(f"by the repository's own rules: {', '.join(found.rules)}")
    if found.note:
        print(f"note: {found.note}")


def _print_check(check: CheckResult) -> None:
    head = f"{check.verdict:4}  {check.number:2} {check.name}: {check.sentence}"
    if check.verdict in ("PASS", "N/A"):
        print(_cut(head))
        return
    print("\n".join(wrap(head, _wide(), subsequent_indent=_INDENT, break_on_hyphens=False)))
    for evidence in check.evidence[:_SHOWN]:
        print(_cut(f"{_INDENT}- {evidence.where}: {evidence.text}"))
    if (more := len(check.evidence) - _SHOWN) > 0:
        print(f"{_INDENT}- and {more} more: --json shows all")
    print()


def _cut(line: str) -> str:
    return line if len(line) <= _wide() else line[: _wide() - 2].rstrip() + " …"


def _wide() -> int:
    """Return the columns that a line may take: those of a terminal, at most 120."""
    return min(get_terminal_size((120, 24)).columns, 120)
