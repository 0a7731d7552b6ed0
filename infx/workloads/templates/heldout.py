"""Templates that no training question is made from: they measure generalisation."""

from __future__ import annotations

from infx.workloads.templates.template import Template
from infx.workloads.templates.words import FRUIT

__all__ = ["HELDOUT"]

HELDOUT: tuple[Template, ...] = (
    Template(
        name="drinks-machine",
        numbers={"a": range(120, 400), "b": range(15, 60), "c": range(20, 90), "x": range(2, 9)},
        story="There are {a} cans in a drinks machine. {b} cans are sold in the morning "
        "and twice as many in the afternoon. Then {c} cans are put in.",
        aside="A can costs ${x}.",
        ask="How many cans are in the machine now?",
        steps=(
            ("later = b * 2", "In the afternoon {work} cans are sold."),
            ("rest = a - b - later", "Then there are {work} cans."),
            ("now = rest + c", "Now there are {work} cans."),
        ),
    ),
    Template(
        name="quarter-spoiled",
        numbers={"a": range(40, 240, 4), "b": range(2, 10), "x": range(11, 38)},
        words={"item": FRUIT},
        story="{name} picks {a} pounds of {item}. A quarter of them spoil, "
        "and {she} sells the rest for ${b} a pound.",
        aside="{She} works for {x} hours.",
        ask="How many dollars does {name} earn?",
        steps=(
            ("bad = a / 4", "{work} pounds spoil."),
            ("good = a - bad", "{name} sells {work} pounds."),
            ("pay = good * b", "{She} earns {work} dollars."),
        ),
    ),
    Template(
        name="relay-race",
        numbers={
            "a": range(3, 10),
            "b": range(110, 300, 10),
            "c": range(15, 95),
            "x": range(2, 9),
        },
        story="In a relay race {a} runners run {b} meters each. "
        "A last runner runs {c} meters more than each of them.",
        aside="The race takes {x} minutes.",
        ask="How many meters long is the race?",
        steps=(
            ("first = a * b", "The first runners run {work} meters."),
            ("last = b + c", "The last one runs {work} meters."),
            ("all = first + last", "The race is {work} meters long."),
        ),
    ),
    Template(
        name="paint-for-rooms",
        numbers={
            "a": range(3, 9),
            "b": range(4, 13),
            "c": range(5, 30),
            "d": range(8, 13),
            "x": range(31, 90),
        },
        story="To paint a room takes {a} cans of paint. {name} wants to paint {b} rooms "
        "and already has {c} cans. A can costs ${d}.",
        aside="The largest room is {x} feet long.",
        ask="How many dollars does {name} spend on paint?",
        steps=(
            ("all = a * b", "The rooms take {work} cans."),
            ("buy = all - c", "{name} buys {work} cans."),
            ("cost = buy * d", "{She} spends {work} dollars."),
        ),
    ),
    Template(
        name="coins-in-jar",
        numbers={"a": range(11, 80), "b": range(11, 80), "c": range(25, 400, 5), "x": range(2, 9)},
        story="{name} has {a} five-cent coins and {b} ten-cent coins in a jar. "
        "{She} spends {c} cents on a snack.",
        aside="{name} has had the jar for {x} years.",
        ask="How many cents does {name} have left?",
        steps=(
            ("fives = a * 5", "The five-cent coins are worth {work} cents."),
            ("tens = b * 10", "The ten-cent coins are worth {work} cents."),
            ("left = fives + tens - c", "{name} has {work} cents left."),
        ),
    ),
    Template(
        name="honey-crates",
        numbers={
            "a": range(5, 13),
            "b": range(12, 40),
            "c": range(4, 13),
            "d": range(2, 15),
            "x": range(41, 99),
        },
        story="{name} has {a} beehives, and each gives {b} jars of honey. "
        "The jars go in crates of {c}, and {d} crates are sold.",
        aside="A jar weighs {x} ounces.",
        ask="How many crates are left?",
        steps=(
            ("jars = a * b", "The hives give {work} jars."),
            ("crates = jars / c", "They fill {work} crates."),
            ("left = crates - d", "There are {work} crates left."),
        ),
    ),
)
