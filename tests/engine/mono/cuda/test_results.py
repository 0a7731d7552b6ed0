"""The figures of docs/mono.md follow from files in benchmarks/results/cuda, all of them named."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from infx.engine.mono.cuda.floor import layer_bytes
from infx.engine.mono.cuda.report import ARMS, faults_of, figures, setting_of

ROOT = Path(__file__).resolve().parents[4]
RESULTS, PAGE = ROOT / "benchmarks/results/cuda", (ROOT / "docs/mono.md").read_text()
FILES = sorted(RESULTS.glob("*.json"))
OTHERS = {
    "100K context, fp8": "h200-100k-fp8",
    "100K context, MXFP4": "h200-100k-mxfp4",
    "8K, fp8, K=7": "h200-k7",
    "M3's first": "h200-dense",
    "M3.1's first": "h200-sparse_dense",
}


def at_widths(name: str) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """Return a result, and what it has at each width with the figures that follow."""
    found = json.loads((RESULTS / f"{name}.json").read_text())
    # The oldest are a run a width.
    runs = found.get("widths", [found])
    results = [one for run in runs for one in run["results"]]
    if "kind" in found:
        made = setting_of(found)
        results = [one | figures(one, made, found["copy_tb_s"]) for one in results]
    return found, {one["rows"]: one for one in results}


def table(heading: str, page: str = PAGE) -> list[list[str]]:
    """Return the cells of the rows below the line that begins with ``heading``."""
    lines = page[page.index(f"\n{heading}") :].split("\n\n")[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def same(cells: list[str], wanted: list[float]) -> None:
    """Compare the numbers of ``cells``, each as far as it is written."""
    written = re.findall(r"\d+(?:\.\d+)?", " ".join(cells))
    assert len(written) == len(wanted), cells
    for text, number in zip(written, wanted, strict=True):
        half = 0.5 * 10 ** -len(text.partition(".")[2])
        assert float(text) == pytest.approx(number, abs=half + 1e-9), cells


def test_the_table_of_eight_layers() -> None:
    _, results = at_widths("h200-layer")
    rows = table("| rows | union | MB | floor |")
    assert [int(cells[0]) for cells in rows] == list(results)
    for cells, one in zip(rows, results.values(), strict=True):
        times = [one[arm][name] for arm in ARMS for name in ("us", "low", "high")]
        pdl = one["mono_pdl"]["us"]
        megabytes, share = one["bytes"] / 1e6, 100 * one["share_of_floor"]["mono_pdl"]
        ratios = [made["ratio"] for made in one["ratios"].values()]
        numbers = [one["rows"], one["union"], megabytes, one["floor_us"], *times]
        same(cells, [*numbers, megabytes / pdl, share, *ratios, *one["targets_us"]])


def test_the_table_of_other_settings() -> None:
    name = ""
    for what, rows, *cells in table("| other settings, µs a layer |"):
        name = next((file for start, file in OTHERS.items() if what.startswith(start)), name)
        one = at_widths(name)[1][int(rows)]
        times = [one[arm]["us"] for arm in ARMS]
        same(cells, [one["floor_us"], *times, one["ratios"]["pdl/pdl"]["ratio"]])


def test_the_table_of_kernels() -> None:
    _, results = at_widths("h200-layer")
    for cells in table("| rows | qkv | scores |"):
        one = results[int(cells[0])]
        reads = [one["reads"][name]["us"] for name in ("qkv", "o", "up", "down")]
        same(cells[1:], [made["us"] for made in one["stages"].values()] + reads)


def test_the_table_since() -> None:
    _, results = at_widths("variants/words-awaited")
    rows = table("| rows | unfused |", PAGE[PAGE.index("### Since the tables") :])
    assert [int(cells[0]) for cells in rows] == list(results)
    for cells, one in zip(rows, results.values(), strict=True):
        assert not one["check"]["faults"]
        plain, pdl, mono, mono_pdl = (one[arm]["us"] for arm in ARMS)
        same(cells[1:6], [plain, pdl, mono, mono_pdl, plain / mono, pdl / mono_pdl])


@pytest.mark.parametrize(("number", "least"), [(0, 20), (1, 15)], ids=["first", "later"])
def test_the_tables_of_variants(number: int, least: int) -> None:
    heading = "| variant | 1 row | 16 rows | | file |"
    page = "\n" + heading + PAGE.split(heading)[number + 1]
    seen = 0
    for _, one_row, sixteen, _, files in table(heading, page):
        name = files.partition("`")[2].partition("`")[0]
        if "." in name.removeprefix("../") or not name:
            continue
        results = at_widths(f"variants/{name}")[1]
        for cell, rows in ((one_row, 1), (sixteen, 16)):
            if re.fullmatch(r"[\d.]+ / [\d.]+ / [\d.]+", cell):
                seen += 1
                same([cell], [results[rows][arm]["us"] for arm in ARMS[:3]])
            elif number and (found := re.fullmatch(r"mono PDL ([\d.]+)", cell)):
                seen += 1
                way = "mono_together_pdl" if "mono_together_pdl" in results[rows] else "mono_pdl"
                same([found[1]], [results[rows][way]["us"]])
    assert seen > least


def test_every_file_is_named() -> None:
    for file in RESULTS.rglob("*.*"):
        stem = file.name.partition(".")[0]
        assert f"`{stem}`" in PAGE or f"{file.name}`" in PAGE, file.name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_result_is_right_and_counts_its_bytes_as_the_floor_does(file: Path) -> None:
    found, results = at_widths(file.stem)
    assert not faults_of(found)
    for rows, one in results.items():
        union, blocks = (statistics.mean(one[name]) for name in ("unions", "blocks"))
        assert one["bytes"] == layer_bytes(setting_of(found), rows, union, blocks)
        assert one["check"]["replays"] == 1000
