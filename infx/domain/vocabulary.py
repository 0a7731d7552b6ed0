"""Closed vocabularies of the files that are not axes. A test holds them to the code they name."""

from __future__ import annotations

__all__ = [
    "EXECUTORS",
    "FILTERS",
    "FRAMEWORKS",
    "GPU_REQUESTS",
    "LAWS",
    "METHODS",
    "PRECISIONS",
    "RUNTIMES",
    "TASKS",
    "THINKING",
    "TRACES",
]

FRAMEWORKS = ("infx", "llamacpp", "vllm", "sglang", "atom", "trtllm")
EXECUTORS = ("local", "slurm", "srt")
GPU_REQUESTS = ("gres", "gpus-per-node", "none")
"""How sbatch is asked for accelerators: ``--gres``, ``--gpus-per-node``, or not at all."""
RUNTIMES = ("none", "pyxis")
"""What runs containers on a cluster's nodes: pyxis is ``srun --container-image``."""
METHODS = ("eagle3", "dspark", "mtp", "draft-model", "ngram")
LAWS = ("min-variance", "geometric", "batch-min-variance")
"""The acceptance laws that a length decides; `from-curve` needs a curve, which no file holds."""
THINKING = ("on", "off")
PRECISIONS = (
    *("fp32", "bf16", "fp16", "fp8", "mxfp8", "fp4", "mxfp4", "nvfp4"),
    *("int8", "int4", "q8", "q4"),
)
_WEKA = "semianalysis_cc_traces_weka"
TRACES = tuple(
    f"{_WEKA}_{corpus}{size}"
    for corpus in (
        *("with_subagents", "with_subagents_060226", "with_subagents_060526"),
        *("with_subagents_060826", "061326", "061526", "062126"),
    )
    for size in ("", "_256k")
)
"""The data sets that aiperf's agentic scenario accepts; ``_256k`` ones hold no longer request."""
TASKS = ("gsm_mini", "gsm_mini_heldout", "gsm8k")
FILTERS = ("strict-match", "flexible-extract", "robust")
