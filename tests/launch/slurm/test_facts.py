"""What a cluster says of itself, and what that rules out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from infx.domain.errors import InfraError, UsageError
from infx.launch.slurm.batch import MARGIN_MIN, Shape
from infx.launch.slurm.facts import Facts, ask, check_shapes, check_size, passes
from infx.launch.transport import Answer
from tests.launch.slurm.played import SILENCE, Played, cluster, facts_text

FACTS = ask(Played(scontrol=facts_text()), "lab")


def test_one_question_for_all() -> None:
    transport = Played(scontrol=facts_text("accounting_storage/slurmdbd", largest=501))
    found = ask(transport, "lab")
    assert len(transport.asked) == 1
    assert found.config.accounting
    assert found.config.max_array_size == 501
    assert [node.gpus for node in found.nodes] == [8]


def test_the_default_partition_stands_for_no_name() -> None:
    assert FACTS.partition("") == FACTS.partition("main")
    assert FACTS.partition("nope") is None


def test_the_scheduler_is_asked_for_more_than_the_jobs_own_limit() -> None:
    assert Shape(gpus=0, time_limit_s=60).minutes == 1 + MARGIN_MIN
    assert Shape(gpus=0, time_limit_s=61).minutes == 2 + MARGIN_MIN


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (Answer(127, "", "sh: 1: scontrol: not found"), "slurm-missing", "no Slurm commands"),
        (Answer(1, "", "Unable to contact slurm controller"), "scheduler-down", "does not answer"),
        (Answer(0, "half an answer", ""), "scheduler-down", "half an answer"),
        (Answer(1, "", ""), "scheduler-down", "no answer"),
    ],
)
def test_why_there_are_no_facts(answer: Answer, code: str, told: str) -> None:
    with pytest.raises(InfraError, match=told) as caught:
        ask(Played(host="login", scontrol=answer), "lab")
    assert caught.value.code == code
    assert "login" in str(caught.value)


def test_silence_is_the_transports_to_tell() -> None:
    with pytest.raises(InfraError) as caught:
        ask(Played(scontrol=SILENCE), "lab")
    assert caught.value.code == "no-answer"


def refused(*shapes: Shape, **site: Any) -> str:
    with pytest.raises(UsageError) as caught:
        check_shapes(FACTS, cluster(**site), shapes)
    assert caught.value.code == "cluster-refuses"
    return str(caught.value)


FITS = Shape(gpus=8, time_limit_s=2 * 3600 - 60 * MARGIN_MIN)


def test_what_fits_passes() -> None:
    check_shapes(FACTS, cluster(), [FITS, Shape(gpus=0, time_limit_s=60)])
    check_shapes(FACTS, cluster(partition=""), [FITS])


def test_what_the_cluster_cannot_give_is_said_at_once() -> None:
    told = refused(FITS, Shape(gpus=9, time_limit_s=2 * 3600 - 60 * MARGIN_MIN + 1))
    assert "configs/clusters.yaml" in told
    assert "cluster 'lab'" in told
    assert "partition main allows 120 min" in told
    assert "asks for 9 GPUs; the largest node of main has 8" in told


def test_a_partition_that_is_not_there_is_named_with_those_that_are() -> None:
    assert "there is no partition 'gpu'; there are main" in refused(FITS, partition="gpu")


def test_the_largest_script() -> None:
    most = FACTS.config.max_script_bytes
    check_size(FACTS, cluster(), most)
    with pytest.raises(UsageError, match=f"at most {most} bytes; this one has {most + 1}"):
        check_size(FACTS, cluster(), most + 1)


@pytest.mark.parametrize(
    ("state", "said", "may_pass"),
    [
        ("drained", "Requested node configuration is not available", True),
        ("idle", "Requested node configuration is not available", False),
        ("drained", "Invalid feature specification", False),
    ],
)
def test_a_refusal_of_test_only_may_be_the_drained_nodes(
    state: str, said: str, may_pass: bool
) -> None:
    nodes = tuple(replace(node, state=state) for node in FACTS.nodes)
    found = Facts(FACTS.config, FACTS.partitions, nodes)
    assert passes(found, cluster(), f"allocation failure: {said}") is may_pass
