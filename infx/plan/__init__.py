"""Axes to points to ledger to jobs: pure and offline, no GPU and no cluster.

`make` makes a plan, `saved` reads and writes one, `repeats` measures again what it measures.
"""
