"""Time, distance, age, speed and points."""

from __future__ import annotations

from infx.workloads.templates.template import Template

__all__ = ["MOVING"]

MOVING: tuple[Template, ...] = (
    Template(
        name="two-speeds",
        numbers={
            "a": range(2, 7),
            "b": range(31, 70),
            "c": range(2, 7),
            "d": range(31, 70),
            "e": range(300, 900, 10),
            "x": range(8, 30),
        },
        story="{name} has a trip of {e} miles to make. {She} drives for {a} hours "
        "at {b} miles an hour and then for {c} hours at {d} miles an hour.",
        aside="The car is {x} years old.",
        ask="How many miles are left?",
        steps=(
            ("first = a * b", "First {name} drives {work} miles."),
            ("second = c * d", "Then {she} drives {work} miles."),
            ("all = first + second", "In all {she} drives {work} miles."),
            ("left = e - all", "There are {work} miles left."),
        ),
    ),
    Template(
        name="there-and-back",
        numbers={"a": range(3, 20), "b": range(3, 7), "c": range(3, 13), "x": range(21, 60)},
        story="{name} lives {a} miles from work and rides a bike there and back "
        "on {b} days of each week.",
        aside="One ride takes {x} minutes.",
        ask="How many miles does {name} ride in {c} weeks?",
        steps=(
            ("day = a * 2", "In a day {name} rides {work} miles."),
            ("week = day * b", "In a week {she} rides {work} miles."),
            ("all = week * c", "In {c} weeks {she} rides {work} miles."),
        ),
    ),
    Template(
        name="book-two-days",
        numbers={"a": range(120, 400), "b": range(12, 60), "x": range(6, 12)},
        story="A book has {a} pages. {name} reads {b} pages on Monday "
        "and twice as many on Tuesday.",
        aside="The book has {x} chapters.",
        ask="How many pages are left to read?",
        steps=(
            ("tuesday = b * 2", "On Tuesday {name} reads {work} pages."),
            ("read = b + tuesday", "In two days {she} reads {work} pages."),
            ("left = a - read", "There are {work} pages left."),
        ),
    ),
    Template(
        name="days-to-finish",
        numbers={"a": range(120, 480), "b": range(15, 110), "c": range(4, 13), "x": range(13, 40)},
        story="{name} has read {b} pages of a book with {a} pages. "
        "From now on {she} reads {c} pages a day.",
        aside="The book costs ${x}.",
        ask="In how many days does {name} finish the book?",
        steps=(
            ("left = a - b", "There are {work} pages left."),
            ("days = left / c", "{name} needs {work} days."),
        ),
    ),
    Template(
        name="films-and-show",
        numbers={"a": range(75, 160), "b": range(2, 7), "c": range(20, 70), "x": range(8, 19)},
        story="A film lasts {a} minutes. {name} watches it {b} times "
        "and watches one show of {c} minutes.",
        aside="A ticket for the film costs ${x}.",
        ask="For how many minutes does {name} watch?",
        steps=(
            ("film = a * b", "The film takes {work} minutes."),
            ("all = film + c", "In all {name} watches for {work} minutes."),
        ),
    ),
    Template(
        name="practice-weeks",
        numbers={"a": range(10, 46), "b": range(15, 61), "c": range(2, 7), "x": range(62, 99)},
        story="{name} plays the piano for {a} minutes on each of the five school days "
        "and for {b} minutes on each of the two days of the weekend.",
        aside="{name} knows {x} songs.",
        ask="How many minutes does {name} play in {c} weeks?",
        steps=(
            ("school = a * 5", "On school days {name} plays {work} minutes."),
            ("weekend = b * 2", "On the weekend {she} plays {work} minutes."),
            ("week = school + weekend", "In a week {she} plays {work} minutes."),
            ("all = week * c", "In {c} weeks {she} plays {work} minutes."),
        ),
    ),
    Template(
        name="sum-of-ages",
        numbers={"a": range(9, 46), "b": range(3, 18), "x": range(150, 190)},
        story="{name} is {a} years old. {other} is {b} years younger than twice {name}'s age.",
        aside="There are {x} houses in {name}'s street.",
        ask="How old are {name} and {other} together?",
        steps=(
            ("double = a * 2", "Twice {name}'s age is {work} years."),
            ("age = double - b", "{other} is {work} years old."),
            ("all = a + age", "Together they are {work} years old."),
        ),
    ),
    Template(
        name="father-later",
        numbers={"a": range(9, 15), "b": range(3, 5), "c": range(3, 25), "x": range(82, 99)},
        story="{name} is {a} years old, and {her} father is {b} times as old.",
        aside="The family's house is {x} years old.",
        ask="How old will the father be in {c} years?",
        steps=(
            ("father = a * b", "The father is {work} years old."),
            ("later = father + c", "In {c} years he will be {work} years old."),
        ),
    ),
    Template(
        name="laps",
        numbers={
            "a": range(2, 7),
            "b": range(110, 260, 10),
            "c": range(2, 7),
            "x": range(13, 60),
        },
        story="A lap around the park is {b} meters. "
        "{name} runs {a} laps on Monday and {c} laps on Friday.",
        aside="On Monday the run takes {x} minutes.",
        ask="How many meters does {name} run in all?",
        steps=(
            ("laps = a + c", "{name} runs {work} laps."),
            ("all = laps * b", "{She} runs {work} meters."),
        ),
    ),
    Template(
        name="two-machines",
        numbers={
            "a": range(12, 80),
            "b": range(12, 80),
            "c": range(3, 13),
            "d": range(5, 60),
            "x": range(81, 130),
        },
        words={"item": ("toys", "bolts", "cups", "tiles", "keys", "bottles")},
        story="One machine makes {a} {item} an hour and another makes {b} an hour. "
        "Both run for {c} hours, and {d} of the {item} are faulty.",
        aside="The factory has {x} workers.",
        ask="How many good {item} are made?",
        steps=(
            ("both = a + b", "In an hour they make {work} {item}."),
            ("made = both * c", "In {c} hours they make {work} {item}."),
            ("good = made - d", "Of these {work} are good."),
        ),
    ),
    Template(
        name="typing-together",
        numbers={"a": range(25, 80), "b": range(5, 30), "c": range(3, 13), "x": range(82, 99)},
        story="{name} types {a} words a minute. {other} types {b} words a minute more.",
        aside="Their desk is {x} years old.",
        ask="How many words do they type together in {c} minutes?",
        steps=(
            ("faster = a + b", "{other} types {work} words a minute."),
            ("both = a + faster", "Together they type {work} words a minute."),
            ("all = both * c", "In {c} minutes they type {work} words."),
        ),
    ),
    Template(
        name="train-stops",
        numbers={"a": range(60, 300), "b": range(15, 60), "c": range(10, 90), "x": range(91, 120)},
        story="A train starts with {a} people. At the first stop {b} get off and {c} get on. "
        "At the second stop half of the people get off.",
        aside="The train goes {x} miles an hour.",
        ask="How many people are on the train then?",
        steps=(
            ("riding = a - b + c", "After the first stop there are {work} people."),
            ("left = riding / 2", "After the second stop there are {work} people."),
        ),
    ),
    Template(
        name="cutting-rope",
        numbers={
            "a": range(3, 13),
            "b": range(8, 40),
            "c": range(150, 600, 5),
            "d": range(2, 10),
            "x": range(41, 99),
        },
        story="{name} has a rope of {c} feet. {She} cuts off {a} pieces of {b} feet "
        "and cuts the rest into {d} equal pieces.",
        aside="The rope weighs {x} pounds.",
        ask="How many feet long is each of the equal pieces?",
        steps=(
            ("used = a * b", "{name} cuts off {work} feet."),
            ("left = c - used", "The rest is {work} feet long."),
            ("each = left / d", "Each piece is {work} feet long."),
        ),
    ),
    Template(
        name="average-of-three",
        numbers={
            "a": range(12, 120),
            "b": range(12, 120),
            "c": range(12, 120),
            "x": range(2, 11),
        },
        story="{name} scores {a} points in the first game, {b} points in the second "
        "and {c} points in the third.",
        aside="{name} has played for {x} years.",
        ask="How many points does {name} score in a game on average?",
        steps=(
            ("all = a + b + c", "{name} scores {work} points."),
            ("average = all / 3", "On average that is {work} points."),
        ),
    ),
    Template(
        name="points-ahead",
        numbers={"a": range(30, 95), "b": range(3, 25), "c": range(30, 150), "x": range(151, 999)},
        story="The home team scores {a} points in the first half and {b} fewer "
        "in the second half. The guests score {c} points in all.",
        aside="There are {x} people watching.",
        ask="By how many points does the home team win?",
        steps=(
            ("second = a - b", "In the second half the home team scores {work} points."),
            ("all = a + second", "In all it scores {work} points."),
            ("lead = all - c", "It wins by {work} points."),
        ),
    ),
    Template(
        name="recipe-for-more",
        numbers={
            "a": range(4, 9),
            "b": range(2, 8),
            "c": range(12, 97),
            "d": range(3, 30),
            "x": range(98, 180),
        },
        story="A recipe for {a} people takes {b} cups of flour. "
        "{name} cooks for {c} people and has {d} cups of flour at home.",
        aside="The recipe is {x} years old.",
        ask="How many more cups of flour does {name} need?",
        steps=(
            ("times = c / a", "{name} makes the recipe {work} times."),
            ("cups = b * times", "That takes {work} cups of flour."),
            ("need = cups - d", "{She} needs {work} more cups."),
        ),
    ),
)
