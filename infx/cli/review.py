"""infx review: the reviewer's checks over a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.review.bundle import Bundle
    from infx.review.result import CheckResult, Review

__all__ = ["register"]

_SHOWN = 5


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
    from infx.cli.output import emit
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
    for check in found.checks:
        _print_check(check)
    which = f"{found.repository}#{found.pull_request} at {found.head[:12]}"
    print(f"\n{found.verdict}: {which}" + (f"\nnote: {found.note}" if found.note else ""))


def _print_check(check: CheckResult) -> None:
    print(f"{check.verdict:4}  {check.number:2} {check.name}: {check.sentence}")
    if check.verdict in ("WARN", "FAIL"):
        for evidence in check.evidence[:_SHOWN]:
            print(f"         {evidence.where}: {evidence.text}")
        if more := len(check.evidence) - _SHOWN:
            print(f"         and {more} more: --json shows all") if more > 0 else None
