"""The boundary as a host sees it: eager and captured steps, widths, layers of its own, closing."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from infx.engine.mono.library import BackEnd, Mono, StepRows
from infx.engine.mono.oracle import BorrowedLayer, Oracle
from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import Kind
from infx.engine.mono.table import Table
from tests.engine.mono.recording import KINDS, Recording, address, bound, deployment, rows
from tests.engine.mono.tiny_layers import TINY, Row, World, table, with_sum

REFUSED = Refusal("mono-build-failed", "width 8: expected less scratch")


def calls(mono: Mono) -> list[tuple[Any, ...]]:
    return cast(Recording, mono._back_end).calls


def test_a_step_takes_the_narrowest_width_and_builds_it_once() -> None:
    mono = bound(widths=(16, 8, 1))
    assert mono.widths == (1, 8, 16)
    taken = [(1, 1), (2, 8), (8, 8), (9, 16), (1, 1), (16, 16)]
    for count, _ in taken:
        assert mono.prepare_step(rows(count)) is None
    steps = [call for call in calls(mono) if call[0] == "prepare"]
    assert steps == [("prepare", *each) for each in taken]
    assert [call for call in calls(mono) if call[0] == "build"] == [
        ("build", 1),
        ("build", 8),
        ("build", 16),
    ]


def test_layers_run_in_the_hosts_order_on_the_hosts_streams() -> None:
    mono = bound()
    first, second = np.zeros((3, 4)), np.zeros((3, 4))
    assert mono.prepare_step(rows(3)) is None
    calls(mono).clear()
    mono.forward_layer(0, first, second)
    mono.forward_layer(1, second, first)
    a, b = address(first), address(second)
    assert calls(mono) == [("run", 0, a, b), ("run", 1, b, a)]
    assert (first == 2).all()


@pytest.mark.parametrize("answer", [REFUSED, MemoryError("expected more")])
def test_a_refused_width_stays_refused_and_is_not_rebuilt(answer: Refusal | Exception) -> None:
    mono = bound(Recording(widths={8: answer}))
    refusals = [mono.prepare_step(rows(5)), mono.build(8), mono.prepare_step(rows(8))]
    with mono.capturing():
        refusals.append(mono.prepare_step(rows(2)))
    assert refusals[0] is not None
    assert refusals == [refusals[0]] * 4
    assert calls(mono) == [("build", 8)]
    assert mono.prepare_step(rows(1)) is None
    assert mono.prepare_step(rows(16)) is None


def test_a_width_that_was_not_bound_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="width 4: expected one of"):
        bound().build(4)


def test_while_capturing_nothing_is_built_and_what_is_built_is_served() -> None:
    mono = bound()
    assert mono.build(1) is None
    with mono.capturing():
        with mono.capturing():
            assert mono.prepare_step(rows(1)) is None
        for refusal in (mono.prepare_step(rows(2)), mono.build(8)):
            assert refusal is not None
            assert refusal.code == "mono-width-not-built"
    assert ("build", 8) not in calls(mono)
    # The refusal was about that moment: the width is not refused for good.
    assert mono.prepare_step(rows(2)) is None


def test_a_capture_that_fails_is_over() -> None:
    mono = bound()
    with pytest.raises(KeyError), mono.capturing():
        raise KeyError
    assert mono.prepare_step(rows(2)) is None


def test_a_captured_step_replays_over_the_same_addresses() -> None:
    mono = bound()
    back_end = cast(Recording, mono._back_end)
    step = rows(3)
    streams = np.zeros((3, 4)), np.zeros((3, 4))
    assert mono.build(8) is None
    calls(mono).clear()
    with mono.capturing():
        assert mono.prepare_step(step) is None
        for layer in range(len(KINDS)):
            mono.forward_layer(layer, streams[layer % 2], streams[(layer + 1) % 2])
    graph = [call for call in calls(mono) if call[0] == "run"]
    # A host replays by writing the next step into the same arrays; each step is judged anew.
    for replay in (1, 2, 3):
        step.positions[:] += 1  # type: ignore[index]
        step.slots[:] += 1  # type: ignore[index]
        assert mono.prepare_step(step) is None, replay
        for layer in range(len(KINDS)):
            mono.forward_layer(layer, streams[layer % 2], streams[(layer + 1) % 2])
    runs = [call for call in calls(mono) if call[0] == "run"]
    assert runs == graph * 4
    for name in ("batch_ids", "positions", "slots", "pages"):
        seen = {address(getattr(given, name)) for given in back_end.steps}
        assert seen == {address(getattr(step, name))}, name
    step.positions[0] = 2 * 16  # type: ignore[index]
    refusal = mono.prepare_step(step)
    assert refusal is not None
    assert refusal.code == "mono-page-table-short"


def test_a_layer_of_the_hosts_own_is_not_run() -> None:
    kinds = ("sparse_dense", "sparse_dense", "sparse")
    mono = Mono.bind(deployment(), kinds, Recording())
    assert isinstance(mono, Mono)
    assert [mono.serves(layer) for layer in range(3)] == [False, False, True]
    assert mono.prepare_step(rows(1)) is None
    out = np.zeros((1, 4))
    with pytest.raises(RuntimeError, match=r"forward_layer\(0\)"):
        mono.forward_layer(0, out, out)
    assert not out.any()
    mono.forward_layer(2, out, out)


def test_after_a_refused_step_the_step_before_cannot_run_again() -> None:
    mono = bound()
    assert mono.prepare_step(rows(3)) is None
    assert mono.prepare_step(rows(3, batch_ids=None)) is not None
    with pytest.raises(RuntimeError, match="expected a step that prepare_step took"):
        mono.forward_layer(0, np.zeros((3, 4)), np.zeros((3, 4)))


def test_after_a_back_end_that_fails_the_step_before_cannot_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mono = bound()
    assert mono.prepare_step(rows(3)) is None

    def fails(*given: Any) -> None:
        raise TypeError("expected other arrays")

    monkeypatch.setattr(Recording, "prepare", fails)
    with pytest.raises(TypeError):
        mono.prepare_step(rows(3))
    with pytest.raises(RuntimeError, match="expected a step that prepare_step took"):
        mono.forward_layer(0, np.zeros((3, 4)), np.zeros((3, 4)))


def test_closing_lets_go_once_and_for_all() -> None:
    mono = bound()
    assert mono.prepare_step(rows(3)) is None
    mono.close()
    mono.close()
    assert calls(mono)[-2:] == [("prepare", 3, 8), ("close",)]
    with pytest.raises(RuntimeError):
        mono.forward_layer(0, np.zeros((3, 4)), np.zeros((3, 4)))
    for refusal in (mono.prepare_step(rows(3)), mono.build(16)):
        assert refusal is not None
        assert refusal.code == "mono-closed"
    assert calls(mono)[-1] == ("close",)


def test_a_refused_back_end_is_left_to_the_host() -> None:
    back_end = Recording(bind=Refusal("mono-weights", "qkv: expected float32"))
    assert Mono.bind(deployment(), KINDS, back_end) == back_end.bind
    assert back_end.calls == [("refuse",)]


class Host:
    """An engine with a tiny layer of each kind, its caches, and steps of several requests."""

    kinds: tuple[Kind, ...] = ("dense", "sparse_dense", "sparse")

    def __init__(self) -> None:
        self.worlds = [World(kind) for kind in self.kinds]
        self.caches = [world.cache() for world in self.worlds]

    def layers(self) -> list[BorrowedLayer]:
        each = zip(self.kinds, self.worlds, self.caches, strict=True)
        return [BorrowedLayer(kind, world.layer, cache) for kind, world, cache in each]

    def back_end(self, table_of: Any = table) -> Oracle:
        return Oracle(TINY, self.layers(), table_of)

    def bind(self, back_end: BackEnd) -> Mono | Refusal:
        slots = self.worlds[0].requests * TINY.pages
        facts = deployment(block=TINY.block, selection_block=TINY.block, context=TINY.reach)
        given = {name: getattr(facts, name) for name in facts.__dataclass_fields__}
        return Mono.bind(
            type(facts)(**given | {"reach": TINY.reach, "cache_pages": slots}),
            self.kinds,
            back_end,
            widths=(4,),
        )

    def rows(self) -> list[Row]:
        """Return a verify step of one request and a row of another."""
        world = self.worlds[0]
        return [world.row(0), world.row(0, ahead=1), world.row(1)]

    def serve(self, some: Sequence[Row], mono: Mono | None = None, make: Any = list) -> list[bytes]:
        """Return what the layers make of a step, by ``mono`` where it serves them."""
        stream = make([np.array(row.stream, dtype=np.float32) for row in some])
        for layer in range(len(self.kinds)):
            out = make([np.zeros(TINY.hidden, dtype=np.float32) for _ in some])
            if mono and mono.serves(layer):
                mono.forward_layer(layer, stream, out)
            else:
                out[:] = self._natively(layer, some, stream)
            stream = out
        return [np.array(row, dtype=np.float32).tobytes() for row in stream]

    def _natively(self, layer: int, some: Sequence[Row], streams: Any) -> Any:
        given = [
            Row(row.request, row.position, row.pages, stream)
            for row, stream in zip(some, streams, strict=True)
        ]
        return self.worlds[layer].run(given, cache=self.caches[layer]).result.stream


def step_of(some: Sequence[Row]) -> StepRows:
    return StepRows(
        np.array([row.request for row in some], dtype=np.int32),
        np.array([row.position for row in some]),
        np.array([row.slot for row in some]),
        np.array([row.pages for row in some], dtype=np.int32),
        requests=2,
    )


@pytest.mark.parametrize("make", [np.array, list], ids=["arrays", "lists"])
def test_a_host_with_the_oracle_gets_what_its_own_layers_give(make: Any) -> None:
    host, own = Host(), Host()
    some = host.rows()
    mono = host.bind(host.back_end())
    assert isinstance(mono, Mono)
    assert mono.prepare_step(step_of(some)) is None
    assert host.serve(some, mono, make) == own.serve(some)
    assert host.caches == own.caches != Host().caches, "mono writes into the host's own caches"
    mono.close()


WIDE = np.zeros((6, 2 * TINY.pages), dtype=np.int32)


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("mono-batch-ids-missing", {"batch_ids": None}),
        ("mono-batch-ids-dtype", {"batch_ids": np.array([0, 0, 1])}),
        ("mono-batch-ids-few", {"batch_ids": np.array([0, 0], dtype=np.int32)}),
        ("mono-step-dtype", {"slots": np.zeros(3)}),
        ("mono-step-strides", {"pages": WIDE[::2, ::2]}),
        ("mono-step-strides", {"slots": np.zeros(6, dtype=np.int64)[::2]}),
        ("mono-too-many-rows", {"positions": np.zeros(17, dtype=np.int64)}),
        ("mono-prefill", {"prefill": True}),
        ("mono-traced", {"traced": True}),
    ],
)
def test_a_refused_step_is_the_hosts_to_serve(code: str, changes: dict[str, Any]) -> None:
    host = Host()
    some, before = host.rows(), copy.deepcopy(host.caches)
    mono = host.bind(host.back_end())
    assert isinstance(mono, Mono)
    refusal = mono.prepare_step(replace(step_of(some), **changes))
    assert refusal is not None
    assert refusal.code == code
    with pytest.raises(RuntimeError):
        host.serve(some, mono)
    assert host.caches == before, "nothing is written"
    natively = host.serve(some)
    # What mono writes when it takes the step at last is what the host's own layers wrote.
    after = copy.deepcopy(host.caches)
    assert mono.prepare_step(step_of(some)) is None
    assert host.serve(some, mono) == natively
    assert host.caches == after != before


@pytest.mark.parametrize("name", ["qkv", "experts_up", "router_bias", "o"])
def test_incompatible_weights_keep_native_execution(name: str) -> None:
    host = Host()
    before = copy.deepcopy(host.caches)
    host.worlds[2].layer[name] = host.worlds[2].layer[name][:-1]
    refusal = host.bind(host.back_end())
    assert isinstance(refusal, Refusal)
    assert refusal.code == "mono-weights"
    assert f"{name} of layer 2" in refusal.sentence
    assert host.caches == before


def test_a_table_that_the_validator_refuses_is_not_built() -> None:
    def broken(kind: Kind, width: int) -> Table:
        return with_sum(table(kind, width), "down", dealt_by=("union_rank",))

    host = Host()
    before = copy.deepcopy(host.caches)
    mono = host.bind(host.back_end(broken))
    assert isinstance(mono, Mono)
    refusal = mono.prepare_step(step_of(host.rows()))
    assert refusal is not None
    assert refusal.code == "mono-build-failed"
    assert "width 4" in refusal.sentence
    assert host.caches == before
