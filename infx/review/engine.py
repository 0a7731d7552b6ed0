"""Checks of what runs: upstream recipe (3), images and order (6), status (7), chat template (9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infx.domain.point import Agentic
from infx.domain.record import PointRecord
from infx.review.bundle import Bundle, Entry, UpstreamRecipe
from infx.review.facts import affected, matches, names, said_links, speculative, throughput
from infx.review.result import Evidence, Said
from infx.review.rules import Rules

__all__ = [
    "chat_template",
    "images_and_order",
    "model_status",
    "upstream_recipe",
]


def upstream_recipe(bundle: Bundle, rules: Rules) -> Said:
    """The engine's own documentation holds the configuration of each vLLM and SGLang entry, and the
    pull request links it."""
    asked = [one for one in affected(bundle) if one.framework in rules.engines.documented]
    if not asked:
        seen = ", ".join(sorted({f"{one.key} is {one.framework}" for one in affected(bundle)}))
        which = " or ".join(rules.engines.documented)
        return Said("N/A", f"no affected entry runs {which}: {seen or 'none is affected'}")
    told = [one for one in bundle.upstream if one.entry in {entry.key for entry in asked}]
    evidence = tuple(Evidence("upstream.json", f"{o.entry}: {o.url} is {o.state}") for o in told)
    if faults := [fault for one in asked for fault in _undocumented(one, bundle, rules)]:
        return Said("FAIL", "; ".join(faults), evidence)
    links = said_links(bundle)
    unsaid = [one.url for one in told if one.url not in links]
    if unsaid:
        sentence = f"neither the pull request nor a comment links {', '.join(unsaid)}"
        return Said("WARN", sentence, evidence)
    return Said("PASS", f"upstream recipes of {', '.join(one.key for one in asked)}", evidence)


def _undocumented(entry: Entry, bundle: Bundle, rules: Rules) -> Iterator[str]:
    """Yield why no upstream recipe stands for an entry; nothing where one does."""
    official = rules.engines.documentation.get(entry.framework, ("",))
    told = [one for one in bundle.upstream if one.entry == entry.key]
    if any(_is_out(one) and matches(official, one.url) for one in told):
        return
    yield from (_why_not(one, entry, official) for one in told)
    if not told:
        linked = [url for url in sorted(said_links(bundle)) if matches(official, url)]
        hint = f"; it links {', '.join(linked)}, whose state is not told" if linked else ""
        yield f"no upstream recipe of {entry.key} is named{hint}"


def _is_out(recipe: UpstreamRecipe) -> bool:
    return recipe.state in ("published", "merged")


def _why_not(recipe: UpstreamRecipe, entry: Entry, official: Sequence[str]) -> str:
    if matches(official, recipe.url):
        return f"the upstream recipe of {entry.key} is {recipe.state}: {recipe.url}"
    return f"{recipe.url} of {entry.key} is not in the documentation of {entry.framework}"


def images_and_order(bundle: Bundle, rules: Rules) -> Said:
    """vLLM and SGLang run from upstream images; another engine's new entry comes after them."""
    entries = affected(bundle)
    if not entries:
        return Said("N/A", "no entry is affected")
    faults = [*_foreign_images(entries, rules), *_too_early(bundle, rules)]
    evidence = tuple(Evidence("entries.json", text) for text in _images_seen(bundle, rules))
    if faults:
        return Said("FAIL", "; ".join(faults), evidence)
    return Said("PASS", "; ".join(e.text for e in evidence), evidence)


def _foreign_images(entries: Sequence[Entry], rules: Rules) -> Iterator[str]:
    for one in entries:
        known = rules.engines.upstream_images.get(one.framework)
        if known is None or one.hardware in rules.engines.new_hardware:
            continue
        if _repository(one.image) not in known:
            yield f"{one.key} runs {one.image}, upstream is {' or '.join(known)}"


def _repository(image: str) -> str:
    bare = image.split("@", 1)[0].removeprefix("docker.io/")
    name, _, tag = bare.rpartition(":")
    return bare if not name or "/" in tag else name


