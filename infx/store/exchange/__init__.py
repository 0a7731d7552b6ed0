"""Runs and live curves to places that machines share, and from there.

A run travels as one file, a `parcel`: what the store knows of it (`state`), and its folder.
`pushing` and `pulling` are the two ways, `outgoing` and `arrival` what they do with one run.
"""

from infx.store.exchange.arrival import Pulled
from infx.store.exchange.naming import place_of
from infx.store.exchange.outgoing import Pushed
from infx.store.exchange.parcel import Progress
from infx.store.exchange.places import Place
from infx.store.exchange.pulling import Incoming, pull
from infx.store.exchange.pushing import Guard, Sent, push

__all__ = [
    "Guard",
    "Incoming",
    "Place",
    "Progress",
    "Pulled",
    "Pushed",
    "Sent",
    "place_of",
    "pull",
    "push",
]
