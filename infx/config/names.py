"""What names and lines of text look like in the files, as patterns that JSON Schema reads too."""

from __future__ import annotations

import re

__all__ = [
    "AS_OF",
    "DIRECTIVE",
    "ENV_GLOB",
    "ENV_NAME",
    "HOST",
    "IMAGE",
    "LINE",
    "NAME",
    "NAME_HINT",
    "NODES",
    "PATH",
    "PROGRAM",
    "RECIPE_KEY",
    "SLURM_NAME",
    "WEIGHTS",
    "is_line",
    "is_name",
]

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Of entries, recipes, golden files, clusters, options: parts of file names, never a path."""

NAME_HINT = "use up to 100 letters, digits, dots, hyphens and underscores"

ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"

_PLAIN = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]"

LINE = rf"^{_PLAIN}*$"
"""One line without control characters, which a terminal would obey."""

WEIGHTS = (
    rf"^(package:\w[\w.]*/{_PLAIN}+|random:[0-9]{{1,15}}|hf:{_PLAIN}+|shipped"
    rf"|engines:[A-Za-z0-9][A-Za-z0-9._-]*|[./~]{_PLAIN}*)$"
)

PATH = r"""^/[^\x00-\x1f\x7f-\x9f\u2028\u2029"'\\]*$"""
"""An absolute path without quotes and backslashes, which not every line of Slurm's takes."""

SLURM_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.,+@-]{0,199}$"
"""Of partitions, accounts, QOS and types of GPU: what an #SBATCH line takes without quotes."""

NODES = r"^[A-Za-z0-9_][A-Za-z0-9_.,\[\]-]{0,999}$"
"""A host list of Slurm: node[3-4],node7."""

PROGRAM = r"""^(/[^\x00-\x1f\x7f-\x9f\u2028\u2029"'\\]+|[A-Za-z0-9][A-Za-z0-9._-]{0,99})$"""
"""A program: an absolute path, or a name that is looked for in PATH."""

RECIPE_KEY = r"^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$"
"""A dotted key of an srt recipe: roles.agg.args.max-num-seqs."""

HOST = r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,254}$"
"""A host that ssh is given; never an option of it."""

IMAGE = r"^[A-Za-z0-9/][A-Za-z0-9_./:@#+-]{0,499}$"
"""A container image: a reference of a registry, or the path of a .sqsh file."""

ENV_GLOB = r"^[A-Za-z_*][A-Za-z0-9_*]{0,99}$"

AS_OF = r"^[0-9]{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?$"
"""A month or a day."""

DIRECTIVE = rf"^--[a-z][a-z-]*(={_PLAIN}+)?$"
"""A long option of sbatch in one word; what follows = may hold spaces."""


def is_name(text: str) -> bool:
    """Return True when ``text`` may be a name."""
    return re.fullmatch(NAME, text) is not None


def is_line(text: str) -> bool:
    """Return True when ``text`` is one line without control characters."""
    return re.fullmatch(LINE, text) is not None
