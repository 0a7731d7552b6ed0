"""Plays srtctl on a real Slurm, as facts.json says that it behaves: apply, dry-run, --version.

What goes wrong is in the file named by STUB_SRT, one word: ``ok``, ``refused`` (preflight),
``garbage`` (no JSON), ``silent`` (accepted, and no answer), ``lost`` (accepted, then killed),
``limit`` (sbatch refuses once), ``several`` (two jobs of one recipe), ``old``, ``config``
(srtslurm.yaml has an unknown key: a warning); or of the job: ``server-dies``, ``client-fails``,
``nothing`` (success without an export), ``zero`` (success, no token), ``half`` (one point),
``foreign`` (exports lie elsewhere), ``slow`` (until the file ``go`` is there), ``hopeless`` (never
starts).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

FACTS = json.loads(Path(__file__).with_name("facts.json").read_text())
CONSOLE = sys.stderr
LIMIT = (
    "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job"
    " violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n"
)


def main(argv: list[str]) -> int:
    behave = Path(os.environ["STUB_SRT"]).read_text().strip()
    if argv == ["--version"]:
        if behave == "old":
            print("usage: srtctl [-h] {apply,dry-run} ...", file=sys.stderr)
            return 2
        print("srtctl 2.18.0 (commit 0123abcd, recipe schema 2, lockfile 1)")
        return 0
    if argv[0] == "play":
        return play(Path(argv[1]), argv[2])
    return submit(argv, behave)


def submit(argv: list[str], behave: str) -> int:
    parser = argparse.ArgumentParser(prog="srtctl")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("apply", "dry-run"):
        command = commands.add_parser(name)
        command.add_argument("-f", dest="file", required=True)
        command.add_argument("-o", dest="output", type=Path)
        command.add_argument("-y", action="store_true")
        command.add_argument("--set", action="append", default=[])
    commands.choices["apply"].add_argument("--tags", default="")
    commands.choices["apply"].add_argument("--json", action="store_true")
    commands.choices["apply"].add_argument("--no-preflight", action="store_true")
    asked = parser.parse_args(argv)
    try:
        if behave == "config":
            print(
                "WARNING srtslurm.yaml: unknown key default_container, file ignored", file=CONSOLE
            )
        recipe = selected(asked.file, asked.set)
        check(recipe)
        if behave == "refused" and not (asked.command == "apply" and asked.no_preflight):
            raise ValueError(f"Preflight failed for {asked.file}:\n- model.path: not there")
        if asked.command == "dry-run":
            print(f"DRY-RUN {recipe['name']}")
            return 0
        return apply(asked, recipe, behave)
    except (ValueError, subprocess.CalledProcessError) as error:
        if isinstance(error, subprocess.CalledProcessError):
            print(f"sbatch failed: {error.stderr}", file=CONSOLE)
        if asked.command == "apply" and asked.json:
            print(json.dumps({"status": "error", "error": str(error)}))
        else:
            print(f"Error: {error}", file=CONSOLE)
        return 1


def selected(named: str, sets: list[str]) -> dict[str, Any]:
    """Return the variant that ``FILE:SELECTOR`` names; a value that is set is in all of them."""
    file, _, selector = named.partition(":")
    content = yaml.safe_load(Path(file).read_text())
    if "base" not in content:
        return overridden(content, sets)
    base = overridden(content["base"] | {"schema": content.get("schema", 2)}, sets)
    if selector == "base":
        return base
    return merged(base, overridden(content[selector], sets))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(base)
    for key, value in over.items():
        below = found.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        found[key] = merged(below, value) if both and below else value
    return found


def overridden(recipe: dict[str, Any], sets: list[str]) -> dict[str, Any]:
    for word in sets:
        key, _, value = word.partition("=")
        below: Any = recipe
        *path, last = key.split(".")
        for part in path:
            below = below.setdefault(part, {})
        below[last] = yaml.safe_load(value)
    return recipe


def check(recipe: Mapping[str, Any]) -> None:
    """Raise ValueError for what the loader of schema 2 rejects."""
    if recipe.get("schema") != 2:
        raise ValueError("a recipe declares schema: 2; see srtctl migrate")
    for place, allowed in FACTS["keys"].items():
        section: Any = recipe
        for part in filter(None, place.split(".")):
            section = section.get(part) or {}
        if unknown := set(section) - set(allowed):
            raise ValueError(f"{place or 'recipe'}: unknown field {', '.join(sorted(unknown))}")
        missing = set(FACTS["required"].get(place, ())) - set(section)
        if section and missing:
            raise ValueError(f"{place or 'recipe'}: missing field {', '.join(sorted(missing))}")
    check_engine(recipe)


def check_engine(recipe: Mapping[str, Any]) -> None:
    engine = recipe["engine"]
    engine = engine if isinstance(engine, dict) else {"type": engine}
    kind, roles = engine["type"], recipe["roles"].values()
    if unknown := set(engine) - set(FACTS["engine_keys"][kind]):
        raise ValueError(f"engine: unknown field {', '.join(sorted(unknown))}")
    if recipe["frontend"]["type"] not in FACTS["frontend_of_engine"][kind]:
        raise ValueError(f"frontend {recipe['frontend']['type']} does not serve {kind}")
    for role in roles:
        if owned := set(role["args"]) & set(FACTS["reserved_args"].get(kind, ())):
            raise ValueError(f"roles: srtctl sets {', '.join(sorted(owned))} itself")
        if role["gpus"] > recipe["resources"]["gpus_per_node"] * role["nodes"]:
            raise ValueError("roles: more GPUs than its nodes have")


def apply(asked: argparse.Namespace, recipe: Mapping[str, Any], behave: str) -> int:
    records = [start(asked, recipe, behave) for _ in range(2 if behave == "several" else 1)]
    if behave == "garbage":
        print("Job submitted! see the log")
        return 0
    if behave == "silent":
        return 0
    if behave == "lost":
        os.kill(os.getpid(), signal.SIGKILL)
    for record in records:
        print(json.dumps(record))
    return 0


def start(asked: argparse.Namespace, recipe: Mapping[str, Any], behave: str) -> dict[str, Any]:
    base = asked.output.resolve()
    name = os.environ.get("RUNNER_NAME") or recipe["name"]
    me = shlex.join([sys.executable, str(Path(__file__).resolve())])
    script = f'#!/bin/bash\nexec {me} play "{base}/$SLURM_JOB_ID" {behave}\n'
    words = ["sbatch", "--parsable", "--hold", f"--job-name={name}", "--nodes=1", "--time=10"]
    words += [f"--output={base}/%j/logs/sweep_%j.log"]
    if behave == "limit" and not (called := Path(os.environ["STUB_SRT"] + ".called")).exists():
        called.touch()
        raise subprocess.CalledProcessError(1, words, stderr=LIMIT)
    words += ["--nodes=9"] if behave == "hopeless" else []
    done = subprocess.run(words, input=script, capture_output=True, text=True, check=True)
    job = done.stdout.strip()
    folder = base / job
    (folder / "logs").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(dict(recipe), sort_keys=False))
    (folder / "sbatch_script.sh").write_text(script)
    tags = [tag for tag in asked.tags.split(",") if tag]
    metadata = {"version": "2.0", "job_id": job, "job_name": name, "tags": tags}
    (folder / f"{job}.json").write_text(json.dumps(metadata))
    subprocess.run(["scontrol", "release", job], check=True)
    return {
        "status": "submitted", "slurm_job_id": job, "job_name": name, "output_dir": str(folder),
        "metadata_path": str(folder / f"{job}.json"), "config_path": asked.file, "tags": tags,
    }  # fmt: skip


def play(folder: Path, behave: str) -> int:
    """Do what srt's orchestrator does: a server, a client, their logs."""
    logs = folder / "logs"
    (logs / "workers").mkdir(parents=True, exist_ok=True)
    worker = logs / "workers" / "node1_agg_w0.out"
    worker.write_text("INFO loading the weights\n")
    print("[INFO] Starting workers", flush=True)
    if behave == "server-dies":
        with worker.open("a") as log:
            log.write("ERROR something\nRuntimeError: Engine core initialization failed\n")
        print("[ERROR] Server did not become healthy", flush=True)
        return 1
    print("[INFO] Running Custom benchmark", flush=True)
    while behave == "slow" and not (Path(os.environ["STUB_SRT"]).parent / "go").exists():
        time.sleep(0.05)
    command = yaml.safe_load((folder / "config.yaml").read_text())["benchmark"]["command"]
    (logs / "benchmark.out").write_text("client starts\n")
    if behave == "client-fails":
        (logs / "benchmark.out").write_text("error: no module named aiperf\n")
        return 1
    asked = [shlex.split(line) for line in re.findall(r"^measure .*", command, re.MULTILINE)]
    for words in asked[: 1 if behave == "half" else None]:
        if behave != "nothing":
            measure(logs, words, behave)
    return 1 if behave == "half" else 0


def measure(logs: Path, words: list[str], behave: str) -> None:
    from tests.analysis import made_exports

    label = words[1]
    option = dict(itertools.pairwise(words))
    conc, osl = int(option["--concurrency"]), int(option["--osl"])
    made_exports.BASE_NS = time.time_ns()
    rows = made_exports.closed_loop(conc, 4, osl=0 if behave == "zero" else osl)
    place = logs / "infx" / label / "aiperf"
    if behave == "foreign":
        place = logs / "artifacts" / f"run-{len(list(logs.glob('artifacts/*')))}"
    made_exports.write_run(place, rows, conc=conc, osl=osl)
    with (Path(os.environ["STUB_SRT"]).parent / "measured.txt").open("a") as log:
        log.write(f"{label}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
