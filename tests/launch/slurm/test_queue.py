"""squeue, sacct and scontrol as rows: texts that a 22.05 cluster wrote, shortened."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.launch.slurm.queue import (
    SACCT_FIELDS,
    SQUEUE_FORMAT,
    Row,
    choose,
    expand,
    parse_jobs,
    parse_sacct,
    parse_squeue,
)

# -r: a row for each task. 77's name holds a newline, 78's a separator.
SQUEUE = """\
52|52|N/A|TIMEOUT|2026-11-29T20:49:06|2026-11-29T20:49:06|2026-11-29T20:52:05|node1|tlx|TimeLimit
46|46|N/A|PENDING|2026-11-29T20:48:05|N/A|N/A||w4|ReqNodeNotAvail, UnavailableNodes:node4
74+0|74|N/A|RUNNING|2026-11-29T20:56:51|2026-11-29T20:56:55|2026-11-29T21:06:55|node4|het|None
74+1|75|N/A|RUNNING|2026-11-29T20:56:51|2026-11-29T20:56:55|2026-11-29T21:06:55|node2|het|None
76_0|76|0|RUNNING|2026-11-29T20:56:51|2026-11-29T20:56:55|2026-11-29T21:06:55|node2|arr|None
76_2|76|2|PENDING|2026-11-29T20:56:51|N/A|N/A||arr|JobArrayTaskLimit
77|77|N/A|PENDING|2026-11-29T20:56:51|N/A|N/A||two
lines|Priority
78|78|N/A|PENDING|2026-11-29T20:56:51|N/A|N/A||a|b|Priority
54|54|N/A|COMPLETING|2026-11-29T20:49:06|2026-11-29T20:49:09|2026-11-29T20:59:09|node1|rqh|\
job requeued in held state
31|31|N/A|FAILED|2026-11-29T20:46:15|2026-11-29T20:46:16|2026-11-29T20:46:16|node3|noout|\
JobLaunchFailure
"""
NONE = "None assigned"
SACCT = f"""\
1|FAILED|1:0|0:0|2026-11-29T20:45:16|2026-11-29T20:45:16|2026-11-29T20:45:16|{NONE}|refused|None
3|CANCELLED by 0|0:0|0:0|2026-11-29T20:45:16|None|2026-11-29T20:46:10|{NONE}|p|PartitionConfig
25_1|CANCELLED|0:15|0:0|2026-11-29T20:46:15|2026-11-29T20:46:15|2026-11-29T20:47:16|node1|arr|None
29+0|RUNNING|0:0|0:0|2026-11-29T20:46:15|2026-11-29T20:46:16|Unknown|node1|het|None
29+1|RUNNING|0:0|0:0|2026-11-29T20:46:15|2026-11-29T20:46:16|Unknown|node2|het|None
31|FAILED|0:53|0:0|2026-11-29T20:46:15|2026-11-29T20:46:16|2026-11-29T20:46:16|node3|noout|None
33|PREEMPTED|0:0|0:0|2026-11-29T20:46:15|2026-11-29T20:47:16|2026-11-29T20:47:22|node[1-4]|low|None
33|PENDING|0:0|0:0|2026-11-29T20:47:22|Unknown|Unknown|{NONE}|low|None
43_[1-3,7%2]|PENDING|0:0|0:0|2026-11-29T20:48:05|Unknown|Unknown|{NONE}|parr|None
53|REQUEUED|0:0|0:0|2026-11-29T20:49:06|2026-11-29T20:49:06|2026-11-29T20:49:09|node1|rq|None
56|COMPLETED|0:0|3:0|2026-11-29T20:49:13|2026-11-29T20:49:13|2026-11-29T20:49:14|node1|srun|None
72|COMPLETED|0:0|0:0|2026-11-29T20:54:20|2026-11-29T20:54:20|2026-11-29T20:54:21|node4|acc|\
PartitionConfig
"""
SCONTROL = (
    "JobId=31 JobName=noout UserId=root(0) JobState=FAILED Reason=JobLaunchFailure Requeue=1"
    " Restarts=0 BatchFlag=1 ExitCode=0:53 TimeLimit=00:10:00 SubmitTime=2026-11-29T20:46:15"
    " StartTime=2026-11-29T20:46:16 EndTime=2026-11-29T20:46:16 ReqNodeList=(null)"
    " ExcNodeList=(null) NodeList=node3 BatchHost=node3 Power= \n"
    "JobId=76 ArrayJobId=76 ArrayTaskId=2-4%2 ArrayTaskThrottle=2 JobName=arr JobState=PENDING"
    " Reason=JobArrayTaskLimit Restarts=0 ExitCode=0:0 SubmitTime=2026-11-29T20:56:51"
    " StartTime=Unknown EndTime=Unknown NodeList= NumNodes=1\n"
    "JobId=79 ArrayJobId=76 ArrayTaskId=1 JobName=arr JobState=RUNNING Reason=None Restarts=1"
    " ExitCode=0:0 SubmitTime=2026-11-29T20:56:51 StartTime=2026-11-29T20:56:55"
    " EndTime=2026-11-29T21:06:55 NodeList=node2\n"
    "JobId=29 HetJobId=29 HetJobOffset=0 JobName=het HetJobIdSet=29-30 JobState=RUNNING"
    " Reason=None SubmitTime=2026-11-29T20:46:15 NodeList=node1\n"
    "JobId=30 HetJobId=29 HetJobOffset=1 JobName=het HetJobIdSet=29-30 JobState=RUNNING"
    " Reason=None SubmitTime=2026-11-29T20:46:15 NodeList=node2\n"
    "No jobs in the system\n"
)


def at(clock: str) -> float:
    return datetime.fromisoformat(f"2026-11-29T{clock}").replace(tzinfo=UTC).timestamp()


def by_key(rows: list[Row]) -> dict[tuple[str, int | None], Row]:
    return {(row.name, row.task): row for row in rows}


def test_the_formats_have_the_fields_that_the_parsers_split() -> None:
    assert SQUEUE_FORMAT.count("|") == 9
    assert SACCT_FIELDS.count(",") == 9


def test_a_row_of_squeue() -> None:
    assert parse_squeue(SQUEUE)[0] == Row(
        name="tlx",
        job_id="52",
        task=None,
        state="TIMEOUT",
        source="squeue",
        reason="TimeLimit",
        nodes="node1",
        submit_s=at("20:49:06"),
        start_s=at("20:49:06"),
        end_s=at("20:52:05"),
    )


def test_squeue_reasons_and_states() -> None:
    rows = by_key(parse_squeue(SQUEUE))
    assert rows["w4", None].reason == "ReqNodeNotAvail, UnavailableNodes:node4"
    assert rows["w4", None].start_s is None
    assert rows["w4", None].nodes == ""
    assert rows["rqh", None].reason == "job requeued in held state"
    assert rows["noout", None].exit_code is None


def test_tasks_of_an_array() -> None:
    rows = by_key(parse_squeue(SQUEUE))
    assert rows["arr", 0].state == "RUNNING"
    assert rows["arr", 2].reason == "JobArrayTaskLimit"
    assert rows["arr", 2].shown_id == "76_2"
    assert rows["arr", 2].job_id == "76"
    assert rows["tlx", None].shown_id == "52"


def test_a_heterogeneous_job_is_its_leader() -> None:
    for rows in (parse_squeue(SQUEUE), parse_sacct(SACCT), parse_jobs(SCONTROL)):
        leader = [row for row in rows if row.name == "het"]
        assert [row.job_id for row in leader] in (["74"], ["29"])
        assert leader[0].nodes in ("node4", "node1")


def test_a_foreign_name_with_separators_harms_no_other_row() -> None:
    names = [row.name for row in parse_squeue(SQUEUE)]
    assert names == ["tlx", "w4", "het", "arr", "arr", "a", "rqh", "noout"]


def test_without_r_a_pending_array_is_spread() -> None:
    line = "43_[1-3,7%2]|43|1-3,7%2|PENDING|2026-11-29T20:48:05|N/A|N/A||parr|Resources\n"
    assert [row.task for row in parse_squeue(line)] == [1, 2, 3, 7]


def test_rows_of_sacct() -> None:
    rows = by_key(parse_sacct(SACCT))
    assert rows["noout", None].exit_code == (0, 53)
    assert rows["srun", None].derived == (3, 0)
    assert (rows["p", None].state, rows["p", None].cancelled_by) == ("CANCELLED", "0")
    assert rows["p", None].start_s is None
    assert rows["refused", None].nodes == ""
    assert rows["arr", 1].exit_code == (0, 15)
    assert [row.task for row in parse_sacct(SACCT) if row.name == "parr"] == [1, 2, 3, 7]
    assert all(row.source == "sacct" for row in rows.values())


def test_rows_of_scontrol() -> None:
    rows = by_key(parse_jobs(SCONTROL))
    assert rows["noout", None].exit_code == (0, 53)
    assert rows["noout", None].restarts == 0
    assert rows["noout", None].end_s == at("20:46:16")
    assert rows["arr", 1].restarts == 1
    assert {task for name, task in rows if name == "arr"} == {1, 2, 3, 4}
    assert len(rows) == 6


@pytest.mark.parametrize(
    "line",
    [
        "",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "Slurm accounting storage is disabled",
        "x|x|N/A|RUNNING|2026-11-29T20:49:06|N/A|N/A||name|None",
        "5|5|N/A|12:00|2026-11-29T20:49:06|N/A|N/A||name|None",
        "5|5|N/A|RUNNING|N/A|N/A|N/A||name|None",
        "5|5|N/A|RUNNING|2026-11-29T20:49:06|N/A|N/A|||None",
        "5_[9-1]|5|9-1|PENDING|2026-11-29T20:49:06|N/A|N/A||name|None",
        "5_[0-99999999]|5|x|PENDING|2026-11-29T20:49:06|N/A|N/A||name|None",
        "5.batch|5|N/A|RUNNING|2026-11-29T20:49:06|N/A|N/A||name|None",
    ],
)
def test_what_is_no_row_is_left_out(line: str) -> None:
    assert parse_squeue(line + "\n" + SQUEUE) == parse_squeue(SQUEUE)
    assert parse_sacct(line) == []
    assert parse_jobs(line) == []


@settings(max_examples=50)
@given(st.text(alphabet=st.sampled_from("|\n0123456789_[]-,%:+=TABCabc .")))
def test_no_text_breaks_a_parser(text: str) -> None:
    for parse in (parse_squeue, parse_sacct, parse_jobs):
        assert all(row.submit_s is not None for row in parse(text))


@settings(max_examples=50)
@given(st.sets(st.integers(min_value=0, max_value=300), min_size=1), st.integers(0, 9))
def test_array_ranges_come_back(tasks: set[int], throttle: int) -> None:
    spelled = ",".join(_runs(sorted(tasks))) + (f"%{throttle}" if throttle else "")
    assert expand(spelled) == sorted(tasks)


def _runs(tasks: list[int]) -> list[str]:
    """The indices as Slurm writes them: 1-3,7."""
    starts = [t for t in tasks if t - 1 not in tasks]
    ends = [t for t in tasks if t + 1 not in tasks]
    return [f"{a}-{b}" if a != b else str(a) for a, b in zip(starts, ends, strict=True)]


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("7", [7]),
        ("4-9%2", [4, 5, 6, 7, 8, 9]),
        ("0-8:4", [0, 4, 8]),
        ("1,3,...", [1, 3]),  # a list that squeue without -r cuts
    ],
)
def test_forms_of_a_range(text: str, tasks: list[int]) -> None:
    assert expand(text) == tasks


@pytest.mark.parametrize("text", ["", "a", "3-1", "1-2-3", "0-5:0", "0-99999999", "-1"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(ValueError, match="no range"):
        expand(text)


ROW = Row(
    name="infx-1", job_id="9", task=None, state="RUNNING", source="squeue", submit_s=at("20:00:00")
)


def test_squeue_counts_before_sacct_of_the_same_submission() -> None:
    late = replace(ROW, state="PENDING", source="sacct")
    assert choose([ROW, late])["infx-1", None] == ROW
    assert choose([late, ROW])["infx-1", None] == ROW


def test_an_end_in_the_queue_takes_its_exit_code_from_accounting() -> None:
    chosen = choose([*parse_squeue(SQUEUE), *parse_sacct(SACCT)])["noout", None]
    assert chosen.source == "squeue"
    assert (chosen.exit_code, chosen.derived) == ((0, 53), (0, 0))
    assert chosen.reason == "JobLaunchFailure"


def test_a_job_that_runs_takes_no_exit_code() -> None:
    told = replace(ROW, state="FAILED", source="sacct", exit_code=(1, 0))
    assert choose([ROW, told])["infx-1", None].exit_code is None


def test_an_earlier_run_lends_no_exit_code() -> None:
    earlier = replace(ROW, state="FAILED", source="sacct", exit_code=(7, 0))
    now = replace(ROW, state="FAILED", submit_s=at("20:30:00"))
    other = replace(now, job_id="8", submit_s=at("20:00:00"), exit_code=(8, 0))
    assert choose([earlier, now, other])["infx-1", None].exit_code is None


def test_a_requeued_job_is_its_latest_submission() -> None:
    chosen = choose(parse_sacct(SACCT))["low", None]
    assert (chosen.state, chosen.submit_s) == ("PENDING", at("20:47:22"))
    # squeue tells of the requeue (its begin time has not come), sacct only of the earlier run
    waiting = replace(ROW, name="rq", job_id="53", state="PENDING", submit_s=at("20:49:09"))
    assert choose([*parse_sacct(SACCT), waiting])["rq", None] == waiting


def test_an_older_job_of_the_same_name_does_not_count() -> None:
    old = replace(ROW, job_id="7", state="COMPLETED", submit_s=at("08:00:00"))
    new = replace(ROW, source="sacct")
    assert choose([old, new])["infx-1", None] == new
    assert choose([new, old])["infx-1", None] == new


@pytest.mark.parametrize("state", ["FAILED", "COMPLETED"])
def test_a_job_in_the_queue_counts_before_a_later_one_that_has_ended(state: str) -> None:
    """Two drives submitted one attempt: the later job found it taken."""
    ended = replace(ROW, job_id="9", state=state, submit_s=at("21:00:00"))
    for rows in ([ROW, ended], [ended, ROW]):
        assert choose(rows)["infx-1", None] == ROW


def test_an_id_that_was_used_again_is_another_job() -> None:
    lost = replace(ROW, name="infx-lost", source="sacct")
    heir = replace(ROW, name="infx-heir", submit_s=at("20:01:00"))
    chosen = choose([lost, heir])
    assert chosen["infx-lost", None] == lost
    assert chosen["infx-heir", None] == heir


def test_tasks_of_one_name_stay_apart() -> None:
    rows = [replace(ROW, task=task) for task in (0, 1)]
    assert set(choose(rows)) == {("infx-1", 0), ("infx-1", 1)}
    assert choose([]) == {}


@settings(max_examples=50)
@given(st.permutations(parse_squeue(SQUEUE) + parse_sacct(SACCT)))
def test_the_choice_does_not_depend_on_order(rows: list[Row]) -> None:
    assert choose(rows) == choose([*parse_squeue(SQUEUE), *parse_sacct(SACCT)])
