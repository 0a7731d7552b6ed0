"""Every code that infx can say, with what it means and what to do. Refusals are data.

The documentation's list is generated from this table, and a test holds code, table and tests to
the same set. A code is stable: its sentence may improve, its meaning may not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infx.domain.ci_codes import CHANGELOG_CODES, CI_CODES
from infx.domain.engine_codes import ENGINE_CODES, MONO_CODES
from infx.domain.golden_codes import GOLDEN_CODES
from infx.domain.place_codes import PARCEL_CODES, PLACE_CODES
from infx.domain.plan_codes import CONFIG_CODES, PLAN_CODES

__all__ = ["CODES", "Code", "Family"]

Family = (
    Literal["config", "plan", "usage", "infra", "failed"]
    | Literal["invalid", "skipped", "remark", "golden", "engine", "mono", "ci", "changelog"]
)


@dataclass(frozen=True, slots=True)
class Code:
    """``meaning`` says what happened, ``action`` what the reader does next."""

    name: str
    family: Family
    meaning: str
    action: str


_TABLE: dict[Family, dict[str, tuple[str, str]]] = {
    # A file says something that cannot be.
    "config": CONFIG_CODES,
    # A combination that must not be run, found before anything is spent.
    "plan": PLAN_CODES,
    "usage": {
        "bad-option": ("an option or argument that cannot be", "see --help"),
        "unknown-run": ("no run of that name in the store", "list them with infx status"),
        "unknown-point": ("no point of that name in the run", "list them with infx status RUN"),
        "nothing-to-reproduce": (
            "the record of a point has no valid figures to be measured against",
            "measure it first: infx resume RUN --retry-failed",
        ),
        "run-active": ("another infx process drives this run", "wait, or end that process"),
        "not-artifacts": ("the folder holds no aiperf export", "name an aiperf artifact folder"),
        "not-samples": (
            "no samples of lm-eval there, or several files of them",
            "name one samples file, or run lm-eval with --log_samples",
        ),
        "bad-samples": ("a file of samples is not what lm-eval writes", "run the evaluation again"),
        "questions-differ": (
            "two evaluations did not ask the same questions in the same words",
            "compare evaluations of one task, shots and limit, or their scores alone",
        ),
        "filter-missing": (
            "an evaluation lacks a filter that the other one has",
            "compare evaluations of one task's version",
        ),
        "axis-constant": (
            "an axis to compare by that has one value in the run",
            "name one that varies, as the error lists them",
        ),
        "nothing-to-compare": (
            "no two points are asked the same, or differ in the axis alone",
            "compare runs of one workload",
        ),
        "interrupted": ("stopped by the user", "continue with infx resume"),
        "store-newer": ("a newer infx wrote the store", "update infx"),
        "lab-differs": (
            "a lab of another shape runs in the folder",
            "end it with infx cluster down, or name another folder with --dir",
        ),
        "no-lab": ("no lab runs in the folder", "start one with infx cluster up"),
        "not-a-run": ("the folder is no run's folder", "name one that holds plan.json and jobs/"),
        **PLACE_CODES,
        "cluster-refuses": (
            "the cluster cannot give what the plan's jobs ask for",
            "correct the cluster's entry in configs/clusters.yaml, or the axes",
        ),
        "srtctl-old": ("srtctl reads no recipes of schema 2", "update srt-slurm to 2.0 or later"),
        "srt-unsupported": (
            "an srt recipe cannot say it: the engine, a package image, an evaluation, …",
            "run it on a cluster with executor slurm, or choose other entries",
        ),
        "srt-refused": (
            "srtctl refuses the recipe",
            "correct the recipe, the cluster's section or srtslurm.yaml as the error says",
        ),
        "not-prepared": (
            "the cluster has no interpreter with infx in it",
            "run infx cluster prepare CLUSTER, or set `python` in its entry",
        ),
    },
    "infra": {
        "disk-full": ("no space is left where results go", "free space, then infx resume"),
        "results-unwritable": ("the results folder cannot be written", "check its permissions"),
        "store-corrupt": ("the store cannot be read", "move it away and run infx gather"),
        "store-busy": ("another process holds the store's lock", "try again"),
        "harness-missing": ("aiperf or lm-eval is not installed", "install infx[bench]"),
        "harness-version": (
            "aiperf or lm-eval is not the planned version",
            "install the pinned one",
        ),
        "launch-failed": ("the job could not be started", "read the error, then infx resume"),
        "driver-died": (
            "the process that drove a detached run ended before it",
            "read driver.log in the run's folder, then infx ci wait RUN",
        ),
        "github-unreachable": (
            "GitHub cannot be reached, or is busy for longer than is waited",
            "run the step again later",
        ),
        "srtctl-missing": (
            "srt-slurm's program srtctl is not there, or cannot be run",
            "install srt-slurm there, or correct `srtctl` of the cluster",
        ),
        "ssh-unreachable": (
            "the ssh host cannot be reached, or the connection broke",
            "make `ssh HOST true` work without a password",
        ),
        "no-answer": (
            "a command on the cluster did not end within its limit",
            "see whether the host or its scheduler hangs, then infx resume",
        ),
        **PARCEL_CODES,
        "transfer-failed": (
            "files could not be copied to or from the cluster",
            "read the error: check paths, permissions and space",
        ),
        "slurm-missing": ("programs of Slurm are not installed", "install the named packages"),
        "lab-failed": ("a daemon of the lab does not come up, or failed", "read the named log"),
        "node-failed": (
            "a node of the job failed or did not boot",
            "infx resume runs it elsewhere",
        ),
        "preempted": (
            "a job of higher priority took the nodes",
            "infx resume, or name another partition or QOS",
        ),
        "scheduler-down": (
            "the scheduler does not answer or takes no jobs",
            "try scontrol ping, then infx resume",
        ),
        "submit-limit": (
            "a limit on the jobs that may be submitted is reached",
            "wait for jobs to end, or ask for a higher limit",
        ),
        "submit-refused": (
            "the scheduler does not accept the job as it is asked for",
            "correct the cluster's section as the error says",
        ),
        "submit-unclear": (
            "nobody knows whether the scheduler accepted the job",
            "infx looks for its name before it submits again",
        ),
        "image-import": (
            "the engine's container image could not be imported",
            "read image.log: check the image's name, its credentials and the space",
        ),
        "lab-down": ("the lab cluster of this machine is not up", "start it: infx cluster up"),
        "job-lost": ("the job ended without its record", "infx resume runs it again"),
        "python-missing": (
            "no interpreter there that infx runs with",
            "install Python 3.11 to 3.13 where the nodes see it and name it in the cluster file",
        ),
        "folder-unwritable": (
            "the site's folder cannot be written",
            "name a shared folder that is yours: `folder` of the cluster",
        ),
        "bundle-failed": (
            "the wheels for a cluster could not be made or installed",
            "read the error, then infx cluster prepare again",
        ),
        "image-missing": ("the client's image is not there", "import it, or correct its path"),
        "check-failed": (
            "the check job of a prepared bundle did not run",
            "read the error, then infx cluster prepare again",
        ),
        "node-unfit": (
            "a compute node cannot run the prepared bundle",
            "mend what it lacks, then infx cluster prepare again",
        ),
    },
    # A point without a measurement.
    "failed": {
        "port-busy": ("the server's port is taken", "end the process that holds it"),
        "engine-missing": (
            "the engine's own environment, or its program, is not on this machine",
            "make it as the error says, or name its place in INFX_ENGINES",
        ),
        "weights-missing": ("the weights are not on this machine", "install or download them"),
        "weights-unreadable": ("the weights are not of a form that can be read", "check the file"),
        "trace-changed": (
            "the sessions on this machine are not those that were planned",
            "restore them, or plan again",
        ),
        "tokenizer-unknown": ("no exact tokenizer could be made", "name one in the recipe"),
        "server-exited": ("the server ended before it was ready", "read the server log"),
        "server-hung": ("no progress until the deadline", "read the server log"),
        "server-died": ("the server ended while it was measured", "read the server log"),
        "first-request": (
            "ready, but its first request failed",
            "read the server log",
        ),
        "wrong-server": (
            "another program answers on the port",
            "end it, or free the port",
        ),
        "wrong-model": ("the server serves another model id", "correct the recipe"),
        "acceptance-mode": (
            "the running server's acceptance is not what the plan needs (synthetic or real)",
            "check the recipe and the engine's flags",
        ),
        "isl-too-short": (
            "no prompts, or too few, are as short as isl: the chat template takes tokens too",
            "raise isl",
        ),
        "client-failed": ("aiperf ended without a result", "read aiperf's log"),
        "srt-no-export": (
            "srt says that its job succeeded, and aiperf left no export",
            "read logs/benchmark.out and the workers' logs in the attempt's srt folder",
        ),
        "client-hung": ("aiperf passed its time limit", "read aiperf's log"),
        "evaluation-failed": ("lm-eval ended without a score", "read lm-eval's log"),
        "evaluation-hung": ("lm-eval passed its time limit", "read lm-eval's log"),
        "time-limit": ("the job passed its time limit", "raise the limit"),
        "out-of-memory": (
            "the job used more memory than it was given",
            "ask for more, or lower the server's cache",
        ),
        "cancelled-outside": (
            "someone other than infx cancelled the job",
            "infx resume runs it again",
        ),
        "never-scheduled": (
            "the scheduler will never start the job as it is asked for",
            "correct what the reason names, then infx resume RUN --retry-failed",
        ),
        "internal": ("a fault of infx itself", "report it with the traceback in the job's log"),
    },
    # A measurement that may not enter a frontier.
    "invalid": {
        "no-export": ("aiperf's summary is missing", "run it again in a fresh folder"),
        "truncated-export": ("an export ends in the middle", "run it again"),
        "unreadable-export": ("an export is not what aiperf writes", "run it again"),
        "stale-export": ("the export is of an earlier run", "run it again in a fresh folder"),
        "interrupted-run": ("aiperf was interrupted", "run it again"),
        "incomplete-run": ("aiperf says that the run is incomplete", "run it again"),
        "no-requests": ("no request succeeded", "read the errors"),
        "no-tokens": ("no token was generated", "read the server log"),
        "errors": ("too many requests failed", "read the errors by category"),
        "cancelled-in-flight": ("too many requests were cut at the end", "lengthen it"),
        "requests-missing": ("fewer requests ran than were asked", "read aiperf's log"),
        "window-short": ("a timed run ended well before its time", "read aiperf's log"),
        "osl-mismatch": (
            "outputs are not as long as asked",
            "check ignore_eos and the limit",
        ),
        "concurrency-off": ("the observed concurrency is not the asked one", "lengthen the run"),
        "acceptance-off": (
            "the realised acceptance length is off",
            "check the engine",
        ),
        "mono-coverage": ("mono served too few of its eligible steps", "read the refusals"),
        "mono-off": (
            "the engine switched off the mono that its point claims",
            "read the reason in the sentence, or set mono: off",
        ),
        "preemption-storm": (
            "the cache is too small for the load",
            "raise it or lower max-num-seqs",
        ),
        "empty-answers": ("answers of an evaluation hold no text", "read its samples"),
        "config-differs": ("the running server is not configured as planned", "check the recipe"),
        "clock-skew": ("the export's times are impossible", "check the clocks"),
        "context-overflow": (
            "the server refused requests as too long, and no figure knows of them",
            "raise max-model-len, or leave such sessions out with max-context",
        ),
        "unsafe-scenario": ("the scenario ran with a safety override", "run it as published"),
        "not-a-number": ("a metric is not a finite number", "read the export"),
        "metric-missing": (
            "a successful request lacks a metric",
            "measure with --streaming and --export-level records",
        ),
    },
    # A point that was left out on purpose.
    "skipped": {
        "canary-failed": (
            "the cheapest job of the entry went first and measured nothing",
            "read the canary's log, then infx resume",
        ),
        "stopped-early": (
            "another job of the entry failed and --fail-fast was asked",
            "read that job's log, then infx resume",
        ),
        "reused-lost": (
            "a measurement that a plan reuses is not in the store, or valid no more",
            "fetch its run with infx store pull, or plan again",
        ),
    },
    # A measurement that counts, with something to know about it.
    "remark": {
        "asked-unknown": (
            "the export does not tell what the run was asked, so that is not checked",
            "judge it beside its plan, or with the aiperf that infx pins",
        ),
        "own-scenario": (
            "a scenario that is not the published one, as it was planned",
            "read the figures beside others of the same workload alone",
        ),
        "warmup-short": (
            "fewer warm-up requests a lane than were asked",
            "set cache-warmup-s so that they are sent",
        ),
        "srt-prompts": (
            "prompts are aiperf's own, not infx's: the chat template's tokens come on top of isl",
            "nothing; compare with points that srt measured too",
        ),
        "prefix-cache-hits": (
            "much of the input was not computed but found in the prefix cache",
            "switch prefix caching off, or read the figures as those of a warm cache",
        ),
        "image-mutable": (
            "a container image without a digest: its name may mean another one tomorrow",
            "set image-digest in the recipe",
        ),
        "suspect-end": (
            "only one of the scheduler and the job's own record says how the job ended",
            "nothing when it was resumed long after its end; else look at the scheduler",
        ),
        "mono-unused": (
            "mono is on and no decode step was eligible: a mono step holds 16 rows",
            "lower conc or k where mono is to be measured",
        ),
        "mono-untold": (
            "mono is on, and the engine counts no steps that it served",
            "nothing: what the engine logs of mono was looked at",
        ),
        "preemptions-untold": (
            "the engine does not tell its preemptions, so a storm of them would not be seen",
            "read its log for preempted or retracted requests",
        ),
        "config-untold": (
            "the running server tells none of the settings that were planned",
            "read its log, or an engine option that makes it tell",
        ),
        "power-unreadable": (
            "the log of the accelerators' power holds no sample",
            "read what the tool says in power.csv: there is no J/token",
        ),
        "power-local-time": (
            "the power log's times are local, and it does not state their distance to UTC",
            "log with infx, or write the line that docs/energy.md names: there is no J/token",
        ),
        "power-gpus": (
            "the power log is of other accelerators than the point's, or of too few",
            "look at CUDA_VISIBLE_DEVICES and power.csv: there is no J/token",
        ),
        "power-not-bracketed": (
            "the power log does not reach over both ends of the measured window",
            "look at power.csv, and at the clocks: there is no J/token",
        ),
        "power-gap": (
            "no sample of an accelerator's power for more than 3 s of the window",
            "look for what kept the tool from its samples: there is no J/token",
        ),
        "power-bad-sample": (
            "the tool had no number for an accelerator's power within the window",
            "look at power.csv: there is no J/token",
        ),
        "gpu-slowed": (
            "the driver held an accelerator's clocks down: heat, a power brake, a fault",
            "cool or mend the machine, then measure again",
        ),
        "cut-answers": ("answers of an evaluation hit the token limit", "raise max-tokens"),
    },
    # An acceptance length that cannot be measured, or does not hold.
    "golden": GOLDEN_CODES,
    # Refusals of infx's own engine.
    "engine": ENGINE_CODES,
    # What mono does not serve: the unfused layers do.
    "mono": MONO_CODES,
    # What a pull request asks of CI, and what is published of it.
    "ci": CI_CODES,
    "changelog": CHANGELOG_CODES,
}

CODES: dict[str, Code] = {
    name: Code(name, family, meaning, action)
    for family, rows in _TABLE.items()
    for name, (meaning, action) in rows.items()
}
