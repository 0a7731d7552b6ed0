"""Checks of who says what: the code owner (0), the reuse command (4), the sign-off (5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infx.ci import events
from infx.ci.reuse import asked_for, command_in
from infx.review.bundle import Bundle, Comment
from infx.review.facts import affected_runs
from infx.review.result import Evidence, Said
from infx.review.rules import Rules, Signoff

__all__ = ["code_owner", "owners_of", "reuse_command", "sign_off", "signed"]

_COMMAND = "/reuse-sweep-run"
_ITEM = re.compile(r"^\s*[-*]\s*\[(?P<mark>[ xX])\]\s*(?P<text>.*?)\s*\.?\s*$", re.MULTILINE)
_VERSION = re.compile(r"\btemplate version (\d+)\b", re.IGNORECASE)


def code_owner(bundle: Bundle, rules: Rules) -> Said:
    """The signer owns every changed file that has owners of its own (no catch-all).

    A change of files without such owners needs any owner of them. Who is of a team, no bundle says:
    a sign-off for one by somebody whom the repository trusts is a warning.
    """
    comment = signed(bundle, rules)
    if comment is None:
        return Said(
            "FAIL", "no code owner has signed off", (Evidence("comments.json", "no sign-off"),)
        )
    if not bundle.pull_request.changed:
        return Said("FAIL", "the pull request changes no file")
    owned = {path: owners_of(bundle.codeowners, path) for path in bundle.pull_request.changed}
    own = {path: owners for path, (owners, catch_all) in owned.items() if not catch_all and owners}
    asked = own or {path: owners for path, (owners, _) in owned.items()}
    signer = f"@{comment.author}"
    lacking = [path for path, owners in asked.items() if signer.lower() not in _lower(owners)]
    if lacking:
        evidence = tuple(_owned(path, asked[path]) for path in lacking)
        if _is_trusted(comment, rules) and all(_teams(asked[path]) for path in lacking):
            teams = ", ".join(sorted({name for path in lacking for name in _teams(asked[path])}))
            sentence = f"{signer} signed off; whether they are of {teams} the bundle does not say"
            return Said("WARN", sentence, evidence)
        return Said("FAIL", f"{signer} signed off and does not own {', '.join(lacking)}", evidence)
    evidence = tuple(_owned(path, owners) for path, owners in asked.items())
    return Said("PASS", f"{signer} signed off and owns {', '.join(asked)}", evidence)


def _is_trusted(comment: Comment, rules: Rules) -> bool:
    return comment.association in rules.labels.associations


def _teams(owners: tuple[str, ...]) -> list[str]:
    return [name for name in owners if name.startswith("@") and "/" in name]


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
    allowed = rules.labels.associations
    evidence = tuple(
        Evidence(f"comments.json:{one.id}", f"@{one.author} ({one.association}): {_COMMAND} {run}")
        for one in bundle.comments
        if (run := command_in(one.body)) is not None
    )
    asked = asked_for(map(_as_event, enumerate(bundle.comments)), allowed)
    if asked is None:
        given = "by nobody who may" if evidence else "by nobody"
        sentence = f"{_COMMAND} was given {given}: one of {', '.join(allowed)} must"
        return Said("FAIL", sentence, evidence)
    measured = [one.run_id for one in affected_runs(bundle)]
    held = ", ".join(measured) or "none"
    if not measured or (asked.run and asked.run not in measured):
        which = f"run {asked.run}" if asked.run else "the newest run that fits"
        sentence = f"@{asked.author} reuses {which}; the points are of run {held}"
        return Said("FAIL", sentence, evidence)
    which = f"run {asked.run}" if asked.run else f"the newest run that fits ({held})"
    return Said("PASS", f"@{asked.author} ({asked.association}) reuses {which}", evidence)


def _as_event(numbered: tuple[int, Comment]) -> events.Comment:
    """Return a comment as CI reads it; GitHub lists them in the order of their numbers."""
    number, one = numbered
    return events.Comment(
        id=number,
        body=one.body,
        created_at=one.created_at,
        html_url="",
        author_association=one.association,
        user=events.User(login=one.author),
    )


def sign_off(bundle: Bundle, rules: Rules) -> Said:
    """The latest sign-off is of the latest template, with every item there and checked."""
    comment = signed(bundle, rules)
    if comment is None:
        asked = f"template version {rules.signoff.version}, its items each as a line: - [x] …"
        wanted = Evidence("rules/signoff.yaml", f"a code owner comments it: {asked}")
        return Said("FAIL", f"no comment begins with “{rules.signoff.opening}”", (wanted,))
    where = f"comments.json:{comment.id}"
    faults = tuple(Evidence(where, text) for text in _faults(comment, rules.signoff))
    count, latest = len(rules.signoff.items), rules.signoff.version
    if faults:
        told = f"the sign-off of @{comment.author} is not template version {latest}, all checked"
        return Said("FAIL", f"{told}: {'; '.join(e.text for e in faults)}", faults)
    sentence = f"@{comment.author} checked all {count} items of template version {latest}"
    return Said("PASS", sentence, (Evidence(where, f"template version {latest}"),))


def signed(bundle: Bundle, rules: Rules) -> Comment | None:
    """Return the latest comment that begins as a sign-off does, of one whom CODEOWNERS names where
    there is one, else of one whom the repository trusts: a stranger's takes nothing away."""
    opening = rules.signoff.opening.lower()
    made = [one for one in bundle.comments if one.body.strip().lower().startswith(opening)]
    named = bundle.codeowners.lower().split()
    by_owners = [one for one in made if f"@{one.author}".lower() in named]
    trusted = [one for one in made if _is_trusted(one, rules)]
    return max(by_owners or trusted or made, key=lambda one: one.created_at, default=None)


def _faults(comment: Comment, template: Signoff) -> Iterator[str]:
    said = _VERSION.search(comment.body)
    if not said or int(said[1]) != template.version:
        yield f"it says version {said[1] if said else 'nothing'}, the latest is {template.version}"
    marks = {found["text"]: found["mark"] != " " for found in _ITEM.finditer(comment.body)}
    for item in template.items:
        if item.text not in marks:
            yield f"{item.id} is not there"
        elif not marks[item.text]:
            yield f"{item.id} is not checked"
