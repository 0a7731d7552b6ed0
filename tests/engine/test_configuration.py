"""What the engine refuses at start, with which code; the page pool; the metrics page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.codes import CODES
from infx.domain.errors import UsageError
from infx.engine.__main__ import main
from infx.engine.arguments import parse
from infx.engine.cache import PagePool, chain
from infx.engine.config import EngineConfig
from infx.engine.metrics import Histogram, Metrics, render
from infx.engine.shapes import m3

EAGLE = ["--speculative-method", "eagle3", "--num-speculative-tokens", "3"]
DSPARK = ["--speculative-method", "dspark", "--num-speculative-tokens"]
CURVE = ["--acceptance-law", "from-curve", "--acceptance-curve"]


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (["--mono", "on", "--layers", "reference"], "bad-option", "leave one of them out"),
        (["--mono", "on", "--model", "null"], "bad-option", "null has no layers"),
        (["--tensor-parallel-size", "3"], "unsupported-tp", "1, 2, 4"),
        (["--tensor-parallel-size", "8"], "unsupported-tp", "1, 2, 4"),
        (["--tensor-parallel-size", "2", "--rank-limit-s", "0"], "bad-option", "--rank-limit-s"),
        (["--model", "m4"], "unsupported-model", "m3_tp4_rank"),
        (["--model", "m3", "--port", "0"], "too-little-memory", "GB are free"),
        (["--model", "auto"], "unsupported-model", "folder"),
        (["--weights", "/no/such/folder"], "unsupported-weights", "/no/such/folder"),
        (["--weights", "hf:someone/model"], "unsupported-weights", "random:SEED"),
        (["--weights", "random:x"], "unsupported-weights", "random:x"),
        (["--dtype", "bfloat16"], "unsupported-dtype", "bfloat16"),
        (["--kv-cache-dtype", "int4"], "unsupported-dtype", "auto, fp32, bf16, fp8, mxfp4"),
        (["--index-cache-dtype", "fp4"], "unsupported-dtype", "dtype --index-cache-dtype fp4: exp"),
        (["--speculative-method", "medusa", *EAGLE[2:]], "unsupported-method", "eagle3, dspark"),
        ([*DSPARK, "8"], "bad-option", "dspark drafts at most 7"),
        ([*DSPARK, "7", "--dspark-verify", "scheduled"], "unsupported-verify", "scheduled"),
        ([*DSPARK, "7", "--dspark-verify", "ragged"], "unsupported-verify", "use fixed"),
        ([*EAGLE, "--acceptance-law", "from-curve"], "bad-option", "--acceptance-curve"),
        ([*EAGLE, "--acceptance-curve", "0.7,0.6,0.5"], "bad-option", "from-curve"),
        ([*EAGLE, *CURVE, "0.7,0.6"], "bad-option", "K=3"),
        ([*EAGLE, *CURVE, "0.7,0.8,0.1"], "bad-option", "non-increasing"),
        ([*EAGLE, *CURVE, "0.7,x,0.1"], "bad-option", "0.7,x,0.1"),
        ([*CURVE, "0.7"], "bad-option", "method"),
        (
            [*EAGLE, *CURVE, "0.7,0.6,0.5", "--synthetic-acceptance-length", "2"],
            "bad-option",
            "without --synthetic-acceptance-length",
        ),
        (["--weights", "random:" + "9" * 5000], "unsupported-weights", "18 digits"),
        (["--num-blocks", "4", "--max-model-len", "512"], "too-little-memory", "pages"),
        (["--num-blocks", "1000000000000", "--port", "0"], "too-little-memory", "GB are free"),
        (["--num-blocks", "-1"], "bad-option", "--num-blocks"),
        (["--threads", "100000"], "bad-option", "at most 256"),
        (["--host", "no such host", "--port", "0"], "bad-option", "--host"),
        (["--num-speculative-tokens", "3"], "bad-option", "method"),
        ([*EAGLE, "--synthetic-acceptance-length", "4.5"], "bad-option", "[1, 4]"),
        (["--synthetic-acceptance-length", "2"], "bad-option", "method"),
        (["--capture-sizes", "8,4"], "bad-option", "ascending"),
        (["--capture-sizes", "four"], "bad-option", "4,8,16"),
        (["--capture-sizes", "0,4"], "bad-option", "--capture-sizes 0: expected at least 1"),
        (["--capture-sizes", "4,513"], "bad-option", "--max-num-batched-tokens 512"),
        (["--max-num-seqs", "0"], "bad-option", "at least 1"),
        (["--max-num-seqs", "200", *EAGLE], "bad-option", "800 rows"),
        (["--max-model-len", "9000"], "bad-option", "8192"),
        (["--block-size", "32"], "bad-option", "16"),
        (["--port", "99999"], "bad-option", "65535"),
        (["--no-such-flag"], "bad-option", "infx serve --help"),
        ([*EAGLE, "--acceptance-law", "geometric"], "bad-option", "would be real"),
        (["--host", "192.0.2.1", "--port", "0"], "bad-option", "--host 192.0.2.1"),
        (["--model", "auto", "--weights", "shipped"], "unsupported-weights", "--model mini"),
        (["--model", "m4"], "unsupported-model", "null"),
    ],
)
def test_refused_at_start_in_one_line(argv, code, word, capsys):
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{code} ")
    assert word in line
    assert code in CODES


def test_help_tells_exit_codes_and_no_empty_default(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"])
    told = capsys.readouterr().out
    assert told.startswith("usage: infx serve [options]")
    assert "Exit codes: 0 drained" in told
    assert "(default: )" not in told
    assert "None" not in told


def test_flags_become_the_configuration():
    config, address = parse(
        [*EAGLE, "--synthetic-acceptance-length", "2.78", "--capture-sizes", "4,8", "--port", "1"]
    )
    assert (config.k, config.acceptance.length, config.acceptance.k) == (3, 2.78, 3)
    assert (config.capture_sizes, address.port) == ((4, 8), 1)
    assert config.served_model_name == "mini"


def test_a_curve_gives_the_length():
    config, _ = parse([*DSPARK, "2", *CURVE, "0.79,0.6"])
    acceptance = config.acceptance
    assert (acceptance.mode, acceptance.law, acceptance.curve) == (
        "synthetic",
        "from-curve",
        (0.79, 0.6),
    )
    assert acceptance.length == pytest.approx(2.39)
    assert (config.method, config.draft_layers) == ("dspark", 2)


def test_the_context_is_what_the_cache_holds_when_not_asked():
    assert EngineConfig(num_blocks=64).context == 64 * 16 - 1
    assert EngineConfig().context == 8192


def test_true_shapes_are_those_of_the_public_configuration():
    shape = m3()
    assert (shape.hidden_size, shape.num_layers, shape.experts) == (6144, 60, 128)
    assert (shape.heads, shape.kv_heads, shape.head_dim, shape.rotary_dim) == (64, 4, 128, 64)


def test_speculation_beyond_the_rotary_tables_is_refused():
    with pytest.raises(UsageError, match="at most 16"):
        EngineConfig(method="eagle3", k=17)


def test_pages_are_shared_by_hash_and_reused_from_the_tail():
    pool = PagePool(4)
    names = [chain(b"", [1, 2]), chain(chain(b"", [1, 2]), [3, 4])]
    pages = pool.take(3)
    for page, name in zip(pages, names, strict=False):
        pool.publish(page, name)
    pool.release(pages[:2])
    assert pool.share([*names, b"unknown"]) == pages[:2]
    pool.release(pages[:2])
    pool.release(pages[2:])
    # Pages that nobody can find go first, though released last; then the end of the chain.
    assert set(pool.take(2)) == {pages[2], 3}
    assert pool.take(1) == [pages[1]]
    assert pool.share(names) == [pages[0]]
    with pytest.raises(MemoryError):
        pool.take(1)


def test_a_hash_depends_on_everything_before():
    assert chain(chain(b"", [1]), [2]) != chain(chain(b"", [9]), [2])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=60))
def test_the_pool_agrees_with_its_holders_after_any_history(history):
    pool, held = PagePool(8), []
    for action, number in history:
        if action == 0 and number <= pool.free:
            held.append(pool.take(number))
        elif action == 1 and held:
            pool.release(held.pop(number % len(held)))
        elif held:
            names = [chain(bytes([n]), [n]) for n in range(number)]
            for page, name in zip(held[number % len(held)], names, strict=False):
                pool.publish(page, name)
            held.append(pool.share(names))
        pool.check(held)


def test_the_check_sees_a_lost_page():
    pool = PagePool(3)
    pool.take(1)
    with pytest.raises(AssertionError, match="references"):
        pool.check([])


def test_metrics_are_prometheus_text():
    metrics = Metrics(spec_verify_steps=4, spec_accepted_tokens=7)
    metrics.decode_widths.update({8: 2})
    metrics.refusals.update({"queue-full": 1})
    metrics.ttft.observe(0.003)
    metrics.ttft.observe(99.0)
    text = render(metrics)
    for line in (
        "infx:spec_acceptance_length 2.75",
        'infx:decode_steps_total{width="8"} 2',
        'infx:refusals_total{code="queue-full"} 1',
        'infx:time_to_first_token_seconds_bucket{le="0.005"} 1',
        'infx:time_to_first_token_seconds_bucket{le="+Inf"} 2',
        "infx:time_to_first_token_seconds_count 2",
        "infx:mono_steps_total 0",
    ):
        assert line in text.splitlines()
    from prometheus_client.parser import text_string_to_metric_families

    assert len(list(text_string_to_metric_families(text))) > 15


def test_a_histogram_counts_at_and_below_each_bound():
    histogram = Histogram()
    histogram.observe(0.001, times=3)
    assert histogram.counts[0] == 3
