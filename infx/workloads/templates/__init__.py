"""The word problems of gsm_mini, by theme. Their wording and difficulty are fixed: a model is
trained on them, so a change makes its scores incomparable."""

from __future__ import annotations

from infx.workloads.templates.counting import COUNTING
from infx.workloads.templates.heldout import HELDOUT
from infx.workloads.templates.moving import MOVING
from infx.workloads.templates.places import PLACES
from infx.workloads.templates.shopping import SHOPPING
from infx.workloads.templates.template import LARGEST, Template, Worked, work_out

__all__ = ["HELDOUT", "LARGEST", "TEMPLATES", "Template", "Worked", "work_out"]

TEMPLATES: tuple[Template, ...] = (*SHOPPING, *COUNTING, *PLACES, *MOVING)
