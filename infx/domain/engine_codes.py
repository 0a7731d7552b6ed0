"""What infx's own engine says: its refusals, and what its mono layers do not serve.

name -> (meaning, action), merged into `infx.domain.codes`. At which level a code of mono is said
stands in `infx.engine.mono.refusal`.
"""

from __future__ import annotations

__all__ = ["ENGINE_CODES", "MONO_CODES"]

ENGINE_CODES: dict[str, tuple[str, str]] = {
    "unsupported-model": ("a model that the engine does not know", "use one that is listed"),
    "unsupported-weights": (
        "weights of a kind that the engine cannot read",
        "name a kind that its recipes use, or correct the path",
    ),
    "bad-checkpoint": ("missing or wrong files or tensors of a checkpoint", "restore them"),
    "unserved-config": ("a shape that the layers cannot compute", "correct the named fields"),
    "unsupported-tp": (
        "a number of ranks that the engine does not serve, or the model's shape does not fit",
        "set tp to 1, 2 or 4",
    ),
    "rank-died": (
        "a tensor-parallel rank of the engine ended, hangs or did not start",
        "read the server log, then start the server again",
    ),
    "unsupported-dtype": ("a cache or weight type that the engine lacks", "use a listed one"),
    "unsupported-method": (
        "a speculation method that the engine lacks",
        "use one that the message lists",
    ),
    "unsupported-verify": ("a way of verifying drafts that this build lacks", "use fixed"),
    "unsupported-law": (
        "an acceptance law that this engine cannot draw by",
        "leave law out, or use a listed one",
    ),
    "draft-missing": (
        "a method of speculation that needs a draft model, and none is named",
        "name it in speculation: draft",
    ),
    "acceptance-range": (
        "an acceptance length that no step of K drafts can have",
        "use a length from 1 to K+1, from the golden file of this draft",
    ),
    "prefill-delayer": (
        "ATOM's prefill delayer is asked for and would do nothing",
        "set atom-prefill-decode-interval above 0, or leave the delayer out",
    ),
    "unsupported-axis": ("an axis that this engine lacks", "leave the axis out"),
    "option-conflict": ("two settings of one thing that differ", "set one of them"),
    "unsupported-field": ("a known request field that the engine does not serve", "remove it"),
    "bad-request": ("a request field with an impossible value", "correct the field"),
    "synthetic-acceptance": (
        "an evaluation asked of a server whose text an acceptance law decides",
        "evaluate on a server without --synthetic-acceptance-length",
    ),
    "unknown-model": ("a request for a model id that is not served", "see /v1/models"),
    "loading": ("the engine is not ready yet", "wait for /health to answer 200"),
    "not-finite": (
        "the model computed NaN or infinity: its weights overflow float32",
        "serve other weights",
    ),
    "engine-failed": ("a step of the engine failed", "read the server log"),
    "context-length-exceeded": ("prompt and output are over the context", "shorten them"),
    "queue-full": ("the engine's queue is full", "retry later or lower the concurrency"),
    "draining": ("the engine is shutting down", "use another server"),
    "too-little-memory": ("weights and cache do not fit", "lower num-blocks"),
    "kernel-gave-up": (
        "a kernel waited too long for its own blocks: what it wrote is wrong",
        "end other work on the GPU and restart; if it comes again, set mono: off",
    ),
    "builds-unwritable": (
        "the folder that keeps compiled layers cannot be written",
        "name another in INFX_MONO_CACHE",
    ),
}

_ROWS = "correct what the host hands over for each step"
_NATIVE = "nothing: the step runs on the unfused layers"

