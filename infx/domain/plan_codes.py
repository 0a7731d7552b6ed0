"""What infx says of files and of the combinations that they ask for, before anything is spent.

name -> (meaning, action), merged into `infx.domain.codes`.
"""

from __future__ import annotations

__all__ = ["CONFIG_CODES", "PLAN_CODES"]

CONFIG_CODES: dict[str, tuple[str, str]] = {
    "file-not-found": ("the named file does not exist", "check the path"),
    "file-unreadable": (
        "the file cannot be read",
        "name a file, and check its permissions",
    ),
    "file-empty": ("the file holds no YAML document", "write at least one matrix entry"),
    "not-utf8": ("the file is not UTF-8", "save it as UTF-8"),
    "tab-indent": ("a tab is used for indentation", "indent with spaces"),
    "yaml-syntax": ("the file is not YAML", "correct the syntax at the caret"),
    "duplicate-key": ("a key stands twice in one mapping", "remove one of them"),
    "ambiguous-scalar": (
        "a plain value that YAML versions read differently (yes, 010, 12:30, 1_000, a date)",
        "write true or false, a plain number, or quote it",
    ),
    "anchor": ("anchors, aliases, merge keys and tags are not used", "write the value out"),
    "bad-name": ("a name with characters that a name may not have", "rename it"),
    "unknown-key": ("a key that infx does not know here", "correct the spelling"),
    "missing-key": ("a required key is absent", "add it"),
    "trace-malformed": (
        "a file of a trace is not what aiperf replays",
        "write Weka traces: id, block_size, requests with in, out and hash_ids",
    ),
    "wrong-type": ("a value of the wrong type", "write the type that is expected"),
    "unknown-value": ("a value outside a closed vocabulary", "use one of the listed values"),
    "out-of-range": ("a number outside its range", "use a number in the range"),
    "conflicting-keys": (
        "settings that cannot stand together",
        "remove one of them, or add what the other needs",
    ),
    "repeated-value": ("a list of distinct values holds one twice", "remove the repeat"),
    "unknown-reference": (
        "a recipe, cluster, golden file, task or runner that does not exist",
        "correct the name or add the file",
    ),
    "golden-k-missing": ("the golden file has no length for this K", "choose a K it holds"),
    "bad-expression": ("an expression that infx cannot read", "use the allowed operators"),
    "unknown-name": ("an expression names something that is not an axis", "correct the name"),
    "expression-cycle": ("expressions need each other's values", "break the cycle"),
    "expression-failed": ("an expression has no value here", "guard it with a condition"),
    "bad-table": (
        "a table that cannot be read: no rows, or rows that do not fit its header",
        "write CSV with a header, or a JSON list of objects",
    ),
    "bad-cell": (
        "a cell of a table to judge that is not a finite number",
        "correct it, or leave the row out with --only",
    ),
    "bad-record": ("a JSON record of infx that cannot be read", "write it again with infx"),
}

PLAN_CODES: dict[str, tuple[str, str]] = {
    "excluded": ("an exclude rule of the matrix applies", "nothing, or change the rule"),
    "repeat-of": ("the same content as another candidate", "nothing"),
    "max-num-seqs-below-conc": (
        "the server may hold fewer requests than the client sends",
        "raise max-num-seqs or set queueing: true",
    ),
    "capture-gap": (
        "a reachable batch is wider than every capture size",
        "add a capture size that covers it",
    ),
    "capture-padding": (
        "a reachable batch that no capture size fits runs with padded rows",
        "nothing, or add a capture size for it",
    ),
    "offload-without-budget": (
        "cache pages go to host memory and nothing says how much of it",
        "set kv-offload-gb",
    ),
    "budget-without-offload": (
        "a budget or a backend of offload, and nothing is offloaded",
        "set kv-offload: dram, or remove it",
    ),
    "offload-over-limit": (
        "more host memory than the share of the accelerators that the server takes",
        "lower kv-offload-gb, or correct dram-gb-per-node of the cluster",
    ),
    "tp-heads": ("tp does not divide the attention heads", "choose a tp that divides them"),
    "tp-gpus": ("tp x pp needs more accelerators than a node has", "lower tp or pp"),
    "no-chat-template": (
        "speculation without a chat template measures another token distribution",
        "set chat-template in the recipe",
    ),
    "k-without-method": ("k > 0 without a speculation method", "add speculation or set k: 0"),
    "speculation-unused": ("speculation is set and no candidate has k > 0", "add the axis k"),
    "no-golden": (
        "a throughput run with drafts needs a golden acceptance length",
        "name a golden file in speculation, or set k: 0",
    ),
    "image-unpinned": ("a package image without a version is no identity", "write ==VERSION"),
    "srt-only": (
        "a recipe that srt-slurm launches, on a cluster that has another executor",
        "name a cluster with executor srt",
    ),
    "hardware-differs": (
        "the cluster has hardware that the recipe is not written for",
        "name another cluster, or list the hardware in the recipe",
    ),
    "repeat-differs": (
        "the same point twice, judged by different bars or limits",
        "keep one of them",
    ),
    "no-partner": (
        "points of a plan with interleaved arms that have none to be measured in turn with",
        "nothing, or give the other arm the same concurrency and workload",
    ),
    "rule-unused": ("an exclude rule applies to no candidate", "correct or remove it"),
    "exclusion-expired": (
        "the last day of an exclusion of nodes has passed, so they are used again",
        "remove the line, or give it a later day",
    ),
    "not-for-submission": (
        "sessions that are replayed otherwise than published runs replay them",
        "nothing, or use a published trace for 900 s or more",
    ),
    "over-time-limit": (
        "timed points of one engine start take longer than a job may",
        "raise the cluster's limit of a job, or shorten duration-s",
    ),
    "warmup-one-a-lane": (
        "more warm-up requests a lane than aiperf sends by itself",
        "set cache-warmup-s, or warmup-requests-per-lane: 1",
    ),
    "mono-serves": ("how many requests a mono step can serve", "nothing"),
    "context-too-long": (
        "the longest request is over max-model-len",
        "raise it, or set max-context where sessions are replayed",
    ),
    "option-unknown": ("the engine has no such option", "correct the recipe"),
    "option-value": ("a value that the engine's option does not take", "correct the recipe"),
    "mono-refused": (
        "mono is asked, and the engine refuses it for every candidate that asks",
        "read the ledger for the reason, or set mono: off",
    ),
    "inputs-changed": ("a file changed since the plan was saved", "plan again"),
    "empty-plan": ("no candidate is left to run", "read the ledger: infx plan --ledger"),
    "bar-missing": ("an evaluation without a bar judges nothing", "add bars to the evaluation"),
    "script-missing": (
        "no benchmark script of InferenceX fits rows of an entry",
        "add the script, or correct the entry",
    ),
    "name-collision": (
        "rows of InferenceX that differ and whose results have one name",
        "tell results apart by their rows, not by their names",
    ),
    "not-native": (
        "what of InferenceX's files infx's own cannot say",
        "write it by hand, or plan it with --format inferencex",
    ),
    "skeleton": (
        "a recipe or cluster that an import made, of which its source says only a part",
        "complete it before the first sweep",
    ),
}
