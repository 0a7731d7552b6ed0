"""Checks of who says what: the code owner (0), the reuse command (4), the sign-off (5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infx.review.bundle import Bundle, Comment
from infx.review.facts import affected_runs, reused
from infx.review.result import Evidence, Said
from infx.review.rules import Rules, Signoff

__all__ = ["code_owner", "owners_of", "reuse_command", "sign_off"]

_ITEM = re.compile(r"^\s*[-*]\s*\[(?P<mark>[ xX])\]\s*(?P<text>.*?)\s*\.?\s*$", re.MULTILINE)
_VERSION = re.compile(r"\btemplate version (\d+)\b", re.IGNORECASE)


def code_owner(bundle: Bundle, rules: Rules) -> Said:
    """The signer owns every changed file that has owners of its own (no catch-all).

    A change of files without such owners needs any owner of them.
    """
    signed = _signed(bundle, rules.signoff)
    if signed is None:
        return Said(
            "FAIL", "no code owner has signed off", (Evidence("comments.json", "no sign-off"),)
        )
    owned = {path: owners_of(bundle.codeowners, path) for path in bundle.pull_request.changed}
    own = {path: owners for path, (owners, catch_all) in owned.items() if not catch_all and owners}
    asked = own or {path: owners for path, (owners, _) in owned.items()}
    signer = f"@{signed.author}"
    lacking = [path for path, owners in asked.items() if signer.lower() not in _lower(owners)]
    if lacking:
        evidence = tuple(_owned(path, asked[path]) for path in lacking)
        return Said("FAIL", f"{signer} signed off and does not own {', '.join(lacking)}", evidence)
    evidence = tuple(_owned(path, owners) for path, owners in asked.items())
    return Said("PASS", f"{signer} signed off and owns {', '.join(asked)}", evidence)


def _lower(names: tuple[str, ...]) -> set[str]:
    return {name.lower() for name in names}


def _owned(path: str, owners: tuple[str, ...]) -> Evidence:
    return Evidence("CODEOWNERS", f"{path}: {' '.join(owners) or 'nobody'}")


def owners_of(codeowners: str, path: str) -> tuple[tuple[str, ...], bool]:
    """Return the owners of ``path`` by the last line that matches it, and whether that line is a
    catch-all (``*``). Patterns are GitHub's: a slash inside anchors them, folders own their files.
    """
    owners: tuple[str, ...] = ()
    catch_all = True
    for line in codeowners.splitlines():
        words = line.split("#", 1)[0].split()
        if words and _owns(words[0], path):
            owners, catch_all = tuple(words[1:]), words[0] in ("*", "/**", "**")
    return owners, catch_all


def _owns(pattern: str, path: str) -> bool:
    anchored = "/" in pattern.rstrip("/")
    inner = pattern.strip("/")
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", inner)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    body = "".join(known.get(part, re.escape(part)) for part in parts)
    start = "" if anchored else "(?:.*/)?"
    # `docs/*` owns the files of a folder and none below it.
    end = "" if inner.endswith("/*") else "(?:/.*)?"
    return re.fullmatch(f"{start}{body}{end}", path) is not None


def reuse_command(bundle: Bundle, rules: Rules) -> Said:
    """The latest reuse command by one who may give it names the run whose figures are bundled."""
    allowed = rules.evidence.reuse_associations
    commands = list(reused(bundle))
    valid = [command for command in commands if command[2] in allowed]
    evidence = tuple(
        Evidence(f"comments.json:{which}", f"@{author} ({association}): /reuse-sweep-run {run}")
        for which, author, association, run in commands
    )
    if not valid:
        given = "by nobody who may" if commands else "by nobody"
        sentence = f"/reuse-sweep-run was given {given}: one of {', '.join(allowed)} must"
        return Said("FAIL", sentence, evidence)
    _, author, association, run = valid[-1]
    measured = [one.run_id for one in affected_runs(bundle)]
    held = ", ".join(measured) or "none"
    if run and run not in measured:
        return Said("FAIL", f"@{author} reuses run {run}; the points are of run {held}", evidence)
    which = f"run {run}" if run else f"the latest passing run ({held})"
    return Said("PASS", f"@{author} ({association}) reuses {which}", evidence)


def sign_off(bundle: Bundle, rules: Rules) -> Said:
    """The latest sign-off is of the latest template, with every item there and checked."""
    signed = _signed(bundle, rules.signoff)
    if signed is None:
        return Said("FAIL", f"no comment begins with “{rules.signoff.opening}”")
    where = f"comments.json:{signed.id}"
    faults = tuple(Evidence(where, text) for text in _faults(signed, rules.signoff))
    count, latest = len(rules.signoff.items), rules.signoff.version
    if faults:
        sentence = f"the sign-off of @{signed.author} is not template version {latest}, all checked"
        return Said("FAIL", f"{sentence}: {'; '.join(e.text for e in faults)}", faults)
    sentence = f"@{signed.author} checked all {count} items of template version {latest}"
    return Said("PASS", sentence, (Evidence(where, f"template version {latest}"),))


def _signed(bundle: Bundle, template: Signoff) -> Comment | None:
    signed = [one for one in bundle.comments if template.opening.lower() in one.body.lower()]
    return max(signed, key=lambda one: one.created_at, default=None)


def _faults(signed: Comment, template: Signoff) -> Iterator[str]:
    said = _VERSION.search(signed.body)
    if not said or int(said[1]) != template.version:
        yield f"it says version {said[1] if said else 'nothing'}, the latest is {template.version}"
    marks = {found["text"]: found["mark"] != " " for found in _ITEM.finditer(signed.body)}
    for item in template.items:
        if item.text not in marks:
            yield f"{item.id} is not there"
        elif not marks[item.text]:
            yield f"{item.id} is not checked"
