"""Farms, halls, tanks and other places that hold many things."""

from __future__ import annotations

from infx.workloads.templates.template import Template
from infx.workloads.templates.words import FLOWERS

__all__ = ["PLACES"]

PLACES: tuple[Template, ...] = (
    Template(
        name="library-shelves",
        numbers={
            "a": range(4, 13),
            "b": range(15, 60),
            "c": range(60, 150),
            "d": range(5, 60),
            "x": range(3, 40),
        },
        story="A library has {a} shelves with {b} books each. "
        "In one week {c} books are lent out and {d} books come back.",
        aside="The library has {x} chairs.",
        ask="How many books are in the library now?",
        steps=(
            ("all = a * b", "At first there are {work} books."),
            ("rest = all - c", "After lending there are {work} books."),
            ("now = rest + d", "In the end there are {work} books."),
        ),
    ),
    Template(
        name="garden-rows",
        numbers={"a": range(4, 13), "b": range(11, 45), "c": range(5, 60), "x": range(61, 99)},
        words={"item": FLOWERS},
        story="{name} plants {a} rows of {item} with {b} plants in each row. "
        "Later {c} plants die in the frost.",
        aside="The garden is {x} feet long.",
        ask="How many plants are left?",
        steps=(
            ("all = a * b", "{name} plants {work} {item}."),
            ("left = all - c", "After the frost {work} are left."),
        ),
    ),
    Template(
        name="school-buses",
        numbers={
            "a": range(3, 13),
            "b": range(15, 32),
            "c": range(4, 30),
            "d": range(6, 13),
            "x": range(33, 95),
        },
        story="A school takes {a} classes of {b} pupils and {c} teachers on a trip. "
        "They ride in vans with {d} seats each, besides the driver's, and no seat stays empty.",
        aside="The trip is {x} miles long.",
        ask="How many vans are there?",
        steps=(
            ("pupils = a * b", "There are {work} pupils."),
            ("people = pupils + c", "There are {work} people."),
            ("vans = people / d", "They fill {work} vans."),
        ),
    ),
    Template(
        name="filling-tank",
        numbers={
            "a": range(200, 700, 10),
            "b": range(11, 50),
            "c": range(3, 13),
            "d": range(5, 60),
            "x": range(60, 99),
        },
        story="An empty tank can hold {a} liters. A pump brings {b} liters a minute "
        "for {c} minutes, but {d} liters leak out.",
        aside="The tank is {x} inches high.",
        ask="How many liters are missing until the tank is full?",
        steps=(
            ("pumped = b * c", "The pump brings {work} liters."),
            ("held = pumped - d", "The tank then has {work} liters."),
            ("missing = a - held", "There are {work} liters missing."),
        ),
    ),
    Template(
        name="hall-chairs",
        numbers={
            "a": range(5, 13),
            "b": range(14, 40),
            "c": range(3, 20),
            "d": range(30, 250),
            "x": range(21, 90),
        },
        story="A hall has {a} rows of {b} chairs. {c} chairs are broken, "
        "and {d} people sit down on the others.",
        aside="The concert lasts {x} minutes.",
        ask="How many good chairs are free?",
        steps=(
            ("all = a * b", "There are {work} chairs."),
            ("good = all - c", "Of these {work} are good."),
            ("free = good - d", "Then {work} chairs are free."),
        ),
    ),
    Template(
        name="car-park",
        numbers={
            "a": range(3, 10),
            "b": range(25, 80),
            "c": range(60, 300),
            "d": range(15, 60),
            "x": range(2, 15),
        },
        story="An empty car park has {a} floors with {b} spaces each. "
        "In the morning {c} cars drive in, and by noon {d} of them leave.",
        aside="An hour of parking costs ${x}.",
        ask="How many spaces are free at noon?",
        steps=(
            ("spaces = a * b", "There are {work} spaces."),
            ("rest = spaces - c", "After the morning {work} spaces are free."),
            ("free = rest + d", "At noon {work} spaces are free."),
        ),
    ),
    Template(
        name="legs-on-farm",
        numbers={"a": range(11, 90), "b": range(13, 120), "x": range(3, 60)},
        words={"item": ("cows", "goats", "horses", "sheep", "pigs", "donkeys")},
        story="On a farm there are {a} {item} and {b} hens. "
        "Each of the {item} has four legs, and each hen has two.",
        aside="The farmer also grows {x} trees.",
        ask="How many legs do the animals have in all?",
        steps=(
            ("four = a * 4", "The {item} have {work} legs."),
            ("two = b * 2", "The hens have {work} legs."),
            ("legs = four + two", "In all there are {work} legs."),
        ),
    ),
)
