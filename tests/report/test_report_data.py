"""The report as data: what `infx report --json` prints can be read back and adds up."""

from __future__ import annotations

import json
from pathlib import Path

from infx.analysis.metrics import METRICS
from infx.domain.serial import to_plain
from infx.report.build import build, build_runs
from infx.report.data import data_of
from infx.report.model import DECIDING
from tests.report.many_points import many_plan, many_points, many_records, write_run
from tests.report.sample_runs import FACTS, sample_plan, sample_records
from tests.report.test_report_baseline import BEFORE, NOW, repeated


def test_every_point_line_and_gate_is_there() -> None:
    records = sample_records()
    model = build(records, sample_plan(records), FACTS)
    data = to_plain(data_of(model))
    assert (data["level"], data["verdict"]) == (model.level, model.verdict)
    assert [gate["name"] for gate in data["gates"]] == [gate.name for gate in model.gates]
    assert data["deciding"] == list(DECIDING)
    assert list(DECIDING) in data["charts"]
    assert [line["coverage"]["on"] for line in data["lines"]] == [3, 3]
    by_id = {point["id"]: point for point in data["points"]}
    assert len(by_id) == len(model.rows) == 8
    for row in model.rows:
        told = by_id[row.record.point.point_id]
        assert told["valid"] is row.valid
        assert told["repro"] == f"infx repro {told['id'][:8]}"
        assert [tuple(pair) for pair in told["frontiers"]] == sorted(row.frontiers)
        assert set(told["figures"]) == set(row.figures)
        for key, shown in told["figures"].items():
            assert shown["value"] == row.figures[key].value
            assert data["metrics"][key]["unit"] == METRICS[key].unit
    assert sum(n for kind, n in data["ledger"].items() if kind != "candidates") == 14
    assert [score["state"] for score in data["scores"]] == ["ok", "ok"]
    assert data["baseline"] is None
    json.dumps(data, allow_nan=False)


def test_the_baseline_is_there_with_each_change() -> None:
    points = many_points(20)
    model = build_runs([repeated(NOW, points)], [repeated(BEFORE, points[:18], gain=0.8)])
    data = to_plain(data_of(model))
    changed = [point for point in data["points"] if point["baseline"]]
    assert len(changed) == data["baseline"]["compared"] == 18
    assert {point["baseline"][DECIDING[1]]["verdict"] for point in changed} == {"better"}
    assert len(data["baseline"]["added"]) == 2
    assert data["lines"][0]["band"]["low"]
    assert 0 <= data["points"][0]["chance"] <= 1


def test_a_written_run_reads_back(tmp_path: Path) -> None:
    from infx.store import FILE, Store, read_run

    points = many_points(30)
    records = many_records(points, repeats=2)
    folder = write_run(tmp_path, points, records, many_plan(points, 2))
    with Store(tmp_path / FILE) as store:
        kept = store.records(folder.name)
    assert sorted((r.point.point_id, r.attempt.repeat) for r in kept) == sorted(
        (r.point.point_id, r.attempt.repeat) for r in records
    )
    assert len(read_run(folder)[1].points) == 30


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/report.md").read_text(encoding="utf-8")
    points = many_points(10)
    data = to_plain(data_of(build_runs([repeated(NOW, points)], [repeated(BEFORE, points)])))
    keys = {*data, *data["points"][0], *data["lines"][0], *data["baseline"]}
    assert {key for key in keys if f"`{key}`" not in page} == set()
