"""Colours and shapes of a report, once for the page, its charts and the PNG."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DARK", "DASHES", "LIGHT", "SERIES", "SHAPES", "Shape", "line_style", "shape_of"]

SERIES = 8
"""Colours before they repeat: ``c0`` … ``c7``."""

LIGHT = {
    "bg": "#fbfbf9", "card": "#ffffff", "ink": "#1c1e21", "soft": "#5a6068", "line": "#dcdfe2",
    "faint": "#eceeef", "hover": "#f1f4f8",
    "good": "#0b6b46", "note": "#4a5560", "attention": "#8a5a00", "bad": "#b3261e",
    "c0": "#0b62a8", "c1": "#c2410c", "c2": "#0f7a55", "c3": "#7a3e9d",
    "c4": "#8a6100", "c5": "#b3256b", "c6": "#00707b", "c7": "#4450b8",
}  # fmt: skip

DARK = {
    "bg": "#14171a", "card": "#1b1f23", "ink": "#e7e9ec", "soft": "#a3abb4", "line": "#363c43",
    "faint": "#272c31", "hover": "#232a31",
    "good": "#5fcf9d", "note": "#a8b3bf", "attention": "#e8b54a", "bad": "#ff8f85",
    "c0": "#6db3f2", "c1": "#ff9a5c", "c2": "#4fc79a", "c3": "#c79bea",
    "c4": "#e0b23c", "c5": "#f283b8", "c6": "#4cc3cf", "c7": "#9da8ff",
}  # fmt: skip

DASHES = ("none", "7 3", "2 3", "9 3 2 3", "14 4")
"""How the frontier of each series is dashed: ``d0`` … ``d4``; colours, shapes and dashes repeat
after 8, 6 and 5, so no two of the first 120 lines are drawn alike."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A mark: ``corners`` in units of its size around its middle (none: a circle), and the name
    that matplotlib has for it."""

    name: str
    marker: str
    corners: tuple[tuple[float, float], ...] = ()


SHAPES = (
    Shape("circle", "o"),
    Shape("square", "s", ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9))),
    Shape("triangle", "^", ((0, -1.15), (1.1, 0.85), (-1.1, 0.85))),
    Shape("diamond", "D", ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0))),
    Shape("hexagon", "H", ((-0.6, -1), (0.6, -1), (1.15, 0), (0.6, 1), (-0.6, 1), (-1.15, 0))),
    Shape("wedge", "v", ((0, 1.15), (1.1, -0.85), (-1.1, -0.85))),
)


def shape_of(number: int) -> Shape:
    """Return the shape of series ``number``."""
    return SHAPES[number % len(SHAPES)]


def line_style(number: int) -> str:
    """Return the classes of series ``number``'s frontier: its colour and its dash."""
    return f"s{number % SERIES} d{number % len(DASHES)}"
