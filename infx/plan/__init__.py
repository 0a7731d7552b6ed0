"""Axes to points to ledger to jobs: pure and offline, no GPU and no cluster."""

from infx.plan.make import make_plan
from infx.plan.saved import check_inputs, read_plan, write_plan

__all__ = ["check_inputs", "make_plan", "read_plan", "write_plan"]
