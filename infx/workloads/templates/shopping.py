"""Buying, selling, earning and saving."""

from __future__ import annotations

from infx.workloads.templates.template import Template
from infx.workloads.templates.words import BAKED, FRUIT, GADGETS, STATIONERY

__all__ = ["SHOPPING"]

SHOPPING: tuple[Template, ...] = (
    Template(
        name="rest-at-market",
        numbers={"a": range(24, 97), "b": range(3, 21), "c": range(2, 10), "x": range(3, 40)},
        words={"item": FRUIT},
        story="{name} picks {a} {item} and keeps {b} of them for jam. "
        "{She} sells the rest at the market for ${c} each.",
        aside="The market is {x} miles from the farm.",
        ask="How many dollars does {name} earn?",
        steps=(
            ("left = a - b", "{name} sells {work} {item}."),
            ("pay = left * c", "{She} earns {work} dollars."),
        ),
    ),
    Template(
        name="change-from-bill",
        numbers={
            "a": range(3, 10),
            "b": range(2, 9),
            "c": range(8, 41),
            "d": range(50, 101, 50),
            "x": range(2, 50),
        },
        words={"item": STATIONERY},
        story="{name} buys {a} {item} for ${b} each and a bag for ${c}, and pays with ${d}.",
        aside="The shop has been open for {x} years.",
        ask="How many dollars does {name} get back?",
        steps=(
            ("cost = a * b", "The {item} cost {work} dollars."),
            ("total = cost + c", "Everything costs {work} dollars."),
            ("change = d - total", "{name} gets {work} dollars back."),
        ),
    ),
    Template(
        name="two-box-sizes",
        numbers={
            "a": range(3, 30),
            "b": range(2, 10),
            "c": range(3, 25),
            "d": range(11, 13),
            "e": range(10, 60),
            "x": range(5, 60),
        },
        words={"item": BAKED},
        story="A shop sells {a} small boxes of {item} for ${b} each "
        "and {c} large boxes for ${d} each. All the empty boxes together cost the shop ${e}.",
        aside="The shop also gives away {x} paper bags.",
        ask="How many dollars does the shop keep?",
        steps=(
            ("small = a * b", "The small boxes bring {work} dollars."),
            ("large = c * d", "The large boxes bring {work} dollars."),
            ("total = small + large", "All boxes bring {work} dollars."),
            ("kept = total - e", "The shop keeps {work} dollars."),
        ),
    ),
    Template(
        name="half-price-coat",
        numbers={
            "a": range(40, 161, 2),
            "b": range(3, 20),
            "c": range(6, 36),
            "x": range(12, 80),
        },
        story="A coat costs ${a}. {name} gets it for half the price, less a coupon of ${b}, "
        "and also buys a hat for ${c}.",
        aside="{She} saw {x} other coats in the shop.",
        ask="How many dollars does {name} spend?",
        steps=(
            ("half = a / 2", "Half the price is {work} dollars."),
            ("coat = half - b", "With the coupon the coat costs {work} dollars."),
            ("total = coat + c", "{name} spends {work} dollars."),
        ),
    ),
    Template(
        name="saving-for-bike",
        numbers={
            "a": range(6, 36),
            "b": range(3, 13),
            "c": range(10, 60),
            "d": range(150, 500, 10),
            "x": range(5, 16),
        },
        story="{name} wants a bike for ${d}. {She} saves ${a} a week for {b} weeks "
        "and gets ${c} as a present.",
        aside="{name} has had {her} old bike for {x} years.",
        ask="How many more dollars does {name} need?",
        steps=(
            ("saved = a * b", "{name} saves {work} dollars."),
            ("has = saved + c", "With the present {she} has {work} dollars."),
            ("need = d - has", "{She} needs {work} more dollars."),
        ),
    ),
    Template(
        name="percent-off",
        numbers={"a": range(20, 500, 10), "t": range(2, 9), "x": range(101, 200)},
        words={"item": GADGETS},
        story="A {item} costs ${a}. In the sale {name} gets {t}0% off the price.",
        aside="The shop has {x} of them left.",
        ask="How many dollars does {name} pay for the {item}?",
        steps=(
            ("tenth = a / 10", "Ten percent of the price is {work} dollars."),
            ("off = tenth * t", "The discount is {work} dollars."),
            ("price = a - off", "{name} pays {work} dollars."),
        ),
    ),
    Template(
        name="dinner-with-tip",
        numbers={"a": range(2, 10), "b": range(30, 190), "c": range(5, 31), "x": range(12, 90)},
        story="{a} friends share the bill for a dinner equally. "
        "The food costs ${b}, and they add a tip of ${c}.",
        aside="They wait {x} minutes for a table.",
        ask="How many dollars does each friend pay?",
        steps=(
            ("bill = b + c", "The bill is {work} dollars."),
            ("each = bill / a", "Each friend pays {work} dollars."),
        ),
    ),
    Template(
        name="museum-tickets",
        numbers={
            "a": range(13, 26),
            "b": range(4, 13),
            "c": range(2, 9),
            "d": range(3, 30),
            "e": range(5, 40),
            "x": range(14, 70),
        },
        story="A museum ticket costs ${a} for an adult and ${b} for a child. "
        "A group of {c} adults and {d} children gets ${e} off.",
        aside="The museum has {x} rooms.",
        ask="How many dollars does the group pay?",
        steps=(
            ("adults = a * c", "The adults pay {work} dollars."),
            ("children = b * d", "The children pay {work} dollars."),
            ("total = adults + children", "The tickets cost {work} dollars."),
            ("paid = total - e", "The group pays {work} dollars."),
        ),
    ),
    Template(
        name="shirts-sent-back",
        numbers={
            "a": range(5, 15),
            "b": range(11, 40),
            "c": range(2, 8),
            "d": range(4, 20),
            "x": range(2, 15),
        },
        story="{name} orders {a} shirts for ${b} each and sends {c} of them back for a refund. "
        "The delivery costs ${d}.",
        aside="The parcel arrives after {x} days.",
        ask="How many dollars does {name} spend in the end?",
        steps=(
            ("kept = a - c", "{name} keeps {work} shirts."),
            ("cost = kept * b", "They cost {work} dollars."),
            ("total = cost + d", "With the delivery {she} spends {work} dollars."),
        ),
    ),
    Template(
        name="two-days-of-work",
        numbers={"a": range(11, 33), "b": range(2, 7), "c": range(2, 7), "x": range(13, 70)},
        story="{name} earns ${a} an hour in a bakery. "
        "{She} works {b} hours on Monday and {c} hours on Tuesday.",
        aside="The bus to work takes {x} minutes.",
        ask="How many dollars does {name} earn on the two days?",
        steps=(
            ("hours = b + c", "{name} works {work} hours."),
            ("pay = hours * a", "{She} earns {work} dollars."),
        ),
    ),
    Template(
        name="extra-hours",
        numbers={
            "a": range(9, 25),
            "b": range(26, 41),
            "c": range(5, 13),
            "d": range(2, 9),
            "e": range(12, 90),
            "x": range(42, 99),
        },
        story="A job pays ${a} for a normal hour and ${b} for an extra hour. "
        "{name} works {c} normal hours and {d} extra hours and pays ${e} in tax.",
        aside="There are {x} people in the company.",
        ask="How many dollars does {name} have left?",
        steps=(
            ("normal = a * c", "The normal hours pay {work} dollars."),
            ("extra = b * d", "The extra hours pay {work} dollars."),
            ("pay = normal + extra", "{name} earns {work} dollars."),
            ("left = pay - e", "{She} has {work} dollars left."),
        ),
    ),
    Template(
        name="two-gym-plans",
        numbers={
            "a": range(12, 40),
            "b": range(12, 60),
            "c": range(15, 80),
            "d": range(2, 13),
            "x": range(5, 99),
        },
        story="Gym Red costs ${a} a month. Gym Blue costs ${b} a month and ${c} to join. "
        "{name} wants to train for {d} months.",
        aside="Gym Blue has {x} lockers.",
        ask="How many more dollars does Gym Blue cost than Gym Red?",
        steps=(
            ("red = a * d", "Gym Red costs {work} dollars."),
            ("months = b * d", "The months at Gym Blue cost {work} dollars."),
            ("blue = months + c", "Gym Blue costs {work} dollars."),
            ("more = blue - red", "Gym Blue costs {work} dollars more."),
        ),
    ),
    Template(
        name="wage-and-rent",
        numbers={
            "a": range(300, 700, 10),
            "b": range(90, 250, 10),
            "c": range(40, 120, 5),
            "d": range(2, 13),
            "x": range(18, 80),
        },
        story="{name} earns ${a} a week. Every week {she} pays ${b} for rent and ${c} for food, "
        "and saves the rest.",
        aside="{name} is {x} years old.",
        ask="How many dollars does {name} save in {d} weeks?",
        steps=(
            ("left = a - b - c", "Every week {name} saves {work} dollars."),
            ("saved = left * d", "In {d} weeks {she} saves {work} dollars."),
        ),
    ),
)
