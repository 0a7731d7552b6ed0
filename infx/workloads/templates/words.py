"""The people and things that the word problems are about."""

from __future__ import annotations

__all__ = ["BAKED", "FLOWERS", "FRUIT", "GADGETS", "PEOPLE", "STATIONERY", "TOYS"]

PEOPLE: tuple[tuple[str, str, str], ...] = (
    ("Ada", "she", "her"),
    ("Amir", "he", "his"),
    ("Bella", "she", "her"),
    ("Carlos", "he", "his"),
    ("Dina", "she", "her"),
    ("Elias", "he", "his"),
    ("Fatima", "she", "her"),
    ("Grace", "she", "her"),
    ("Hugo", "he", "his"),
    ("Ines", "she", "her"),
    ("Jonas", "he", "his"),
    ("Kenji", "he", "his"),
    ("Lena", "she", "her"),
    ("Marco", "he", "his"),
    ("Nadia", "she", "her"),
    ("Omar", "he", "his"),
    ("Priya", "she", "her"),
    ("Rosa", "she", "her"),
    ("Samuel", "he", "his"),
    ("Tara", "she", "her"),
    ("Victor", "he", "his"),
    ("Wendy", "she", "her"),
    ("Yusuf", "he", "his"),
    ("Zoe", "she", "her"),
)
"""First name, subject pronoun, possessive."""

FRUIT = ("apples", "pears", "plums", "oranges", "lemons", "peaches", "melons", "figs")
TOYS = ("marbles", "stickers", "cards", "shells", "beads", "stamps", "coins", "blocks")
BAKED = ("muffins", "cookies", "rolls", "pies", "tarts", "buns", "bagels", "waffles")
STATIONERY = ("pencils", "notebooks", "markers", "folders", "brushes", "rulers")
GADGETS = ("lamp", "radio", "kettle", "fan", "clock", "toaster", "drill", "camera")
FLOWERS = ("tulips", "roses", "lilies", "daisies", "beans", "onions", "carrots", "leeks")
