"""All ranks give one answer: over a channel in this process, and over gloo with two processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.engine.mono.consensus import agree_over, alone
from infx.engine.mono.refusal import LEVELS, Refusal
from tests.engine.mono.consenting_rank import (
    LONG,
    MISSING,
    SCENARIOS,
    SCRATCH,
    WEIGHTS,
    Told,
    serve,
)


def answers(own: list[Refusal | None]) -> list[Refusal | None]:
    """Return what each rank answers when they say ``own``."""
    words: list[str] = []

    def note(mine: str) -> list[str]:
        words.append(mine)
        return []

    for refusal in own:
        agree_over(note)(refusal)
    return [agree_over(lambda mine: words)(refusal) for refusal in own]


REFUSALS = st.builds(Refusal, st.sampled_from(sorted(LEVELS)), st.text(max_size=60))


@given(st.lists(st.none() | REFUSALS, min_size=1, max_size=8))
def test_the_lowest_refusing_rank_speaks_for_all(own: list[Refusal | None]) -> None:
    expected = next((f"rank {i}: {r.sentence}" for i, r in enumerate(own) if r), None)
    for answer in answers(own):
        assert (answer and answer.sentence) == expected
        assert answer is None or answer.code in {r.code for r in own if r}


def test_the_only_rank_speaks_for_itself() -> None:
    assert alone(None) is None
    assert alone(WEIGHTS) is WEIGHTS


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, tuple[Told, Told]]]:
    """Return each scenario's answers of rank 0 and rank 1, two processes over gloo."""
    from infx.engine.ranks.exchange import rendezvous

    store = rendezvous()
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(2)]
    ranks = [
        context.Process(target=serve, args=(rank, store.port, pipes[rank][1]), daemon=True)
        for rank in range(2)
    ]
    for rank, (_, theirs) in zip(ranks, pipes, strict=True):
        rank.start()
        theirs.close()
    try:
        found = {}
        for name in SCENARIOS:
            assert all(ours.poll(90) for ours, _ in pipes), f"{name}: a rank does not answer"
            first, second = (ours.recv() for ours, _ in pipes)
            found[name] = (first, second)
        yield found
        for rank in ranks:
            rank.join(30)
        assert [rank.exitcode for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_both_ranks_answer_alike(name: str, told: dict[str, tuple[Told, Told]]) -> None:
    first, second = told[name]
    assert (first.bound, first.steps, first.served) == (second.bound, second.steps, second.served)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rank", "refusal"),
    [
        ("one refuses at bind", 1, WEIGHTS),
        ("both refuse, differently", 0, SCRATCH),
        ("one has no back end", 0, MISSING),
        ("one fails at bind", 1, Refusal("mono-bind-failed", "OSError: no device")),
    ],
)
def test_one_refusal_at_bind_keeps_all_ranks_native(
    name: str, rank: int, refusal: Refusal, told: dict[str, tuple[Told, Told]]
) -> None:
    for mine in told[name]:
        assert mine.bound == Refusal(refusal.code, f"rank {rank}: {refusal.sentence}")
        assert set(mine.asked) <= {"refuse"}
        assert mine.served == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rank", "sentence"),
    [
        ("one refuses a width", 1, SCRATCH.sentence),
        ("one fails at a width", 0, "width 8: MemoryError: too little"),
    ],
)
def test_one_refusal_of_a_width_refuses_it_on_all_ranks_once(
    name: str, rank: int, sentence: str, told: dict[str, tuple[Told, Told]]
) -> None:
    refusal = Refusal("mono-build-failed", f"rank {rank}: {sentence}")
    for mine in told[name]:
        assert mine.steps == (None, refusal, refusal)
        assert mine.asked == ("refuse", "build", "prepare", "build")
        assert mine.served == 1


@pytest.mark.slow
def test_ranks_that_agree_serve_and_a_long_sentence_is_cut(
    told: dict[str, tuple[Told, Told]],
) -> None:
    assert [mine.served for mine in told["all agree"]] == [3, 3]
    for mine in told["a long refusal"]:
        assert mine.bound is not None
        assert mine.bound.code == LONG.code
        assert LONG.sentence.startswith(mine.bound.sentence.removeprefix("rank 1: "))
        assert 1000 < len(mine.bound.sentence) < len(LONG.sentence)
