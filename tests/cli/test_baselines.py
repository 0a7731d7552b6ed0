"""--baseline live: the points that are published, and no others of their runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.cli.baselines import baseline_runs, live_runs
from infx.cli.reporting import stored_run
from infx.domain.errors import UsageError
from infx.report.model import RunData
from infx.store.exchange import place_of
from tests.cli.commands import here
from tests.store.machines import RUN, Machine
from tests.store.tiny_plans import job, plan

LATER, LAST = "20260103-000000-bbbb", "20260104-000000-cccc"


@pytest.fixture
def one(tmp_path: Path):
    with Machine(tmp_path / "one") as found:
        yield found


def publish(one: Machine, run_id: str) -> None:
    place = place_of("place", one.results.parent, ())
    one.pushes(place, run_id, guard=lambda *_: ())


def data(one: Machine, run_id: str) -> RunData:
    return stored_run(one.store, one.row(run_id))


def names(found: list[RunData]) -> list[tuple[str, list[str]]]:
    return [(run.facts.run_id, [r.point.name for r in run.records]) for run in found]


def test_live_is_what_was_published_of_the_same_entries(one: Machine):
    one.whole()
    publish(one, RUN)
    one.whole(LATER)
    mine = [data(one, LATER)]
    everything = ["tiny.s1.c1", "tiny.s1.c2", "tiny.s2.c1", "tiny.s2.c2"]
    assert names(baseline_runs(one.store, ["live"], mine)) == [(RUN, everything)]
    [shown] = live_runs(one.store, mine)
    assert [point.name for point in shown.plan.points] == everything


def test_only_the_points_that_are_shown_are_compared_with(one: Machine):
    one.whole()
    whole = plan()
    one.begins(whole, LATER)
    one.measures(whole.jobs[0], run_id=LATER)
    publish(one, LATER)  # with --drop-points: half of the curve
    one.whole(LAST)
    assert names(live_runs(one.store, [data(one, LAST)])) == [(LATER, ["tiny.s1.c1", "tiny.s1.c2"])]


def test_runs_are_named_beside_it(one: Machine):
    one.whole()
    publish(one, RUN)
    for run_id in (LATER, LAST):
        one.whole(run_id)
    found = baseline_runs(one.store, [LATER, "live"], [data(one, LAST)])
    assert [run.facts.run_id for run in found] == [LATER, RUN]


def test_nothing_live_is_said(one: Machine):
    one.whole()
    assert live_runs(one.store, [data(one, RUN)]) == []
    with pytest.raises(UsageError, match="nothing is live for tiny"):
        baseline_runs(one.store, ["live"], [data(one, RUN)])
    publish(one, RUN)  # a run is no baseline of itself
    assert live_runs(one.store, [data(one, RUN)]) == []
    with pytest.raises(UsageError, match="what is live for tiny is this run itself"):
        baseline_runs(one.store, ["live"], [data(one, RUN)])


def test_a_live_run_that_is_not_here_is_named(one: Machine, tmp_path: Path):
    one.whole()
    publish(one, RUN)
    with Machine(tmp_path / "two") as two:
        two.whole(LATER)
        (two.results / "live.json").write_bytes((one.results / "live.json").read_bytes())
        with pytest.raises(UsageError, match=f"run {RUN}, which is live, is not here") as caught:
            live_runs(two.store, [data(two, LATER)])
    assert f"infx store pull PLACE {RUN}" in caught.value.hint


def test_the_report_understands_it(one: Machine):
    one.whole()
    publish(one, RUN)
    one.begins(plan(job(0)), LATER)
    done = here("report", LATER, "--baseline", "live", "--results", one.results)
    assert done.returncode == 0, done.stderr
    assert RUN in (one.folder(LATER) / "report.html").read_text()
    twice = here("report", RUN, "--baseline", RUN, "--results", one.results)
    assert twice.returncode == 2
