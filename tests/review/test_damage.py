"""A damaged bundle never passes: bytes are refused, and evidence that lacks is missed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.errors import InfxError
from infx.domain.identity import content_id
from infx.domain.record import PointRecord, Provenance
from infx.domain.status import Status
from infx.review.bundle import Bundle
from infx.review.checks import review
from infx.review.reading import MANIFEST, PARTS, bundle_of
from infx.review.writing import bundle_files
from tests.review.failing import corrected, with_records
from tests.review.minimax_m3 import ARTIFACTS

WHOLE = dict(bundle_files(corrected(), ARTIFACTS))
NAMES = sorted(WHOLE)


def verdict(files: dict[str, bytes]) -> str:
    """What a review says, ``refused`` for what is no bundle."""
    try:
        return review(bundle_of(files, "b")).verdict
    except InfxError as error:
        return {2: "refused", 3: "refused"}[error.exit_code]


def test_what_is_not_damaged_passes() -> None:
    assert verdict(WHOLE) == "PASS"


@given(st.sampled_from(NAMES), st.integers(0, 2**40), st.integers(1, 255))
def test_a_byte_that_changes_is_refused(name: str, place: int, change: int) -> None:
    data = bytearray(WHOLE[name])
    data[place % len(data)] ^= change
    found = verdict({**WHOLE, name: bytes(data)})
    # White space between the words of the manifest is no damage.
    same = name == MANIFEST and _equal(bytes(data), WHOLE[MANIFEST])
    assert found == ("PASS" if same else "refused")


def _equal(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


@given(st.sampled_from(NAMES), st.floats(0, 1, exclude_max=True))
def test_a_file_that_is_cut_is_refused(name: str, share: float) -> None:
    cut = WHOLE[name].rstrip()
    assert verdict({**WHOLE, name: cut[: int(share * len(cut))]}) == "refused"


@given(st.sampled_from(NAMES))
def test_a_file_that_lacks_is_refused(name: str) -> None:
    assert verdict({path: data for path, data in WHOLE.items() if path != name}) == "refused"


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_files_that_are_exchanged_are_refused(one: str, other: str) -> None:
    found = verdict({**WHOLE, one: WHOLE[other], other: WHOLE[one]})
    assert found == ("PASS" if WHOLE[one] == WHOLE[other] else "refused")


def test_a_file_that_nobody_lists_is_refused() -> None:
    assert verdict({**WHOLE, "artifacts/more": b""}) == "refused"


# Evidence that lacks, in a bundle that is whole as files.

Loss = Callable[[Bundle, int], Bundle]


def each(mode: str, change: Callable[[PointRecord], PointRecord]) -> Loss:
    """One record of a mode, changed."""

    def lose(bundle: Bundle, at: int) -> Bundle:
        own = [record for record in bundle.records if record.point.mode == mode]
        if not own:
            return bundle
        chosen = own[at % len(own)]
        records = [change(r) if r is chosen else r for r in bundle.records]
        return replace(bundle, records=tuple(records))

    return lose


def ended(state: str, code: str) -> Callable[[PointRecord], PointRecord]:
    return lambda record: replace(record, status=Status(state, code, "seen"))  # type: ignore[arg-type]


def without_record(bundle: Bundle, at: int) -> Bundle:
    at %= max(1, len(bundle.records))
    return replace(bundle, records=bundle.records[:at] + bundle.records[at + 1 :])


def without_checks(bundle: Bundle, at: int) -> Bundle:
    kind = ("throughput", "evaluation")[at % 2]
    runs = (
        replace(run, checks=tuple(check for check in run.checks if check.kind != kind))
        for run in bundle.runs
    )
    return replace(bundle, runs=tuple(runs))


def without_commit(bundle: Bundle, at: int) -> Bundle:
    request = bundle.pull_request
    return replace(bundle, pull_request=replace(request, commits=request.commits[2:]))


LOSSES: dict[str, Loss] = {
    "record": without_record,
    "checks": without_checks,
    "commit": without_commit,
    "run": lambda bundle, at: replace(bundle, runs=()),
    "comment": lambda bundle, at: replace(
        bundle, comments=tuple(c for n, c in enumerate(bundle.comments) if n != at % 2)
    ),
    "draft": lambda bundle, at: replace(bundle, drafts=()),
    "golden": lambda bundle, at: replace(bundle, golden={}),
    "owners": lambda bundle, at: replace(bundle, codeowners=""),
    "changelog": lambda bundle, at: replace(bundle, changelog=()),
    "entry": lambda bundle, at: replace(bundle, entries=replace(bundle.entries, head=())),
    "plan": lambda bundle, at: replace(bundle, points=replace(bundle.points, head=())),
    "body": lambda bundle, at: replace(bundle, pull_request=replace(bundle.pull_request, body="")),
    "failed": each("throughput", ended("failed", "server-crash")),
    "cancelled": each("evaluation", ended("cancelled", "")),
    "invalid": each("throughput", ended("invalid", "acceptance-off")),
    "measurement": each("throughput", lambda record: replace(record, measurement=None)),
    "counters": each("throughput", lambda record: replace(record, counters=None)),
    "commands": each("throughput", lambda record: replace(record, provenance=Provenance())),
    "score": each("evaluation", lambda record: replace(record, score=None)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_lacks_is_missed(name: str) -> None:
    lost = LOSSES[name](corrected(), 0)
    assert verdict(dict(bundle_files(lost, ARTIFACTS))) != "PASS"


@pytest.mark.slow
@settings(max_examples=12)
@given(st.lists(st.tuples(st.sampled_from(sorted(LOSSES)), st.integers(0, 38)), min_size=1))
def test_however_much_lacks_it_never_passes(losses: list[tuple[str, int]]) -> None:
    bundle = corrected()
    for name, at in losses:
        bundle = LOSSES[name](bundle, at)
    assert verdict(dict(bundle_files(bundle, ARTIFACTS))) != "PASS"


# Parts of any shape, with a list and a seal that fit.

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20),
    st.just([]), st.just({}),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all that a JSON value holds."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    return [path, *(deeper for key in keys for deeper in places(value[key], (*path, key)))]


def altered(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The JSON value with ``new`` at a path."""
    if not path:
        return new
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = altered(value[path[0]], path[1:], new)
    return copied


