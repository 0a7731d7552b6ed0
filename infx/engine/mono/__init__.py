"""Mono: one decode layer as a table of stages, run as one call.

`shape` says what is fused, for which machine; `plan` makes the `table`; `check` refuses a table
that would race, hang or add in an order that depends on the batch; `interpret` runs it in plain
Python, the oracle of what is compiled from it; `build` names what was compiled. All of it is the
standard library only: no model, no torch, no numba (tests/engine/mono/test_imports.py).
"""
