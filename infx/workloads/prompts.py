"""Prompts of one exact length, no two alike, from a seed.

A repeated prompt is answered from the prefix cache: its TTFT is the cache's, not the engine's. So
every prompt of a run differs from every other one, from its first word on while the words last.

The length is exact by construction: the tokens that each word adds are measured once, with the
server's own tokenizer and chat template, and words are drawn until the sum is the asked length.
Some whole texts are measured then; where a tokenizer joins words, all are, and drawn again until
they have the length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from infx.domain.errors import MeasurementError
from infx.workloads.prompt_words import WORDS

__all__ = ["Measure", "make_prompts"]

Measure = Callable[[Sequence[str]], Sequence[int]]
"""Given texts, the tokens that the server counts for a chat of each one, template included."""

CHECKED = 64
"""Texts that are measured whole: where these are exact, words do not touch each other."""

ROUNDS = 8
"""A text that is not of the asked length after so many draws more stays as it is."""

DRAWS = 100
"""So many repeats in a row mean that there are no more texts."""


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """``opening`` holds the tokens of a chat of one word, ``adding`` what it adds after another.

    ``fitting[n]`` lists the words after which the rest of ``n`` tokens can be filled exactly; with
    more tokens left than it is long, every word fits.
    """

    opening: Mapping[str, int]
    adding: Mapping[str, int]
    fitting: Sequence[Sequence[str]]


def make_prompts(count: int, tokens: int, seed: int, measure: Measure) -> list[str]:
    """Return ``count`` different texts of ordinary words, each of ``tokens`` tokens by ``measure``.

    The same arguments give the same texts on every machine. Raises MeasurementError
    (``isl-too-short``) when there are not as many texts of that length.
    """
    rng, lexicon = Random(seed), _lexicon(measure)
    openings, seen = _openings(rng, lexicon, tokens), set[str]()

    def draw() -> str:
        return _unseen(rng, lexicon, tokens, openings, seen)

    texts = [draw() for _ in range(count)]
    if any(length != tokens for length in measure(texts[:CHECKED])):
        _correct(texts, tokens, measure, draw)
    return texts


def _correct(texts: list[str], tokens: int, measure: Measure, draw: Callable[[], str]) -> None:
    """Draw the texts that are not of the asked length again, in place."""
    places = list(range(len(texts)))
    for _ in range(ROUNDS):
        lengths = measure([texts[place] for place in places])
        places = [p for p, length in zip(places, lengths, strict=True) if length != tokens]
        for place in places:
            texts[place] = draw()


def _lexicon(measure: Measure) -> _Lexicon:
    opening = dict(zip(WORDS, measure(WORDS), strict=True))
    pairs = measure([f"{WORDS[0]} {word}" for word in WORDS])
    adding = {w: pair - opening[WORDS[0]] for w, pair in zip(WORDS, pairs, strict=True)}
    return _Lexicon(opening, adding, _fitting(adding))


def _fitting(adding: Mapping[str, int]) -> list[list[str]]:
    longest = max(adding.values())
    fitting: list[list[str]] = [[]]
    for left in range(1, 5 * longest + 1):
        fitting.append([word for word, n in adding.items() if _fills(left - n, fitting)])
    return fitting


def _fills(left: int, fitting: Sequence[Sequence[str]]) -> bool:
    """True when words can make exactly ``left`` tokens."""
    return left == 0 or left >= len(fitting) or (left > 0 and bool(fitting[left]))


def _openings(rng: Random, lexicon: _Lexicon, tokens: int) -> Iterator[str]:
    """Yield first words, each of them once before any comes again."""
    words = [word for word, n in lexicon.opening.items() if _fills(tokens - n, lexicon.fitting)]
    if not words:
        shortest = min(lexicon.opening.values())
        raise _too_short(f"isl {tokens}: one word and the chat template take {shortest} tokens")
    while True:
        rng.shuffle(words)
        yield from words


def _unseen(
    rng: Random, lexicon: _Lexicon, tokens: int, openings: Iterator[str], seen: set[str]
) -> str:
    for _ in range(DRAWS):
        first = next(openings)
        rest = _words(rng, lexicon, tokens - lexicon.opening[first])
        text = " ".join([first, *rest])
        if text not in seen:
            seen.add(text)
            return text
    raise _too_short(f"isl {tokens}: no more than {len(seen)} prompts of that length were found")


def _words(rng: Random, lexicon: _Lexicon, left: int) -> list[str]:
    """Return words that add ``left`` tokens: many at once while there is room, the last ones by
    what fits."""
    words: list[str] = []
    fitting = lexicon.fitting
    longest = len(fitting) // 5
    while left >= len(fitting):
        some = rng.choices(WORDS, k=max(1, left // longest - 4))
        words += some
        left -= sum(map(lexicon.adding.__getitem__, some))
    while left:
        word = rng.choice(fitting[left])
        words.append(word)
        left -= lexicon.adding[word]
    return words


def _too_short(message: str) -> MeasurementError:
    return MeasurementError("isl-too-short", message, hint="raise isl")
