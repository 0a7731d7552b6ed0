from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from infx.analysis.export import Asked, artifact_folders, read_export
from infx.analysis.measurements import account, measure, steady_conc
from infx.domain.errors import MeasurementError, UsageError
from infx.domain.record import Measurement
from tests.analysis.made_exports import closed_loop, row, shared, write_run


def measured(folder: Path, gpus: int = 1) -> Measurement:
    return measure(read_export(folder), Asked(osl=8), gpus)


@pytest.mark.parametrize("cell", [1, 2, 4])
def test_agrees_with_aiperf_on_a_real_run(cell: int) -> None:
    folder = shared(f"data/aiperf_exports/real_smollm2/concurrency_{cell}")
    summary = json.loads((folder / "profile_export_aiperf.json").read_text())
    seen = measured(folder)
    pairs = [
        (seen.ttft_ms, "time_to_first_token"),
        (seen.itl_ms, "inter_token_latency"),
        (seen.e2el_ms, "request_latency"),
        (seen.osl, "output_sequence_length"),
    ]
    for ours, theirs in pairs:
        for name, key in (("mean", "avg"), ("std", "std"), ("p50", "p50"), ("p90", "p90")):
            assert getattr(ours, name) == pytest.approx(summary[theirs][key]), (theirs, key)
    assert seen.interactivity_tok_s.p90 == pytest.approx(
        1000 / summary["inter_token_latency"]["p90"]
    )
    assert seen.window_s == pytest.approx(summary["benchmark_duration"]["avg"], rel=1e-3)
    assert seen.output_tput_tok_s_gpu == pytest.approx(
        summary["output_token_throughput"]["avg"], rel=2e-3
    )
    assert seen.observed_conc == pytest.approx(summary["effective_concurrency"]["avg"], rel=3e-3)
    assert seen.isl.mean == 64  # what the server counted, with its chat template
    assert (seen.requests.total, seen.requests.warmup, seen.requests.ok) == (9, 1, 8)


def test_warmup_never_counts(tmp_path: Path) -> None:
    rows = closed_loop(2, 5)
    plain = measured(write_run(tmp_path / "a", rows))
    slow = [row(-9000, 8000, ttft_ms=5000, phase="warmup")] * 3
    warmed = measured(write_run(tmp_path / "b", [*slow, *rows]))
    assert warmed.e2el_ms == plain.e2el_ms
    assert warmed.window_s == plain.window_s
    assert warmed.requests.warmup == 3


def test_errors_are_counted_and_not_in_latencies(tmp_path: Path) -> None:
    failed = row(500, 99_000, error={"type": "ServerError", "code": 500, "message": "x"})
    dropped = row(500, 5, error={"type": "ClientPayloadError", "message": "x"})
    seen = measured(write_run(tmp_path, [*closed_loop(2, 5), failed, dropped, dropped]))
    assert seen.e2el_ms.p99 == 100
    assert seen.requests.errors_by_category == {"ClientPayloadError": 2, "ServerError 500": 1}
    assert (seen.requests.ok, seen.requests.errors) == (10, 3)
    assert seen.window_s == pytest.approx(99.5)


def test_interactivity_inverts_the_percentile_of_a_latency(tmp_path: Path) -> None:
    latencies = [100.0, 140.0, 200.0, 350.0, 900.0]
    rows = [row(i * 1000, ms, ttft_ms=20, osl=8) for i, ms in enumerate(latencies)]
    seen = measured(write_run(tmp_path, rows))
    itl = [(ms - 20) / 7 for ms in latencies]
    assert seen.interactivity_tok_s.p90 == pytest.approx(1000 / np.percentile(itl, 90))
    per_token = [ms / 1000 / 8 for ms in latencies]
    assert seen.e2e_interactivity_tok_s.p90 == pytest.approx(1 / np.percentile(per_token, 90))
    assert seen.interactivity_tok_s.p99 < seen.interactivity_tok_s.p50


