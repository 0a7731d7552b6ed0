"""infx report as a command: which runs it takes, what it writes, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.store import FILE, Store
from tests.cli.commands import as_json, here
from tests.report.many_points import STARTED_S, many_plan, many_points, many_records, write_run

FIRST, SECOND, BROKEN = "20261128-0900-first", "20261129-1740-second", "20261127-0800-broken"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reported")
    points = many_points(20)
    for n, (name, some) in enumerate({FIRST: points[:18], SECOND: points}.items()):
        records = many_records(some, run_id=name, repeats=2, faults=False, gain=1 + n / 5)
        write_run(folder, some, records, many_plan(some, 2), name, STARTED_S + 86_400 * n)
    write_run(folder, points, [], many_plan(points), BROKEN, STARTED_S - 86_400)
    return folder


def report(results: Path, *arguments: object):  # type: ignore[no-untyped-def]
    return here("report", *arguments, "--results", results)


def test_the_last_run_is_reported_into_its_folder(results: Path) -> None:
    done = report(results)
    assert done.returncode == 0, done.stderr
    verdict, path = done.stdout.splitlines()
    assert verdict.startswith("20 of 20 throughput points valid")
    assert Path(path) == results / "runs" / SECOND / "report.html"
    assert SECOND in Path(path).read_text()


def test_two_runs_are_one_report(results: Path, tmp_path: Path) -> None:
    done = report(results, FIRST, SECOND, "-o", tmp_path / "r.html", "--md", "--json")
    assert done.returncode == 0, done.stderr
    data = as_json(done)["data"]
    assert [run["run_id"] for run in data["runs"]] == [FIRST, SECOND]
    assert [point["runs"] for point in data["points"]] == [4] * 18 + [2] * 2
    assert data["files"] == [str(tmp_path / "r.html"), str(tmp_path / "r.md")]
    for name in (FIRST, SECOND):
        assert name in (tmp_path / "r.html").read_text()
        assert f"| {name} |" in (tmp_path / "r.md").read_text()


def test_a_baseline_stands_beside(results: Path, tmp_path: Path) -> None:
    done = report(results, SECOND, "--baseline", FIRST, "-o", tmp_path / "r.html", "--json")
    assert done.returncode == 0, done.stderr
    data = as_json(done)["data"]
    assert data["baseline"]["runs"][0]["run_id"] == FIRST
    assert data["baseline"]["compared"] == 18
    assert len(data["baseline"]["added"]) == 2
    assert f"Against {FIRST}, 18 points compared. Throughput: better on all 18" in data["verdict"]


def test_prices_are_those_of_the_project(results: Path, tmp_path: Path) -> None:
    done = report(results, SECOND, "-o", tmp_path / "r.html", "--json")
    data = as_json(done)["data"]
    assert data["prices"]["mi355x"]["usd_gpu_hour"] > 0
    assert data["prices"]["mi355x"]["source"]
    assert "usd_per_m_tokens" in data["points"][0]["figures"]


@pytest.mark.parametrize("arguments", [(FIRST, FIRST), ("last", "--baseline", SECOND)])
def test_a_run_is_named_once(results: Path, arguments: tuple[str, ...]) -> None:
    done = report(results, *arguments)
    assert done.returncode == 2
    assert "is named twice" in done.stderr


def test_an_unknown_run_is_refused_with_the_nearest(results: Path) -> None:
    done = report(results, FIRST, "--baseline", f"{SECOND}x")
    assert done.returncode == 2
    assert f"did you mean `{SECOND}`" in done.stderr


def test_a_run_without_a_record_is_an_explained_report(results: Path, tmp_path: Path) -> None:
    done = report(results, BROKEN, "-o", tmp_path / "r.html", "--md")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("No valid throughput point: nothing was measured.")
    assert "20 not run" in (tmp_path / "r.md").read_text()


@pytest.mark.parametrize("name", ["plan.json", "run.json"])
def test_a_truncated_file_of_a_run_is_named(results: Path, tmp_path: Path, name: str) -> None:
    path = results / "runs" / BROKEN / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    try:
        done = report(results, BROKEN, "-o", tmp_path / "r.html")
    finally:
        path.write_bytes(whole)
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert "truncated" in done.stderr
    assert not (tmp_path / "r.html").exists()


def test_a_folder_that_is_gone_is_named(results: Path, tmp_path: Path) -> None:
    folder = results / "runs" / BROKEN
    folder.rename(tmp_path / "elsewhere")
    try:
        done = report(results, BROKEN, "-o", tmp_path / "r.html")
    finally:
        (tmp_path / "elsewhere").rename(folder)
    assert (done.returncode, "not-a-run" in done.stderr) == (2, True)
    assert str(folder) in done.stderr


def test_a_record_that_cannot_be_read_names_the_store(results: Path, tmp_path: Path) -> None:
    points = many_points(1)
    records = many_records(points, run_id=FIRST)
    write_run(tmp_path, points, records, many_plan(points), FIRST)
    with Store(tmp_path / FILE) as store:
        store._db.execute("UPDATE points SET record = substr(record, 1, 200)")
    done = report(tmp_path, FIRST)
    assert done.returncode == 2
    assert FILE in done.stderr
    assert "truncated" in done.stderr


@pytest.mark.slow
def test_files_beside_the_page(results: Path, tmp_path: Path) -> None:
    done = report(results, "-o", tmp_path / "r.html", "--png", "--md")
    assert done.returncode == 0, done.stderr
    assert [Path(path).name for path in done.stdout.splitlines()[1:]] == [
        "r.html", "r.png", "r.md",
    ]  # fmt: skip
    assert all((tmp_path / name).stat().st_size for name in ("r.html", "r.png", "r.md"))


def test_what_is_not_installed_is_said(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_matplotlib(*_: object) -> None:
        raise ModuleNotFoundError(name="matplotlib")

    monkeypatch.setattr("infx.report.png.write_png", without_matplotlib)
    done = report(results, "-o", tmp_path / "r.html", "--png")
    assert (done.returncode, "--png needs matplotlib" in done.stderr) == (2, True)
    assert "pip install 'infx[png]'" in done.stderr