def _too_early(bundle: Bundle, rules: Rules) -> Iterator[str]:
    for one in _new(bundle):
        late = one.framework not in rules.engines.first_class
        exempt = one.hardware in rules.engines.new_hardware
        if late and not exempt and not _firsts(one, bundle, rules):
            which = " or ".join(rules.engines.first_class)
            yield f"{one.key} is new, and no {which} entry of {one.model_prefix} on {one.hardware}"


def _new(bundle: Bundle) -> tuple[Entry, ...]:
    """Return affected entries of a model, engine and hardware that no entry at the base has."""
    known = {(one.model_prefix, one.framework, one.hardware) for one in bundle.entries.base}
    return tuple(
        one
        for one in affected(bundle)
        if (one.model_prefix, one.framework, one.hardware) not in known
    )


def _firsts(entry: Entry, bundle: Bundle, rules: Rules) -> list[Entry]:
    return [
        one
        for one in bundle.entries.base
        if one.framework in rules.engines.first_class
        and (one.model_prefix, one.hardware) == (entry.model_prefix, entry.hardware)
    ]


def _images_seen(bundle: Bundle, rules: Rules) -> Iterator[str]:
    new = _new(bundle)
    for one in affected(bundle):
        which = "is new" if one in new else "changes what is there"
        firsts = ", ".join(first.key for first in _firsts(one, bundle, rules)) or "none"
        upstream = "" if one.framework in rules.engines.upstream_images else ", no upstream rule"
        yield f"{one.key} ({one.image}{upstream}) {which}; first-class entries there: {firsts}"


def model_status(bundle: Bundle, rules: Rules) -> Said:
    """No affected model, scenario or draft is deprecated; one that is not listed is a warning."""
    entries = affected(bundle)
    if not entries:
        return Said("N/A", "no entry is affected")
    said = [_status(one, kind, rules) for one in entries for kind in one.scenarios]
    drafts = [*_unknown_drafts(bundle, rules)]
    evidence = tuple(Evidence("rules/model-status.yaml", text) for text in (*said, *drafts))
    sentence = "; ".join(e.text for e in evidence)
    if any(text.endswith("deprecated") for text in said):
        return Said("FAIL", sentence, evidence)
    fine = not drafts and all(text.endswith("active") for text in said)
    return Said("PASS" if fine else "WARN", sentence, evidence)


def _status(entry: Entry, scenario: str, rules: Rules) -> str:
    known = rules.model_status.models.get(entry.model_prefix)
    state = known.scenarios.get(scenario, "not listed") if known else "not listed"
    return f"{entry.model_prefix} {scenario} is {state}"


def _unknown_drafts(bundle: Bundle, rules: Rules) -> Iterator[str]:
    arms = {(r.point.arm.model.prefix, r.point.arm.draft) for r in throughput(bundle)}
    for prefix, draft in sorted(arms):
        known = rules.model_status.models.get(prefix)
        if draft and known and known.drafts and draft not in known.drafts:
            yield f"draft {draft} of {prefix} is not listed"


def chat_template(bundle: Bundle, rules: Rules) -> Said:
    """Servers that draft are asked through the model's chat template, as drafts are trained for."""
    drafting = speculative(throughput(bundle))
    if not drafting:
        return Said("N/A", "no measured point drafts")
    plain = [record for record in drafting if not _templated(record)]
    if plain:
        evidence = tuple(_client(record) for record in plain)
        return Said("FAIL", f"no chat template at {names(plain)}", evidence)
    sentence = f"all {len(drafting)} drafting points are asked through the chat template"
    return Said("PASS", sentence, tuple(_client(record) for record in drafting[:1]))


def _templated(record: PointRecord) -> bool:
    workload, argv = record.point.workload, record.provenance.client_argv
    if "completions" in argv and "chat" not in argv:
        return False
    if isinstance(workload, Agentic):
        return workload.use_chat_template
    return "chat" in argv


def _client(record: PointRecord) -> Evidence:
    argv = " ".join(record.provenance.client_argv) or "the client's command is not recorded"
    asked = getattr(record.point.workload, "use_chat_template", None)
    told = "" if asked is None else f"use_chat_template {str(asked).lower()}; "
    return Evidence(f"records.json:{record.point.label}", told + argv)
