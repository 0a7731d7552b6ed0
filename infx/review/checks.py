"""The sixteen checks in their order, and a review: all of them over one bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from infx.review.bundle import Bundle
from infx.review.claims import text_agrees
from infx.review.drafts import append_only, draft_as_shipped, golden_acceptance
from infx.review.engine import (
    chat_template,
    images_and_order,
    model_status,
    upstream_recipe,
)
from infx.review.measured import evaluations_pass, pareto_coverage, passing_sweep
from infx.review.people import code_owner, reuse_command, sign_off
from infx.review.result import CheckResult, Review, Said, whole
from infx.review.rules import Rules, load_rules
from infx.review.source import no_architecture_change, no_engine_patch

__all__ = ["CHECKS", "Check", "review"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check; calling it gives its result."""

    number: int
    name: str
    judge: Callable[[Bundle, Rules], Said]

    def __call__(self, bundle: Bundle, rules: Rules) -> CheckResult:
        said = self.judge(bundle, rules)
        return CheckResult(
            number=self.number,
            name=self.name,
            verdict=said.verdict,
            sentence=said.sentence,
            evidence=said.evidence,
        )


_NAMED: tuple[tuple[str, Callable[[Bundle, Rules], Said]], ...] = (
    ("code owner", code_owner),
    ("passing sweep on a commit of the pull request", passing_sweep),
    ("evaluations pass at every point, right image", evaluations_pass),
    ("upstream recipe", upstream_recipe),
    ("reuse command", reuse_command),
    ("latest sign-off template", sign_off),
    ("upstream image, engine-first order", images_and_order),
    ("model and scenario not deprecated", model_status),
    ("no architecture change", no_architecture_change),
    ("chat template with speculation", chat_template),
    ("no engine patch", no_engine_patch),
    ("golden acceptance length injected", golden_acceptance),
    ("append-only", append_only),
    ("draft runs as shipped", draft_as_shipped),
    ("Pareto coverage", pareto_coverage),
    ("text agrees with the change", text_agrees),
)

CHECKS = tuple(Check(number, name, judge) for number, (name, judge) in enumerate(_NAMED))


def review(bundle: Bundle) -> Review:
    """Return the results of all checks, by the bundle's own rules where it brings some.

    Raises ConfigError (``bad-rules``) when these cannot be read.
    """
    rules = load_rules(bundle.rules)
    results = tuple(check(bundle, rules) for check in CHECKS)
    return Review(
        repository=bundle.manifest.repository,
        pull_request=bundle.manifest.pull_request,
        head=bundle.manifest.head,
        verdict=whole(results),
        checks=results,
        note=bundle.manifest.note,
        rules=tuple(sorted(bundle.rules)),
    )
