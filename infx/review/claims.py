"""Check 15: what the text says is what the change does. Each claim is read and derived again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infx.review.bundle import Bundle, Entry
from infx.review.claim import Claim, Reader
from infx.review.facts import affected, affected_runs
from infx.review.figures import FIGURES
from infx.review.result import Evidence, Said, Verdict
from infx.review.rules import Rules

__all__ = ["claims", "stale", "text_agrees"]

# Nothing here may take longer than a line is long: anyone writes a pull request's text.
_IMAGE = re.compile(r"(?<![\w./-])(\w[\w./-]*+):(\w[\w.-]*)|\b(nightly[_-][\w.-]*)")
_DIGEST = re.compile(r"\bsha256:([0-9a-f]{7,64})")
_VERSION = re.compile(r"(?<![\w.])(\d++(?:\.\d++){1,5}\.dev\d++\+g[0-9a-f]{7,40}(?:\.\w++)*+)")
_COMMIT = r"`?([0-9a-f]{7,40})`?"
_RANGE = re.compile(rf"\bbetween\s+{_COMMIT}\s+and\s+{_COMMIT}|{_COMMIT}\s*\.{{2,3}}\s*{_COMMIT}")
_PENDING = re.compile(
    r"\b(?:\w++[ \t]++){0,2}(?:sweep|validation|evaluations?|results?)"
    r"(?:[ \t]+(?:validation|is|are|still))*"
    r"[ \t]+(?:pending|running|not (?:yet )?(?:run|finished|started)|to follow)"
    r"|(?:pending|waiting for|awaiting)[ \t]+(?:the[ \t]+)?(?:gpu[ \t]+)?"
    r"(?:sweep|validation|evaluations?)",
    re.IGNORECASE,
)
_FINISHED = re.compile(
    r"\b(?:sweep|run)(?:[ \t]+[\d-]{6,})?[ \t]+(?:has[ \t]+)?"
    r"(?:passed|finished|completed|succeeded)\b",
    re.IGNORECASE,
)
_RUN = re.compile(r"\brun[ \t#]+(\d{8}-\d{4}-[\w-]+|\d{6,})", re.IGNORECASE)
_DAY = re.compile(r"\b(\d{4}) nightly\b")


def text_agrees(bundle: Bundle, rules: Rules) -> Said:
    """Nothing that the title or the body says is untrue of the change and its runs.

    A stale name is a warning; a figure that was not measured fails.
    """
    found = list(claims(bundle))
    wrong = stale(found)
    if wrong:
        verdict: Verdict = "FAIL" if any(one.figure for one in wrong) else "WARN"
        said = "; ".join(f"{one.text} (it is {one.truth})" for one in wrong)
        evidence = tuple(Evidence(one.where, f"“{one.text}”: it is {one.truth}") for one in wrong)
        return Said(verdict, f"the text says {said}", evidence)
    if not found:
        return Said("WARN", "the text names no image, version, run or figure of the change")
    evidence = tuple(Evidence(one.where, f"{one.kind}: {one.text}") for one in found)
    return Said("PASS", f"all {len(found)} claims of the text hold", evidence)


def stale(found: list[Claim]) -> list[Claim]:
    """Return the claims that do not hold, each said once."""
    wrong = {(one.kind, one.text): one for one in reversed(found) if one.truth}
    return sorted(wrong.values(), key=found.index)


def claims(bundle: Bundle) -> Iterator[Claim]:
    """Yield each claim of the title and the body, in the order of lines."""
    lines = [("pull-request.json:title", bundle.pull_request.title)]
    body = bundle.pull_request.body.splitlines()
    lines += [(f"pull-request.json:body:{n}", line) for n, line in enumerate(body, 1)]
    for where, line in lines:
        for read in _READERS:
            yield from read(line, where, bundle)


def _images(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    pinned = _pinned(bundle)
    repositories = {image.rpartition(":")[0] for image in pinned}
    for hit in _IMAGE.finditer(line):
        repository, tag = hit[1] or "", (hit[2] or hit[3]).rstrip("._-")
        if repository and repository not in repositories:
            continue
        held = any(image.rpartition(":")[2] == tag for image in pinned)
        truth = "" if held else _heads(bundle, "image")
        yield Claim("image", f"{repository}:{tag}" if repository else tag, where, truth)


def _pinned(bundle: Bundle) -> set[str]:
    """Return the images that the text may name: those of affected entries, before and after."""
    keys = {entry.key for entry in affected(bundle)}
    every = (*bundle.entries.base, *bundle.entries.head)
    return {entry.image for entry in every if entry.key in keys}


def _heads(bundle: Bundle, field: str) -> str:
    values = {str(getattr(entry, field)) for entry in affected(bundle)}
    return " or ".join(sorted(values - {""})) or "not known"


def _digests(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    known = [entry.image_digest for entry in _both(bundle) if entry.image_digest]
    for hit in _DIGEST.finditer(line):
        held = any(digest.startswith(hit[0]) for digest in known)
        yield Claim("digest", hit[0], where, "" if held else _heads(bundle, "image_digest"))


def _both(bundle: Bundle) -> list[Entry]:
    keys = {entry.key for entry in affected(bundle)}
    return [one for one in (*bundle.entries.base, *bundle.entries.head) if one.key in keys]


def _versions(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    known = {entry.version for entry in _both(bundle)}
    for hit in _VERSION.finditer(line):
        name = "".join(line[: hit.start()].rsplit(maxsplit=1)[-1:]).strip("(`*")
        engine = f"{name} " if name.lower() in _engines(bundle) else ""
        if engine or not name.isalpha():
            held = hit[1] in known
            truth = "" if held else engine + _heads(bundle, "version")
            yield Claim("version", engine + hit[1], where, truth)


def _engines(bundle: Bundle) -> set[str]:
    return {entry.framework for entry in affected(bundle)}


def _ranges(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    ends = {which: _commits(bundle, which) for which in ("base", "head")}
    for hit in _RANGE.finditer(line):
        first, last = (hit[1], hit[2]) if hit[1] else (hit[3], hit[4])
        wrong = not _among(first, ends["base"]) or not _among(last, ends["head"])
        truth = f"{'/'.join(sorted(ends['base']))} … {'/'.join(sorted(ends['head']))}"
        if ends["base"] and ends["head"]:
            yield Claim("commit range", hit[0], where, truth if wrong else "")


def _commits(bundle: Bundle, which: str) -> set[str]:
    keys = {entry.key for entry in affected(bundle)}
    entries: tuple[Entry, ...] = getattr(bundle.entries, which)
    versions = (entry.version for entry in entries if entry.key in keys)
    return {hit[1] for version in versions if (hit := re.search(r"\+g([0-9a-f]{7,40})", version))}


def _among(commit: str, known: set[str]) -> bool:
    return any(one.startswith(commit) or commit.startswith(one) for one in known)


def _progress(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    passed = [run for run in affected_runs(bundle) if run.conclusion == "success"]
    ended = f"finished: run {passed[-1].run_id} passed" if passed else ""
    for hit in _PENDING.finditer(line):
        yield Claim("pending", hit[0].strip(), where, ended)
    for hit in _FINISHED.finditer(line):
        yield Claim("finished", hit[0], where, "" if passed else "not so: no run passed")


def _runs(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    """A run that is named with a figure must be one of the bundle; others may be history."""
    known = [run.run_id for run in bundle.runs]
    for hit in _RUN.finditer(line):
        if hit[1] in known:
            yield Claim("run", hit[0], where)
        elif _FINISHED.search(line) or "sweep" in line.lower():
            yield Claim("run", hit[0], where, " or ".join(known) or "none")


def _days(line: str, where: str, bundle: Bundle) -> Iterator[Claim]:
    tags = [image.rpartition(":")[2] for image in _pinned(bundle)]
    for hit in _DAY.finditer(line):
        held = any(re.search(rf"nightly[_-]\d{{4}}{hit[1]}", tag) for tag in tags)
        yield Claim("image", hit[0], where, "" if held else _heads(bundle, "image"))


_READERS: tuple[Reader, ...] = (
    *(_images, _digests, _versions, _ranges, _days, _progress, _runs),
    *FIGURES,
)
