"""One bundle a check that fails it and no other: the public case with one thing made wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from infx.ci.diff import identity
from infx.domain.acceptance import Acceptance
from infx.domain.identity import content_id
from infx.domain.point import Agentic, Point
from infx.domain.record import FilterScore, PointRecord
from infx.domain.status import Status
from infx.review.bundle import Bundle, CheckRun, DraftLayer
from tests.review.minimax_m3 import KEY, RECIPE, minimax_m3

__all__ = ["FAILING", "corrected", "with_diff", "with_points", "with_records"]

Change = Callable[[PointRecord], PointRecord]


def corrected() -> Bundle:
    """Return the public case with a text that holds, so that every check passes."""
    bundle = minimax_m3()
    body = bundle.pull_request.body.replace("nightly_202610061452", "nightly_202610070333")
    body = body.replace("0.1.7.dev58+g08735170a", "0.1.7.dev60+g7fc0926c6")
    body = body.replace("GPU sweep pending", "The sweep passed in run 37598205362")
    return replace(bundle, pull_request=replace(bundle.pull_request, body=body))


def with_diff(bundle: Bundle, line: str, file: str = RECIPE) -> Bundle:
    """Return the bundle whose diff adds ``line`` to ``file``."""
    more = f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -9,0 +10 @@\n+{line}\n"
    return replace(bundle, diff=bundle.diff + more)


def with_records(bundle: Bundle, mode: str, change: Change) -> Bundle:
    """Return the bundle with ``change`` made to each record of ``mode``."""
    records = [change(r) if r.point.mode == mode else r for r in bundle.records]
    return replace(bundle, records=tuple(records))


def with_points(bundle: Bundle, change: Callable[[Point], Point]) -> Bundle:
    """Return the bundle with ``change`` made to each throughput point, planned and measured so."""
    made: dict[str, str] = {}

    def changed(record: PointRecord) -> PointRecord:
        point = change(record.point)
        made[record.point.point_id] = content_id(identity(point))
        return replace(record, point=replace(point, point_id=made[record.point.point_id]))

    bundle = with_records(bundle, "throughput", changed)
    head = tuple(replace(p, point_id=made[p.point_id]) for p in bundle.points.head)
    return replace(bundle, points=replace(bundle.points, head=head))


def _no_owner(bundle: Bundle) -> Bundle:
    return replace(bundle, codeowners=bundle.codeowners.replace("@seungrokj", "@another-owner"))


def _failed_job(bundle: Bundle) -> Bundle:
    (run,) = bundle.runs
    failed = CheckRun(name="agentic / tp4-c8", kind="throughput", conclusion="failure")
    return replace(bundle, runs=(replace(run, checks=(*run.checks, failed)),))


def _low_score(bundle: Bundle) -> Bundle:
    def lower(record: PointRecord) -> PointRecord:
        assert record.score
        filters = {name: FilterScore(score=0.85, stderr=0.01) for name in record.score.filters}
        return replace(record, score=replace(record.score, filters=filters))

    return with_records(bundle, "evaluation", lower)


def _no_upstream(bundle: Bundle) -> Bundle:
    """The rules ask for ATOM's own documentation as for vLLM's."""
    rules = "version: 2\nfirst-class: [vllm, sglang]\nupstream-images: {}\ndocumented: [atom]\n"
    return replace(bundle, rules={"engines": rules})


def _stranger_reuses(bundle: Bundle) -> Bundle:
    reuse, *others = bundle.comments
    return replace(bundle, comments=(replace(reuse, association="CONTRIBUTOR"), *others))


def _unchecked(bundle: Bundle) -> Bundle:
    reuse, signed = bundle.comments
    body = signed.body.replace("- [x]", "- [ ]", 1)
    return replace(bundle, comments=(reuse, replace(signed, body=body)))


def _first_of_all(bundle: Bundle) -> Bundle:
    """The entry was of other hardware, and vLLM's came nowhere before it."""
    atom, _ = bundle.entries.base
    base = (replace(atom, hardware="mi325x"),)
    return replace(bundle, entries=replace(bundle.entries, base=base))


def _deprecated(bundle: Bundle) -> Bundle:
    rules = "version: 2\nmodels:\n  minimaxm3:\n    scenarios: {agentic: deprecated}\n"
    return replace(bundle, rules={"model-status": rules})


def _overrides(bundle: Bundle) -> Bundle:
    return with_diff(bundle, "  hf-overrides: '{\"text_config\": {}}'")


def _no_template(bundle: Bundle) -> Bundle:
    def plain(point: Point) -> Point:
        assert isinstance(point.workload, Agentic)
        return replace(point, workload=replace(point.workload, use_chat_template=False))

    return with_points(bundle, plain)


def _patched(bundle: Bundle) -> Bundle:
    return with_diff(bundle, "  pre: git apply /fixes/mono.patch")


def _typed_length(bundle: Bundle) -> Bundle:
    def longer(point: Point) -> Point:
        acceptance = Acceptance("synthetic", 3.4, "min-variance", "minimaxm3_eagle3_gqa", "on", 3)
        return replace(point, arm=replace(point.arm, acceptance=acceptance))

    return with_points(bundle, longer)


def _point_removed(bundle: Bundle) -> Bundle:
    (addition,) = bundle.changelog
    gone = replace(bundle.points.base[0], name="tp4-c60", point_id="6" * 64)
    same = tuple(bundle.points.head[:5])
    return replace(
        bundle,
        changelog=(replace(addition, append_only=True),),
        points=replace(bundle.points, base=(gone, *same)),
    )


def _lowered_draft(bundle: Bundle) -> Bundle:
    (draft,) = bundle.drafts
    lowered = DraftLayer(name="fc", stored="bf16", effective="fp8")
    return replace(bundle, drafts=(replace(draft, layers=(*draft.layers, lowered)),))


def _all_invalid(bundle: Bundle) -> Bundle:
    status = Status("invalid", "acceptance-off", "realised 2.1")
    return with_records(bundle, "throughput", lambda record: replace(record, status=status))


def _wrong_figure(bundle: Bundle) -> Bundle:
    body = bundle.pull_request.body + "\nGSM8K is 0.981.\n"
    return replace(bundle, pull_request=replace(bundle.pull_request, body=body))


FAILING: dict[int, tuple[Callable[[Bundle], Bundle], str]] = {
    0: (_no_owner, "does not own"),
    1: (_failed_job, "agentic / tp4-c8 failure"),
    2: (_low_score, "below the bar of 0.9"),
    3: (_no_upstream, f"upstream recipe of {KEY}"),
    4: (_stranger_reuses, "by nobody who may"),
    5: (_unchecked, "latest is not checked"),
    6: (_first_of_all, "no vllm or sglang entry"),
    7: (_deprecated, "agentic is deprecated"),
    8: (_overrides, "hf-overrides"),
    9: (_no_template, "no chat template"),
    10: (_patched, "git apply"),
    11: (_typed_length, "injected 3.4, golden is 2.78"),
    12: (_point_removed, "tp4-c60 is gone"),
    13: (_lowered_draft, "ships bf16 and runs fp8"),
    14: (_all_invalid, "no valid point"),
    15: (_wrong_figure, "0.981"),
}
"""Number of the check -> what makes it fail, and words of the sentence that says so."""