def relisted(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files with a manifest that vouches for them."""
    manifest = json.loads(WHOLE[MANIFEST])
    manifest["files"] = {
        name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != MANIFEST
    }
    manifest["seal"] = content_id({k: v for k, v in manifest.items() if k != "seal"})
    return {**files, MANIFEST: json.dumps(manifest).encode()}


SMALL = {name: WHOLE[name] for name in PARTS if name != "records.json"}


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from(sorted(SMALL)), st.data())
def test_a_part_of_any_shape_is_refused_or_judged(name: str, data: st.DataObject) -> None:
    whole = json.loads(SMALL[name])
    path = data.draw(st.sampled_from(places(whole)))
    changed = json.dumps(altered(whole, path, data.draw(VALUES))).encode()
    assert verdict(relisted({**WHOLE, name: changed})) in ("refused", "PASS", "WARN", "FAIL")


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 38), st.data())
def test_a_record_of_any_shape_is_refused_or_judged(at: int, data: st.DataObject) -> None:
    records = json.loads(WHOLE["records.json"])
    path = data.draw(st.sampled_from(places(records[at % len(records)])))
    changed = altered(records, (at % len(records), *path), data.draw(VALUES))
    files = relisted({**WHOLE, "records.json": json.dumps(changed).encode()})
    assert verdict(files) in ("refused", "PASS", "WARN", "FAIL")


def test_a_part_that_is_nested_without_end_is_refused() -> None:
    deep = b"[" * 200_000
    assert verdict(relisted({**WHOLE, "comments.json": deep})) == "refused"


def test_no_record_keeps_a_measurement_that_is_no_number() -> None:
    def silent(record: PointRecord) -> PointRecord:
        found = record.measurement
        return replace(record, measurement=found and replace(found, tput_tok_s_gpu=float("nan")))

    assert review(with_records(corrected(), "throughput", silent)).verdict == "FAIL"
