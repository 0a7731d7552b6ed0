"""Plays `python -m infx.job job.json`: writes events.jsonl and point.json as the real one does.

What it does at each point is in the arm's options, or STAND_IN: ``behave`` is ok, fail, crash,
infra, hang, stubborn (ignores TERM), deaf (hangs and ignores TERM), mute (leaves no result) or
parricide (kills its driver), ``seconds`` how long a point takes, ``gate`` (or STAND_IN_GATE) a file
without which no point ends. Each point that it measures to the end is a line in the run's
``measured.txt``, so that tests see what ran twice.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> int:
    path = Path(sys.argv[1])
    job = StandIn(json.loads(path.read_text()), path.parent)
    signal.signal(signal.SIGTERM, job.terminated)
    return job.run()


class StandIn:
    def __init__(self, spec: dict, folder: Path) -> None:
        self.spec, self.folder = spec, folder
        options = spec["job"]["arm"]["options"]
        self.behave = options.get("behave", os.environ.get("STAND_IN", "ok"))
        self.seconds = options.get("seconds", 0.02)
        gate = options.get("gate", os.environ.get("STAND_IN_GATE"))
        self.gate = Path(gate) if gate else None
        self.left = list(spec["job"]["points"])

    def run(self) -> int:
        try:
            claim = os.open(self.folder / "claim", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return 75
        os.write(claim, json.dumps({"by": "job", "scheduler_id": scheduler_id()}).encode())
        os.close(claim)
        self.event("job-started")
        if self.behave == "infra":
            self.event("job-ended", status="failed:harness-missing", sentence="no aiperf here")
            self.result("failed:harness-missing")
            return 3
        self.event("server-ready")
        while self.left:
            point = self.left[0]
            self.event("point-started", point=label(point), expected_s=self.seconds)
            self.measure(point)
        self.event("job-ended", status="ok")
        if self.behave != "mute":
            self.result("ended")
        return 0

    def result(self, status: str) -> None:
        spec = self.spec
        told = {"run_id": spec["run_id"], "job_id": spec["job"]["job_id"]}
        told |= {"attempt": spec["attempt"], "unique_name": spec["unique_name"], "status": status}
        told |= {"started_s": 0, "ended_s": time.time()}
        (self.folder / "result.tmp").write_text(json.dumps(told))
        (self.folder / "result.tmp").rename(self.folder / "result.json")

    def measure(self, point: dict) -> None:
        if self.behave == "parricide":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)  # until it is killed with it
        if self.behave == "crash":
            print("the server room is on fire", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(3600 if self.behave in ("hang", "deaf") else self.seconds)
        while self.gate and not self.gate.exists():
            time.sleep(0.05)
        failed = {"state": "failed", "code": "server-died", "sentence": "exit code 1"}
        self.write(point, failed if self.behave == "fail" else {"state": "measured"})
        with (Path(self.spec["run_dir"]) / "measured.txt").open("a") as log:
            log.write(f"{point['point_id']}\n")
        self.left.pop(0)
        self.event("point-ended", point=label(point), status="measured")

    def write(self, point: dict, status: dict) -> None:
        folder = self.folder / "points" / label(point)
        folder.mkdir(parents=True, exist_ok=True)
        attempt = {
            "run_id": self.spec["run_id"],
            "job_id": self.spec["job"]["job_id"],
            "number": self.spec["attempt"],
            "unique_name": self.spec["unique_name"],
            "repeat": self.spec["job"].get("repeat", 1),
        }
        record = {"point": point, "status": status, "attempt": attempt}
        (folder / "point.tmp").write_text(json.dumps(record))
        (folder / "point.tmp").rename(folder / "point.json")

    def event(self, name: str, **more: object) -> None:
        with (self.folder / "events.jsonl").open("a") as log:
            log.write(json.dumps({"t": time.time(), "event": name, **more}) + "\n")

    def terminated(self, *_: object) -> None:
        if self.behave in ("deaf", "stubborn"):
            return
        if self.behave == "mute":
            sys.exit(143)
        for point in self.left:
            if not (self.folder / "points" / label(point) / "point.json").exists():
                self.write(point, {"state": "cancelled"})
        self.result("cancelled")
        sys.exit(143)


def scheduler_id() -> str:
    array, task = (os.environ.get(f"SLURM_ARRAY_{what}_ID") for what in ("JOB", "TASK"))
    return f"{array}_{task}" if array else os.environ.get("SLURM_JOB_ID", "")


def label(point: dict) -> str:
    return f"{point['name']}-{point['point_id'][:8]}"


if __name__ == "__main__":
    sys.exit(main())
