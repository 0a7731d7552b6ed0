"""A bundle whose parts contradict each other is refused, however well its list and seal fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding
from infx.domain.record import FilterScore, PointRecord, Provenance
from infx.review.bundle import Bundle
from infx.review.reading import bundle_of
from infx.review.writing import bundle_files
from tests.review.failing import corrected, with_diff, with_records
from tests.review.minimax_m3 import ARTIFACTS, CHANGELOG, KEY, OLD, RECIPE
from tests.review.verdicts import one, verdicts


def refused(bundle: Bundle) -> tuple[str, str]:
    """The code and the sentence of the first finding."""
    with pytest.raises(ConfigError) as caught:
        bundle_of(bundle_files(bundle, ARTIFACTS), "b")
    return caught.value.findings[0].code, caught.value.findings[0].sentence


def relabelled(record: PointRecord) -> PointRecord:
    """Measured on the image of before, and said to be of the new point."""
    arm = replace(record.point.arm, image=OLD, image_digest="")
    return replace(record, point=replace(record.point, arm=arm))


def without_options(record: PointRecord) -> PointRecord:
    return replace(record, point=replace(record.point, arm=replace(record.point.arm, options={})))


@pytest.mark.parametrize("change", [relabelled, without_options])
def test_a_record_is_of_the_point_that_its_identity_names(
    change: Callable[[PointRecord], PointRecord],
) -> None:
    code, sentence = refused(with_records(corrected(), "throughput", change))
    assert code == "bad-bundle"
    assert "is another point than its identity says" in sentence


def test_a_record_that_was_found_invalid_is_not_ok() -> None:
    found = Finding("acceptance-off", "error", "realised 2.1")
    bundle = with_records(corrected(), "throughput", lambda r: replace(r, findings=(found,)))
    assert "is said to be ok, and acceptance-off was found: realised 2.1" in refused(bundle)[1]


def test_a_job_has_one_record_of_a_point() -> None:
    bundle = corrected()
    assert "has 2 records of tp4-c5" in refused(
        replace(bundle, records=(*bundle.records, bundle.records[0]))
    )[1]  # fmt: skip


def test_the_diff_shows_every_file_that_changed_and_no_other() -> None:
    bundle = corrected()
    cut = bundle.diff[: bundle.diff.index(f"diff --git a/{RECIPE}")]
    told = refused(replace(bundle, diff=cut))[1]
    assert told == f"diff.patch does not show how {CHANGELOG}, {RECIPE} changed"
    assert "changes a b/ä.py, which is not told" in refused(with_diff(bundle, "x", "a b/ä.py"))[1]


def test_names_that_git_quotes_are_read() -> None:
    bundle = corrected()
    header = 'diff --git "a/\\303\\244 \\"b\\".py" "b/\\303\\244 \\"b\\".py"\n'
    changed = (*bundle.pull_request.changed, 'ä "b".py')
    request = replace(bundle.pull_request, changed=changed)
    whole = replace(bundle, diff=bundle.diff + header, pull_request=request)
    assert bundle_of(bundle_files(whole, ARTIFACTS), "b").diff.endswith(header)


def test_a_changelog_entry_of_another_pull_request_is_foreign() -> None:
    bundle = corrected()
    (entry,) = bundle.changelog
    other = replace(entry, pr_link="https://github.com/other/repo/pull/1")
    assert refused(replace(bundle, changelog=(other,)))[0] == "foreign-run"


# What no part denies, a check sees.


@pytest.mark.parametrize("end", ["\r", "\f", "\x1c", "\u2028", "\x85"])
def test_no_end_of_a_line_but_gits_hides_what_follows(end: str) -> None:
    assert one(with_diff(corrected(), f"x: 1{end}hf-overrides: y"), 8).verdict == "FAIL"
    lost = with_diff(corrected(), f"x{f'{end}-' * 40}")
    assert one(with_diff(lost, "hf-overrides: y"), 8).verdict == "FAIL"


def test_a_filter_with_a_bar_is_scored_with_a_share() -> None:
    def only_the_better(record: PointRecord) -> PointRecord:
        assert record.score
        kept = {n: f for n, f in record.score.filters.items() if n != "strict-match"}
        return replace(record, score=replace(record.score, filters=kept))

    def of_hundred(record: PointRecord) -> PointRecord:
        assert record.score
        filters = dict.fromkeys(record.score.filters, FilterScore(score=85.0, stderr=0.9))
        return replace(record, score=replace(record.score, filters=filters))

    for change, words in (
        (only_the_better, "gsm8k-tp4-c48: strict-match has a bar and no score"),
        (of_hundred, "85 is no share"),
    ):
        found = one(with_records(corrected(), "evaluation", change), 2)
        assert (found.verdict, words in found.sentence) == ("FAIL", True)


def test_the_last_word_of_an_acceptance_counts_too() -> None:
    def longer(record: PointRecord) -> PointRecord:
        argv = (*record.provenance.server_argv, "--spec-decode-acceptance-length", "3.4")
        return replace(record, provenance=replace(record.provenance, server_argv=argv))

    found = one(with_records(corrected(), "throughput", longer), 11)
    assert (found.verdict, "length 3.4" in found.sentence) == ("FAIL", True)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (Provenance(git_revision="d" * 40), "measured at dddddddd, the run is of 4b94f096"),
        (Provenance(git_revision="4b94f096", git_dirty=True), "with changes that 4b94f096"),
    ],
)
def test_a_record_of_another_commit_is_a_warning(made: Provenance, words: str) -> None:
    def moved(record: PointRecord) -> PointRecord:
        seen = replace(record.provenance, git_revision=made.git_revision, git_dirty=made.git_dirty)
        return replace(record, provenance=seen)

    found = one(with_records(corrected(), "throughput", moved), 1)
    assert (found.verdict, words in found.sentence) == ("WARN", True)


def test_a_point_that_changes_unasked_is_a_warning() -> None:
    bundle = corrected()
    other = replace(bundle.points.head[0], entry="another", point_id="7" * 64)
    points = replace(bundle.points, head=(*bundle.points.head, other))
    found = one(replace(bundle, points=points), 1)
    assert (found.verdict, "new or changed in another: 1 point" in found.sentence) == ("WARN", True)
    (entry,) = bundle.changelog
    only = replace(bundle, changelog=(replace(entry, evals_only=True),))
    assert f"new or changed in {KEY}: 19 points" in one(only, 1).sentence


def test_a_pull_request_that_changes_no_file_has_no_owner() -> None:
    bundle = corrected()
    request = replace(bundle.pull_request, changed=())
    assert verdicts(replace(bundle, pull_request=request))[0] == "FAIL"
