"""Sharing, packing and counting small things."""

from __future__ import annotations

from infx.workloads.templates.template import Template
from infx.workloads.templates.words import BAKED, FRUIT, TOYS

__all__ = ["COUNTING"]

COUNTING: tuple[Template, ...] = (
    Template(
        name="boxes-to-sell",
        numbers={
            "a": range(40, 200),
            "b": range(3, 13),
            "c": range(2, 8),
            "d": range(4, 13),
            "x": range(14, 39),
        },
        words={"item": BAKED},
        story="{name} packs {a} {item} in boxes of {b}. {She} gives {c} boxes to friends "
        "and sells the others for ${d} each.",
        aside="The oven is {x} years old.",
        ask="How many dollars does {name} get?",
        steps=(
            ("boxes = a / b", "{name} fills {work} boxes."),
            ("left = boxes - c", "{She} sells {work} boxes."),
            ("pay = left * d", "{She} gets {work} dollars."),
        ),
    ),
    Template(
        name="eggs-kept",
        numbers={"a": range(20, 90), "b": range(3, 18), "c": range(3, 13), "x": range(19, 70)},
        story="The hens on a farm lay {a} eggs a day. Each day {b} eggs are eaten "
        "and the rest are stored.",
        aside="The farm has {x} sheep.",
        ask="How many eggs are stored in {c} days?",
        steps=(
            ("kept = a - b", "Each day {work} eggs are stored."),
            ("all = kept * c", "In {c} days {work} eggs are stored."),
        ),
    ),
    Template(
        name="twice-as-many",
        numbers={"a": range(15, 120), "b": range(4, 60), "x": range(6, 40)},
        words={"item": TOYS},
        story="{name} has {a} {item}. {other} has twice as many, "
        "but gives {b} of them to a cousin.",
        aside="The cousin is {x} years old.",
        ask="How many {item} do {name} and {other} have together now?",
        steps=(
            ("double = a * 2", "At first {other} has {work} {item}."),
            ("left = double - b", "Then {other} has {work} {item}."),
            ("all = a + left", "Together they have {work} {item}."),
        ),
    ),
    Template(
        name="half-given-away",
        numbers={
            "a": range(24, 200, 2),
            "b": range(3, 20),
            "c": range(4, 45),
            "x": range(5, 90),
        },
        words={"item": TOYS},
        story="{name} has {a} {item} and gives half of them to {other}. "
        "Then {she} loses {b} and finds {c} in a drawer.",
        aside="{other} also has {x} books.",
        ask="How many {item} does {name} have now?",
        steps=(
            ("half = a / 2", "{name} keeps {work} {item}."),
            ("less = half - b", "After the loss {she} has {work}."),
            ("now = less + c", "Now {she} has {work} {item}."),
        ),
    ),
    Template(
        name="shared-equally",
        numbers={"a": range(20, 150), "b": range(6, 60), "c": range(3, 13), "x": range(14, 99)},
        words={"item": TOYS},
        story="{name} has {a} {item} and finds {b} more. "
        "{She} shares all of them equally among {c} children.",
        aside="The box for the {item} weighs {x} ounces.",
        ask="How many {item} does each child get?",
        steps=(
            ("all = a + b", "There are {work} {item}."),
            ("each = all / c", "Each child gets {work} {item}."),
        ),
    ),
    Template(
        name="stamp-album",
        numbers={
            "a": range(11, 36),
            "b": range(3, 13),
            "c": range(4, 30),
            "d": range(5, 70),
            "x": range(36, 99),
        },
        story="A page of an album holds {a} stamps. {name} has {b} full pages "
        "and {c} loose stamps. {other} has {d} stamps fewer than {name}.",
        aside="The oldest stamp is {x} years old.",
        ask="How many stamps does {other} have?",
        steps=(
            ("full = a * b", "The full pages hold {work} stamps."),
            ("all = full + c", "{name} has {work} stamps."),
            ("fewer = all - d", "{other} has {work} stamps."),
        ),
    ),
    Template(
        name="baker-bags",
        numbers={
            "a": range(4, 13),
            "b": range(12, 40),
            "c": range(3, 25),
            "d": range(3, 13),
            "x": range(150, 250),
        },
        words={"item": BAKED},
        story="A baker makes {a} trays of {b} {item}. {c} of them burn, "
        "and the rest are put in bags of {d}.",
        aside="The oven is heated to {x} degrees.",
        ask="How many bags does the baker fill?",
        steps=(
            ("all = a * b", "The baker makes {work} {item}."),
            ("good = all - c", "After the burnt ones {work} are left."),
            ("bags = good / d", "They fill {work} bags."),
        ),
    ),
    Template(
        name="party-boxes",
        numbers={
            "a": range(11, 50),
            "b": range(2, 6),
            "c": range(3, 20),
            "d": range(4, 13),
            "x": range(51, 99),
        },
        words={"item": BAKED},
        story="At a party {a} guests eat {b} {item} each, and {c} {item} are left at the end. "
        "The {item} came in boxes of {d}.",
        aside="The room has {x} balloons in it.",
        ask="How many boxes were there?",
        steps=(
            ("eaten = a * b", "The guests eat {work} {item}."),
            ("all = eaten + c", "There were {work} {item}."),
            ("boxes = all / d", "They came in {work} boxes."),
        ),
    ),
    Template(
        name="third-is-red",
        numbers={"a": range(30, 240, 3), "b": range(5, 60), "x": range(6, 90)},
        words={"item": ("kites", "balls", "shirts", "cars", "hats", "lamps", "cups")},
        story="A shop has {a} {item}. A third of them are red, {b} are blue, "
        "and the rest are green.",
        aside="The red ones cost ${x} each.",
        ask="How many green {item} does the shop have?",
        steps=(
            ("red = a / 3", "There are {work} red {item}."),
            ("green = a - red - b", "There are {work} green {item}."),
        ),
    ),
    Template(
        name="puzzle-pieces",
        numbers={
            "a": range(150, 600, 10),
            "b": range(11, 45),
            "c": range(2, 9),
            "d": range(2, 10),
            "x": range(46, 99),
        },
        story="A puzzle has {a} pieces. {name} places {b} pieces a day for {c} days. "
        "{She} wants to place the rest in {d} days, the same number each day.",
        aside="The table is {x} inches wide.",
        ask="How many pieces a day is that?",
        steps=(
            ("done = b * c", "{name} has placed {work} pieces."),
            ("left = a - done", "There are {work} pieces left."),
            ("daily = left / d", "That is {work} pieces a day."),
        ),
    ),
    Template(
        name="necklaces",
        numbers={
            "a": range(8, 30),
            "b": range(5, 30),
            "c": range(3, 13),
            "d": range(150, 700, 10),
            "x": range(31, 99),
        },
        story="A necklace takes {a} red beads and {b} white beads. "
        "{name} has {d} beads, enough of each color, and makes {c} necklaces.",
        aside="Each necklace is {x} centimeters long.",
        ask="How many beads are left?",
        steps=(
            ("per = a + b", "A necklace takes {work} beads."),
            ("used = per * c", "The necklaces take {work} beads."),
            ("left = d - used", "There are {work} beads left."),
        ),
    ),
    Template(
        name="fruit-baskets",
        numbers={
            "a": range(15, 80),
            "b": range(15, 80),
            "c": range(3, 30),
            "d": range(3, 13),
            "x": range(81, 150),
        },
        words={"item": FRUIT},
        story="{name} picks {a} {item} and {other} picks {b}. They throw {c} bad ones away "
        "and put the rest in baskets of {d}.",
        aside="The orchard has {x} trees.",
        ask="How many baskets do they fill?",
        steps=(
            ("good = a + b - c", "They keep {work} {item}."),
            ("baskets = good / d", "They fill {work} baskets."),
        ),
    ),
)
