"""Check 15: what the text says is what the change does. Each claim is read and derived again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from infx.review.bundle import Bundle
from infx.review.claim import Claim, Reader, claimed
from infx.review.figures import FIGURES
from infx.review.numbers import left_over, settings, workloads
from infx.review.result import Evidence, Said, Verdict
from infx.review.rules import Rules
from infx.review.texts import BODY, Line, lines_of
from infx.review.truth import Truth

__all__ = ["claims", "stale", "text_agrees", "underivable"]

# Nothing here may take longer than a line is long: anyone writes a pull request's text.
_IMAGE = re.compile(r"(?<![\w./-])(\w[\w./-]*+):(\w[\w.-]*(?:==[\w.]+)?)|\b(nightly[_-][\w.-]*)")
_ARRIVED = re.compile(r"(?:\bfrom\b.{1,120}\bto|→|->|=>)[ \t]*[`\"'(]*$")
"""What stands before the image that a change moves to, within so many characters."""
_NEAR = 160

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
_RUN = re.compile(r"\brun[ \t#]+(\d{8}-\d{4,6}-[\w-]+|\d{6,})", re.IGNORECASE)
_NAME = re.compile(r"(?<![\w.-])[A-Za-z][\w.]*+-[\w.-]*\d\b(?![\w-])")
_TOLD = 8
"""A sentence names so many numbers; the evidence has all."""

_DAY = re.compile(r"\b(\d{4}) nightly\b")


def text_agrees(bundle: Bundle, rules: Rules) -> Said:
    """Nothing that the text says is untrue of the change and its runs.

    A stale name is a warning, as is a figure that the bundle cannot derive; a figure that was not
    measured fails. Numbers of another kind that cannot be derived are named.
    """
    found = list(claims(bundle, rules))
    wrong, unknown = stale(found), underivable(found)
    evidence = (*map(_stale, wrong), *map(_unknown, unknown))
    told = _and_named(unknown)
    if wrong:
        verdict: Verdict = "FAIL" if any(one.figure for one in wrong) else "WARN"
        said = "; ".join(f"{one.text} (it is {one.truth})" for one in wrong)
        return Said(verdict, f"the text says {said}{told}", evidence)
    held = [one for one in found if one.derivable]
    if not any(one.where.startswith(BODY) for one in held):
        sentence = f"the body names no image, version, run or figure of the change{told}"
        return Said("WARN", sentence, evidence)
    evidence += tuple(Evidence(one.where, f"{one.kind}: {one.text}") for one in held)
    verdict = "WARN" if any(one.figure for one in unknown) else "PASS"
    return Said(verdict, f"all {len(held)} derivable claims of the text hold{told}", evidence)


def _stale(claim: Claim) -> Evidence:
    return Evidence(claim.where, f"“{claim.text}”: it is {claim.truth}")


def _unknown(claim: Claim) -> Evidence:
    return Evidence(claim.where, f"“{claim.text}”: not derivable from the bundle")


def _and_named(unknown: Sequence[Claim]) -> str:
    """Return ``; not derivable: 730, 17 and 4 more``, figures first; "" where all is."""
    texts = [one.text for one in sorted(unknown, key=lambda one: not one.figure)]
    more = f" and {len(texts) - _TOLD} more" if len(texts) > _TOLD else ""
    return f"; not derivable: {', '.join(texts[:_TOLD])}{more}" if texts else ""


def stale(found: Sequence[Claim]) -> list[Claim]:
    """Return the claims that do not hold, each said once."""
    return _once(one for one in found if one.truth)


def underivable(found: Sequence[Claim]) -> list[Claim]:
    """Return the claims of which the bundle says nothing, each said once."""
    return _once(one for one in found if not one.derivable)


def _once(found: Iterable[Claim]) -> list[Claim]:
    first: dict[tuple[str, str], Claim] = {}
    for one in found:
        first.setdefault((one.kind, one.text), one)
    return list(first.values())


def claims(bundle: Bundle, rules: Rules) -> Iterator[Claim]:
    """Yield each claim of the text, in the order of lines; of the title and the body each number
    that is left as one that cannot be derived."""
    truth = Truth(bundle, rules)
    for line in lines_of(bundle):
        found = [claim for read in _READERS for claim in read(line, truth)]
        told = found if line.own else [one for one in found if one.derivable]
        yield from sorted(told, key=lambda one: one.span)
        if line.own:
            yield from left_over(line, found)


def _images(line: Line, truth: Truth) -> Iterator[Claim]:
    pinned = {entry.image for entry in truth.both}
    repositories = {image.rpartition(":")[0] for image in pinned}
    tags = {image.rpartition(":")[2] for image in pinned}
    ends = {entry.image.rpartition(":")[2] for entry in truth.entries}
    for hit in _IMAGE.finditer(line.text):
        repository, tag = hit[1] or "", (hit[2] or hit[3]).rstrip("._-")
        if repository and repository not in repositories:
            continue
        span = (hit.start(), hit.end() - len(hit[2] or hit[3]) + len(tag))
        before = line.text[max(0, hit.start() - _NEAR) : hit.start()]
        known = ends if _ARRIVED.search(before) else tags
        yield claimed("image", span, line, "" if tag in known else truth.heads("image"))


def _digests(line: Line, truth: Truth) -> Iterator[Claim]:
    known = [entry.image_digest for entry in truth.both if entry.image_digest]
    for hit in _DIGEST.finditer(line.text):
        held = any(digest.startswith(hit[0]) for digest in known)
        yield claimed("digest", hit.span(), line, "" if held else truth.heads("image_digest"))


def _versions(line: Line, truth: Truth) -> Iterator[Claim]:
    known = {entry.version for entry in truth.both}
    engines = {entry.framework for entry in truth.entries}
    for hit in _VERSION.finditer(line.text):
        before = line.text[: hit.start()]
        name = "".join(before[-40:].rsplit(maxsplit=1)[-1:]).strip("(`*")
        engine = f"{name} " if name.lower() in engines else ""
        span = (hit.start() - len(engine), hit.end())
        if engine or not name.isalpha():
            held = hit[1] in known
            yield claimed("version", span, line, "" if held else engine + truth.heads("version"))


def _ranges(line: Line, truth: Truth) -> Iterator[Claim]:
    base, head = truth.commits(head=False), truth.commits(head=True)
    for hit in _RANGE.finditer(line.text):
        first, last = (hit[1], hit[2]) if hit[1] else (hit[3], hit[4])
        if base and head:
            held = _among(first, base) and _among(last, head)
            told = f"{'/'.join(sorted(base))} … {'/'.join(sorted(head))}"
            yield claimed("commit range", hit.span(), line, "" if held else told)


def _among(commit: str, known: set[str]) -> bool:
    return any(one.startswith(commit) or commit.startswith(one) for one in known)


def _progress(line: Line, truth: Truth) -> Iterator[Claim]:
    passed = [run for run in truth.runs if run.conclusion == "success"]
    ended = f"finished: run {passed[-1].run_id} passed" if passed else ""
    for hit in _PENDING.finditer(line.text):
        yield claimed("pending", hit.span(), line, ended)
    for hit in _FINISHED.finditer(line.text):
        yield claimed("finished", hit.span(), line, "" if passed else "not so: no run passed")


def _runs(line: Line, truth: Truth) -> Iterator[Claim]:
    """Yield the runs that are named: one that is said to have passed is of the bundle, another may
    be history."""
    known = [run.run_id for run in truth.bundle.runs]
    stated = bool(_FINISHED.search(line.text)) or "sweep" in line.text.lower()
    for hit in _RUN.finditer(line.text):
        told = "" if hit[1] in known or not stated else " or ".join(known) or "none"
        claim = claimed("run", hit.span(), line, told)
        yield replace(claim, derivable=hit[1] in known or stated)


def _days(line: Line, truth: Truth) -> Iterator[Claim]:
    tags = [entry.image.rpartition(":")[2] for entry in truth.both]
    for hit in _DAY.finditer(line.text):
        held = any(re.search(rf"nightly[_-]\d{{4}}{hit[1]}", tag) for tag in tags)
        yield claimed("image", hit.span(), line, "" if held else truth.heads("image"))


def _points(line: Line, truth: Truth) -> Iterator[Claim]:
    """Yield the words that look like names of points; one that is none is a slip."""
    for hit in _NAME.finditer(line.text):
        if re.sub(r"\d+", "0", hit[0]) in truth.shapes:
            told = "" if hit[0] in truth.names else "planned neither before nor after the change"
            yield claimed("point", hit.span(), line, told)


_READERS: tuple[Reader, ...] = (
    *(_images, _digests, _versions, _ranges, _days, _progress, _runs, _points),
    *(*FIGURES, settings, workloads),
)
