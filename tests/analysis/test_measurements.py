from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from infx.analysis.asked import Asked
from infx.analysis.export import Export, artifact_folders, read_export
from infx.analysis.measurements import account, measure, steady_conc
from infx.analysis.records import Row, records_of
from infx.domain.errors import MeasurementError, UsageError
from infx.domain.record import Measurement
from tests.analysis.made_exports import (
    closed_loop,
    ramped,
    row,
    write_phases,
    write_run,
)
from tests.public_data import shared


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


def test_errors_bound_every_latency(tmp_path: Path) -> None:
    rows = [row(n * 100, 100 + n, ttft_ms=10 + n, osl=8) for n in range(20)]
    failed = row(3000, 5, error={"type": "ServerError", "code": 500})
    seen = measured(write_run(tmp_path / "a", [*rows, failed, failed], conc=1))
    assert set(seen.error_bounds) == {"ttft_ms", "itl_ms", "tpot_ms", "e2el_ms"}
    least, most = seen.error_bounds["e2el_ms"].p50
    assert least == pytest.approx(np.percentile([*range(100, 120), 0, 0], 50))
    assert most == pytest.approx(np.percentile([*range(100, 120), 1e9, 1e9], 50))
    assert seen.error_bounds["ttft_ms"].p99[1] is None
    assert least < seen.e2el_ms.p50 < most
    assert measured(write_run(tmp_path / "b", rows, conc=1)).error_bounds == {}


def test_tpot_and_itl_are_two_words_for_one_figure(tmp_path: Path) -> None:
    seen = measured(write_run(tmp_path, [row(0, 100, ttft_ms=30, osl=8), row(100, 170, osl=1)]))
    assert seen.tpot_ms == seen.itl_ms
    assert (seen.tpot_ms.n, seen.tpot_ms.mean) == (1, pytest.approx(70 / 7))


def test_the_context_of_a_request_is_its_input_and_output(tmp_path: Path) -> None:
    rows = [row(0, 50, osl=8), row(50, 50, osl=24, input_sequence_length=100)]
    seen = measured(write_run(tmp_path, rows, conc=1)).context
    assert seen
    assert (seen.mean, seen.p50, seen.std) == (74, 74, 50)


def test_cache_hits_are_what_every_answer_tells(tmp_path: Path) -> None:
    slow = row(-500, 50, phase="warmup", usage_prompt_cache_read_tokens=9999)
    rows = [row(n * 50, 50, usage_prompt_cache_read_tokens=4 * n) for n in range(5)]
    seen = measured(write_run(tmp_path / "a", [slow, *rows], conc=1))
    assert seen.cached_input
    assert (seen.cached_input.n, seen.cached_input.mean, seen.cached_input.p90) == (5, 8, 14.4)
    assert seen.prefix_hit_share == 0.5
    del rows[2]["metrics"]["usage_prompt_cache_read_tokens"]
    seen = measured(write_run(tmp_path / "b", rows, conc=1))
    assert (seen.cached_input, seen.prefix_hit_share) == (None, None)


def test_the_steady_window_is_without_ramp_and_drain(tmp_path: Path) -> None:
    rows = [row(0, 100), row(40, 100), row(100, 100), row(140, 100), row(200, 300)]
    export = read_export(write_run(tmp_path, rows))
    assert measure(export, Asked(conc=2), 1).steady_s == pytest.approx(0.16)
    assert measure(export, Asked(conc=5), 1).steady_s is None  # open at the last moment only
    assert measure(export, Asked(conc=6), 1).steady_s is None
    assert measure(export, Asked(), 1).steady_s is None
    assert measure(export, Asked(conc=2), 1).window_s == pytest.approx(0.5)


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
    assert steady_conc(export.records, 2) == pytest.approx(2)
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
        ({"time_to_first_token": 100.0}, "not-a-number"),  # an ITL of 0 at the median
        ({"time_to_first_token": 101.0}, "clock-skew"),  # after the last one
        ({"time_to_first_token": 101.0, "osl": 1}, "clock-skew"),
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
    assert len(export.records) == 9


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


def test_parts_of_an_export_are_no_exports(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "point/aiperf", closed_loop(2, 5))
    write_phases(folder)
    assert artifact_folders(tmp_path) == [folder]
    alone = write_run(tmp_path / "phases/warmup", closed_loop(2, 5))  # no export above it
    assert artifact_folders(tmp_path) == [alone, folder]


def test_a_cell_that_left_no_export_is_seen(tmp_path: Path) -> None:
    good = write_run(tmp_path / "concurrency_1", closed_loop(1, 5), conc=1)
    died, silent = tmp_path / "concurrency_2", tmp_path / "profile_runs/trial_0002"
    for cell in (died, silent):
        (cell / "logs").mkdir(parents=True)
    (died / "logs/aiperf.log").write_text("Traceback\n")
    (tmp_path / "logs").mkdir()  # of the sweep itself
    (tmp_path / "logs/aiperf.log").write_text("3 cells\n")
    (tmp_path / "aggregate/concurrency_1").mkdir(parents=True)
    (tmp_path / "elsewhere/logs").mkdir(parents=True)  # not aiperf's
    assert artifact_folders(tmp_path) == [good, died, silent]
    assert [f.code for f in read_export(died).findings] == ["no-export", "no-export"]