def test_throughput_and_concurrency(tmp_path: Path) -> None:
    rows = closed_loop(4, 5, latency_ms=200)  # 20 requests in 1 s, 16 in and 8 out each
    seen = measured(write_run(tmp_path, rows, conc=4), gpus=2)
    assert seen.window_s == pytest.approx(1.0)
    assert seen.qps == pytest.approx(20)
    assert seen.observed_conc == pytest.approx(4)
    assert seen.output_tput_tok_s_gpu == pytest.approx(80)
    assert seen.input_tput_tok_s_gpu == pytest.approx(160)
    assert seen.tput_tok_s_gpu == pytest.approx(240)


def test_the_drain_at_the_end_is_not_the_load(tmp_path: Path) -> None:
    rows = [*closed_loop(2, 5), row(500, 2000)]  # one long request alone at the end
    export = read_export(write_run(tmp_path, rows))
    assert steady_conc(export.profiled) == pytest.approx(2)
    assert measure(export, Asked(), 1).observed_conc == pytest.approx(1.2)


def test_the_log_counts_what_no_export_does(tmp_path: Path) -> None:
    assert account(read_export(shared("data/aiperf_exports/dur_cancel"))).cancelled == 4
    many = read_export(write_run(tmp_path, closed_loop(2, 5), cancelled=1234))
    assert account(many).cancelled == 1234
    assert account(many).total == 1244


@pytest.mark.parametrize(
    ("replaced", "code"),
    [
        ({"time_to_first_token": ...}, "metric-missing"),
        ({"request_latency": ...}, "metric-missing"),
        ({"request_latency": None}, "not-a-number"),
        ({"output_sequence_length": 0}, "no-tokens"),
        ({"output_sequence_length": 1}, "not-a-number"),
        ({"time_to_first_token": 100.0}, "not-a-number"),
    ],
)
def test_a_figure_without_value_is_refused(
    tmp_path: Path, replaced: dict[str, object], code: str
) -> None:
    with pytest.raises(MeasurementError) as caught:
        measured(write_run(tmp_path, closed_loop(1, 3, **replaced)))
    assert caught.value.code == code


def test_a_cut_line_is_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path, closed_loop(2, 5))
    records = folder / "profile_export.jsonl"
    records.write_bytes(records.read_bytes()[:-40])
    export = read_export(folder)
    (finding,) = export.findings
    assert (finding.code, finding.where and finding.where.line) == ("truncated-export", 10)
    assert len(export.rows) == 9


def test_bad_lines_are_named_one_by_one(tmp_path: Path) -> None:
    folder = write_run(tmp_path, closed_loop(2, 3))
    records = folder / "profile_export.jsonl"
    lines = records.read_text().splitlines()
    lines[1] = lines[1].replace("100.0", "NaN")
    lines[3] = '{"metadata": 7}'
    records.write_text("\n".join(lines) + "\n")
    found = [(f.code, f.where and f.where.line) for f in read_export(folder).findings]
    assert found == [("not-a-number", 2), ("unreadable-export", 4)]


def test_a_folder_without_exports_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither"):
        read_export(tmp_path)


def test_cells_of_a_sweep_are_found() -> None:
    cells = artifact_folders(shared("data/aiperf_exports/real_smollm2"))
    assert [cell.name for cell in cells] == ["concurrency_1", "concurrency_2", "concurrency_4"]


def test_reads_fast(tmp_path: Path) -> None:
    line = shared("data/aiperf_exports/real_smollm2/concurrency_2") / "profile_export.jsonl"
    data = line.read_bytes() * 400
    write_run(tmp_path, closed_loop(1, 2))
    (tmp_path / "profile_export.jsonl").write_bytes(data)
    begin = time.perf_counter()
    export = read_export(tmp_path)
    rate = len(data) / 1e6 / (time.perf_counter() - begin)
    assert len(export.rows) == 3600
    assert rate > 40  # MB/s; 200 and more on a quiet core, json gives 35
