from __future__ import annotations

import dataclasses

import pytest

from infx.domain.acceptance import Acceptance
from infx.domain.axes import AXES, VOCABULARY, Axes, is_load, kebab, snake
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where
from infx.domain.identity import content_id
from infx.domain.point import Accuracy, Arm, FixedLengths, Model, Point
from infx.domain.record import Attempt, PointRecord
from infx.domain.serial import decode, encode, encode_pretty
from infx.domain.status import OK, PENDING, Status

MODEL = Model(name="mini", prefix="minimaxm3", precision="fp32", weights="random:0")


def arm(**given: object) -> Arm:
    fields: dict[str, object] = {
        "framework": "infx", "image": "pypi:infx", "image_digest": "", "recipe": "mini",
        "model": MODEL, "cluster": "local", "hardware": "cpu", "axes": Axes(conc=0, max_num_seqs=8),
        "acceptance": Acceptance(mode="synthetic", length=2.78, k=3), "options": {"threads": 2},
    }  # fmt: skip
    return Arm(**(fields | given))  # type: ignore[arg-type]


def point(workload: FixedLengths | Accuracy) -> Point:
    return Point(
        point_id="a" * 64, curve_id="b" * 64, series_id="c" * 64, entry="mini", name="mini-c4",
        mode="throughput", conc=4, queueing=False, arm=arm(), workload=workload,
        expressions={"max_num_seqs": "2*conc"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "workload",
    [FixedLengths(isl=64, osl=32, requests=8), Accuracy(task="gsm_mini", bars={"strict": 0.9})],
)
def test_a_record_survives_its_file(workload: FixedLengths | Accuracy) -> None:
    record = PointRecord(
        point=point(workload),
        status=Status("failed", "server-died", "the line"),
        attempt=Attempt(run_id="r", job_id="j", number=1),
        findings=(Finding("errors", "error", "7 of 12", Where("f.yaml", 3, 4)),),
    )
    for data in (encode(record), encode_pretty(record)):
        again = decode(data, PointRecord)
        assert again == record
        assert again.point.arm.arm_id == record.point.arm.arm_id


def test_a_record_of_another_version_loads_and_a_wrong_type_does_not() -> None:
    assert decode('{"state": "ok", "later": 1}', Status) == OK
    with pytest.raises(ConfigError, match=r"point\.json: bad-record .*state"):
        decode('{"state": 3}', Status, source="point.json")
    with pytest.raises(ConfigError, match="bad-record"):
        decode("{", Status)


def test_what_is_no_list_is_said_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="not a list of PointRecord") as caught:
        decode(b"{}", tuple[PointRecord, ...], source="x.json", hint="hand over a list")
    assert caught.value.findings[0].hint == "hand over a list"


def test_arm_identity_ignores_names_limits_and_load() -> None:
    base = arm()
    same = [
        arm(recipe="other", cluster="lab", start_limit_s=9, accelerators=False),
        arm(acceptance=Acceptance(mode="synthetic", length=2.78, k=3, golden="renamed")),
        arm(axes=Axes(conc=7, max_num_seqs=8)),
    ]
    other = [
        arm(image="b"),
        arm(hardware="h200"),
        arm(options={"threads": 1}),
        arm(axes=Axes(conc=0, max_num_seqs=9)),
        arm(acceptance=Acceptance()),
    ]
    assert {a.arm_id for a in same} == {base.arm_id}
    assert base.arm_id not in {a.arm_id for a in other}
    assert arm(image_digest="sha256:1").arm_id == arm(image_digest="sha256:1", image="b").arm_id


def test_computation_leaves_out_capacity_and_acceptance() -> None:
    def key(one: Arm) -> str:
        return content_id(one.computation({"threads"}))

    base = arm()
    assert key(base) == key(
        arm(axes=Axes(conc=0, max_num_seqs=1), acceptance=Acceptance(), options={})
    )
    assert key(base) != key(arm(axes=Axes(conc=0, max_num_seqs=8, mono="on")))
    assert key(base) != key(arm(options={"threads": 2, "dtype": "bf16"}))


def test_a_status_fails_closed() -> None:
    assert str(Status("failed", "server-died")) == "failed:server-died"
    assert Status("invalid", "errors").terminal
    assert OK.terminal
    assert not PENDING.terminal
    with pytest.raises(ValueError, match="needs a code"):
        Status("failed")


def test_every_axis_has_a_kind_and_a_meaning_and_a_spelling() -> None:
    for name, axis in AXES.items():
        assert axis.metadata["kind"] in ("load", "computation", "capacity")
        assert axis.metadata["about"]
        assert snake(kebab(name)) == name
    assert {name for name in AXES if is_load(name)} == {"conc", "queueing"}
    assert all(AXES[name].default in values for name, values in VOCABULARY.items())
    assert dataclasses.is_dataclass(Axes)