def test_output_lengths_are_the_servers_where_it_counts(tmp_path: Path) -> None:
    # Random tokens: the client's tokenizer reads the text in another number of tokens.
    rows = [
        row(wave * 100, 100, osl=client, usage_completion_tokens=8, usage_prompt_tokens=42)
        for wave, client in enumerate((6, 9, 11, 8))
    ]
    seen = measured(write_run(tmp_path / "a", rows, conc=1))
    assert (seen.osl.mean, seen.osl.std, seen.isl.mean) == (8, 0, 42)
    assert seen.osl_mismatches == 0
    assert seen.itl_ms.mean == pytest.approx(90 / 7)
    rows[1]["metrics"]["usage_completion_tokens"]["value"] = 7
    assert measured(write_run(tmp_path / "b", rows, conc=1)).osl_mismatches == 1
    del rows[1]["metrics"]["usage_completion_tokens"]  # not every row: the client's count
    seen = measured(write_run(tmp_path / "c", rows, conc=1))
    assert (seen.osl.mean, seen.osl_mismatches) == (8.5, 3)


def test_one_answer_in_one_chunk_does_not_take_the_point_away(tmp_path: Path) -> None:
    rows = [row(i * 100, 100, ttft_ms=30) for i in range(9)]
    rows.append(row(900, 100, ttft_ms=100))
    seen = measured(write_run(tmp_path, rows, conc=1))
    assert seen.interactivity_tok_s.p90 == pytest.approx(100)
    assert seen.interactivity_tok_s.mean == pytest.approx(100)  # of the nine with a rate
    assert seen.interactivity_tok_s.n == seen.itl_ms.n == 10


def test_the_ramp_of_the_client_is_not_the_load(tmp_path: Path) -> None:
    export = read_export(write_run(tmp_path, ramped(64, 320, 100, ramp_ms=150), conc=64))
    assert steady_conc(export.records, 64) == pytest.approx(64, rel=0.05)
    assert steady_conc(export.records, 1) < 56  # from the first request sent on
    assert steady_conc(export.records, 321) == 0


requests = st.tuples(
    st.integers(0, 900),  # start, ms
    st.integers(1, 400),  # TTFT, ms
    st.integers(1, 400),  # the rest, ms
    st.integers(2, 40),  # tokens
    st.sampled_from(["ok", "ok", "ok", "failed", "warmup"]),
)


@given(st.lists(requests, min_size=1, max_size=25), st.integers(1, 6))
def test_every_figure_is_what_numpy_makes_of_the_rows(
    told: list[tuple[int, int, int, int, str]], lanes: int
) -> None:
    made = [
        row(
            start, ttft + rest, ttft_ms=ttft, osl=osl,
            phase="warmup" if kind == "warmup" else "profiling",
            error={"type": "ServerError"} if kind == "failed" else None,
        )
        for start, ttft, rest, osl, kind in told
    ]  # fmt: skip
    profiled = [one for one in told if one[4] != "warmup"]
    ok = [one for one in profiled if one[4] == "ok"]
    assume(ok)
    records = records_of(msgspec.convert(one, Row) for one in made)
    export = Export(folder=Path(), summary=None, records=records, cancelled=0)
    seen = measure(export, Asked(conc=lanes), 2)
    _, ttft, rest, osl = (np.array(column, float) for column in list(zip(*ok, strict=True))[:4])
    e2el = ttft + rest
    pairs = [
        (seen.ttft_ms, ttft), (seen.e2el_ms, e2el), (seen.itl_ms, rest / (osl - 1)),
        (seen.osl, osl), (seen.context, osl + 16),
    ]  # fmt: skip
    for ours, values in pairs:
        assert ours
        assert ours.mean == pytest.approx(values.mean())
        assert ours.std == pytest.approx(values.std(), abs=1e-9)
        assert ours.p95 == pytest.approx(np.percentile(values, 95))
    slow = np.percentile(e2el / 1000 / osl, 90)
    assert seen.e2e_interactivity_tok_s.p90 == pytest.approx(1 / slow)
    assert seen.e2e_interactivity_tok_s.mean == pytest.approx((osl / e2el * 1000).mean())
    spans = [(start, start + ttft + rest) for start, ttft, rest, _, _ in profiled]
    window_s = (max(end for _, end in spans) - min(start for start, _ in spans)) / 1000
    assert seen.window_s == pytest.approx(window_s)
    assert seen.output_tput_tok_s_gpu == pytest.approx(osl.sum() / window_s / 2)
    sent = sorted(start for start, _ in spans)
    if len(sent) < lanes or sent[lanes - 1] == sent[-1]:
        assert (seen.steady_s, steady_conc(records, lanes)) == (None, 0)
    else:
        first, last = sent[lanes - 1], sent[-1]
        inside = sum(max(0, min(end, last) - max(start, first)) for start, end in spans)
        assert seen.steady_s == pytest.approx((last - first) / 1000)
        assert steady_conc(records, lanes) == pytest.approx(inside / (last - first))


@pytest.mark.slow
@pytest.mark.alone
def test_reads_records_faster_than_json(tmp_path: Path) -> None:
    line = shared("data/aiperf_exports/real_smollm2/concurrency_2") / "profile_export.jsonl"
    write_run(tmp_path, closed_loop(1, 2))
    records = tmp_path / "profile_export.jsonl"
    records.write_bytes(line.read_bytes() * 400)
    read = read_export(tmp_path).records
    assert (len(read), read.warmup) == (3200, 400)
    ours = fastest(lambda: read_export(tmp_path))
    theirs = fastest(lambda: [json.loads(line) for line in records.read_bytes().splitlines()])
    assert ours < theirs / 2  # a sixth on a quiet core


def fastest(work: Callable[[], object]) -> float:
    """Seconds of the fastest of five: what the machine does besides only adds."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)
