"""Plans, changelog entries and events for the tests of CI."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from infx.changelog.entry import Entry, read_changelog
from infx.ci.decision import Change, CiPlan
from infx.ci.events import PullRequestEvent, read_comments, read_event
from infx.ci.labels import LabelRules
from infx.ci.plan import plan
from infx.ci.stored import Stored
from infx.cli.planning_ci import label_rules
from infx.config.matrix import AgenticSpec, Scenario
from infx.domain.plan import Origin, Plan
from infx.domain.point import Point
from infx.domain.status import OK, Status
from infx.plan.make import make_plan
from tests.plan.matrices import AT, entry, evaluation, matrix, scenario

EVENTS = Path(__file__).parent / "events"
TRACE = "semianalysis_cc_traces_weka_062126"
RULES: LabelRules = label_rules(None)


def sessions(**axes: Any) -> Scenario:
    return replace(scenario(**axes), workload=AgenticSpec(trace=TRACE, where=AT))


def mini(*scenarios: Scenario, name: str = "mini", image: str = "pypi:infx", **more: Any) -> Any:
    """An entry with two concurrencies of fixed lengths, two of sessions, and an evaluation."""
    given = scenarios or (
        scenario(conc=[1, 4], max_num_seqs="=2*conc"),
        sessions(conc=[2, 8], max_num_seqs="=2*conc"),
    )
    return entry(*given, name=name, image=image, **{"evaluations": (evaluation(),)} | more)


def other(name: str = "other", **more: Any) -> Any:
    """An entry like `mini` of another model: none of its points is one of mini's."""
    return mini(name=name, weights=f"random:{name}", **more)


def plan_of(*entries: Any) -> Plan:
    return make_plan(matrix(*entries))


def added(keys: str = "mini", **fields: Any) -> Entry:
    """The entry of a changelog that says these keys and fields."""
    lines = ["- config-keys:", *(f"    - {key}" for key in keys.split())]
    for name, value in fields.items():
        text = json.dumps(value)
        lines.append(f"  {name.replace('_', '-')}: {text}")
    lines += ["  description:", "    - Something changed.", "  pr-link: XXX", ""]
    read = read_changelog("\n".join(lines).encode(), "perf-changelog.yaml")
    assert not read.findings
    [found] = read.entries
    return found


def event(*labels: str, name: str = "labeled") -> PullRequestEvent:
    """A recorded event, with other labels where some are given."""
    data = json.loads((EVENTS / f"{name}.json").read_bytes())
    if labels:
        data["pull_request"]["labels"] = [{"id": 1, "name": label} for label in labels]
    return read_event(json.dumps(data).encode())


def change(head: Plan, *additions: Entry, base: Plan | None = None) -> Change:
    return Change(base=base or plan_of(), head=head, additions=additions)


def stored(
    points: Iterable[Point],
    run_id: str = "run-7",
    created_s: float = 7.0,
    states: Mapping[str, Status] | None = None,
    **more: Any,
) -> Stored:
    """A run that planned ``points``; all are ok but those whose names are in ``states``."""
    planned = tuple(points)
    ended = {point.point_id: (states or {}).get(point.name, OK) for point in planned}
    return Stored(
        run_id=run_id,
        created_s=created_s,
        states=ended,
        points=lambda: planned,
        **{"origin": None} | more,
    )


def origin(number: int = 17, repository: str = "example/lab", **more: Any) -> Origin:
    return Origin(repository=repository, pull_request=number, head_sha="4b94f096", **more)


def names(plan: Plan | None) -> list[str]:
    assert plan
    return sorted(point.name for point in plan.points)


HEAD = plan_of(mini(), other())


FULL = "full-sweep-enabled"


def planned(
    *labels: str,
    additions: tuple[Entry, ...] = (added("mini"),),
    head: Plan = HEAD,
    base: Plan = HEAD,
    **more: Any,
) -> CiPlan:
    return plan(event(*labels), change(head, *additions, base=base), RULES, **more)


COMMENTS = read_comments((EVENTS / "comments.json").read_bytes())