MONO_CODES: dict[str, tuple[str, str]] = {
    # The configuration.
    "mono-device": (
        "a device that mono has no back end for, or a GPU that is not there or of another kind",
        "use a listed device",
    ),
    "mono-tp": ("a number of tensor-parallel ranks that mono lacks there", "use a listed tp"),
    "mono-pp": ("pipeline parallelism", "set pp to 1"),
    "mono-ep": ("expert parallelism", "set ep to 1"),
    "mono-dp-attention": ("data-parallel attention: ranks run different rows", "leave it off"),
    "mono-projections": ("a type of projection weights that mono lacks there", "use a listed one"),
    "mono-experts": ("a type of expert weights that mono lacks (NVFP4)", "use a listed one"),
    "mono-router": ("a type of router weights that mono lacks", "use a listed one"),
    "mono-kv-cache": ("a type of kv cache that mono lacks", "use a listed one"),
    "mono-index-cache": ("a type of index cache that mono lacks", "use a listed one"),
    "mono-block-size": ("pages of another size than the selected blocks", "use the model's blocks"),
    "mono-context": ("a context over what the builds reach", "lower max-model-len"),
    "mono-verify": ("scheduled or ragged verification of drafts", "use fixed"),
    "mono-rows-per-request": ("more rows a request than a mono step has", "lower K"),
    "mono-full-experts": ("a model with experts under full attention", "set mono: off"),
    "mono-shared-expert": ("a shared expert of another size than the others", "set mono: off"),
    "mono-torch-compile": ("torch.compile around the library", "call it uncompiled"),
    "mono-weight-swap": ("weights that are exchanged while serving", "switch it off"),
    "mono-lora": ("LoRA: rows with weights of their own", "switch it off"),
    "mono-sleep": ("memory that is given back while the server sleeps", "switch it off"),
    # What was handed in when it was bound.
    "mono-no-compiler": ("what compiles the layers is not installed", "install it"),
    "mono-layer-count": ("layers handed in are not the model's", "hand in one kind a layer"),
    "mono-sparse-dense": (
        "a layer of chosen blocks with a dense MLP: it stays on the unfused layer",
        "nothing: mono begins at the first layer with experts",
    ),
    "mono-layer-kind": ("a kind of layer that mono lacks there", "keep it on the own layer"),
    "mono-no-layer": ("no layer of the model is mono's", "set mono: off"),
    "mono-widths": ("widths to build that no step has", "use 1 to 16"),
    "mono-shape": ("layers of a shape that the kernels are not built for", "use a listed model"),
    "mono-weights": ("a weight of another name, shape or type", "correct the named weight"),
    "mono-cache": ("a cache of another shape or type", "correct the named cache"),
    "mono-strides": ("a weight or cache that is not contiguous", "hand in a contiguous one"),
    "mono-alignment": ("a weight or cache at an address that is not aligned", "align it"),
    "mono-residency": (
        "a weight or cache in other memory than the device's, too little of that, or a GPU whose"
        " SMs mono cannot have all at once",
        "correct what the sentence names",
    ),
    "mono-bind-failed": ("the back end failed while it was bound", "read the error"),
    # One step.
    "mono-closed": ("a step after mono was closed", "bind it anew"),
    "mono-traced": ("a step traced by the compiler of the host's framework", "call it uncompiled"),
    "mono-prefill": ("prompt rows in the step", _NATIVE),
    "mono-no-rows": ("a step without rows", _NATIVE),
    "mono-too-many-rows": ("more than 16 rows, pads included", _NATIVE),
    "mono-batch-ids-missing": ("a step without batch ids", _ROWS),
    "mono-batch-ids-dtype": ("batch ids that are not int32", _ROWS),
    "mono-batch-ids-few": ("fewer batch ids than rows", _ROWS),
    "mono-batch-ids-range": ("a batch id of no request of the step", _ROWS),
    "mono-step-dtype": ("positions, slots or pages of another type", _ROWS),
    "mono-step-rank": ("positions, slots or pages of other dimensions", _ROWS),
    "mono-step-few": ("fewer positions, slots or page lists than rows", _ROWS),
    "mono-step-strides": ("positions, slots or pages that are not contiguous", _ROWS),
    "mono-row-beyond-context": ("a row, pad or verify row beyond the context", _NATIVE),
    "mono-page-table-short": ("a row beyond its list of pages", _ROWS),
    "mono-slot-outside": ("a slot outside of the cache", _ROWS),
    "mono-step-numbers": ("numbers that the back end finds outside of the cache (pages)", _ROWS),
    "mono-no-width": ("more rows than the widest build", "build a wider one"),
    "mono-width-not-built": (
        "a width first seen while a graph is being captured",
        "build it before the capture",
    ),
    "mono-build-failed": (
        "a width that could not be built, on some rank; it stays refused",
        "read the error",
    ),
}
