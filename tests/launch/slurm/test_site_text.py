"""What a cluster says of itself; CONFIG, PARTITIONS and NODES are of a 22.05 cluster."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.launch.slurm.site_text import (
    gpus,
    parse_config,
    parse_nodes,
    parse_partitions,
)

CONFIG = """\
Configuration data as of 2026-11-29T20:45:16
AccountingStorageBackupHost = (null)
AccountingStorageType   = accounting_storage/slurmdbd
BOOT_TIME               = 2026-11-29T20:44:54
ClusterName             = lab
KillWait                = 5 sec
MaxArraySize            = 10001
MaxJobCount             = 20000
MinJobAge               = 200 sec
SchedulerParameters     = bf_interval=5,max_script_size=65536,default_queue_depth=1000
SLURM_VERSION           = 22.05.8
"""
PARTITIONS = (
    "PartitionName=gpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES"
    " QoS=N/A DefaultTime=00:10:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO"
    " MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED"
    " Nodes=node[1-4] PriorityJobFactor=1 PriorityTier=10 State=UP TotalCPUs=256 TotalNodes=4"
    " TRES=cpu=256,mem=2000G,node=4,billing=256,gres/gpu=32\n"
    "PartitionName=low AllowGroups=ALL AllowAccounts=bench,root DenyQos=x Default=NO"
    " DefaultTime=NONE MaxNodes=2 MaxTime=UNLIMITED Nodes=(null) State=INACTIVE\n"
    "PartitionName=own AllowQos=a,b DenyAccounts=z MaxTime=02:00:00 State=UP\n"
)
NODES = """\
node1|gpu|idle|gpu:h200:8
node1|low|idle|gpu:h200:8
node2|gpu|mixed|gpu:h200:8
node3|gpu|down*|gpu:h200:8
node4|gpu|draining|(null)
node4|low|idle*|(null)
slurm_load_node: nonsense
"""


def test_the_settings_of_a_cluster() -> None:
    told = parse_config(CONFIG)
    assert told.accounting
    assert (told.max_array_size, told.max_script_bytes) == (10001, 65536)


def test_what_it_does_not_tell_is_slurms_default() -> None:
    told = parse_config("AccountingStorageType   = accounting_storage/none\n")
    assert not told.accounting
    assert (told.max_array_size, told.max_script_bytes) == (1001, 4 * 1024 * 1024)
    assert not parse_config("AccountingStorageType   = (null)\n").accounting  # 23.11


def test_partitions() -> None:
    gpu, low, own = parse_partitions(PARTITIONS)
    assert (gpu.name, gpu.default, gpu.max_time_s) == ("gpu", True, 86400)
    assert (low.name, low.default, low.max_time_s) == ("low", False, None)
    assert (own.name, own.default, own.max_time_s) == ("own", False, 7200)


def test_nodes() -> None:
    nodes = parse_nodes(NODES)
    assert [(n.name, n.partition) for n in nodes][:2] == [("node1", "gpu"), ("node1", "low")]
    assert [n.usable for n in nodes] == [True, True, True, False, False, False]
    assert [n.state for n in nodes][3:] == ["down", "draining", "idle"]
    assert [n.gpus for n in nodes] == [8, 8, 8, 8, 0, 0]


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("gpu:8", 8),
        ("gpu:h200:8", 8),
        ("gpu:h200:8(S:0-1)", 8),
        ("gpu:8(S:0,2),shard:32", 8),
        ("gpu:a:4,gpu:b:4", 8),
        ("gpu:a100:2(S:0),nvme:1,gpu:a100_3g.20gb:4(S:1)", 6),
        ("gpu", 1),
        ("gpu:h200", 1),
        ("mps:100,gpux:3", 0),
        ("(null)", 0),
        ("", 0),
    ],
)
def test_accelerators_of_a_gres(gres: str, count: int) -> None:
    assert gpus(gres) == count


@settings(max_examples=50)
@given(st.text())
def test_garbage_is_left_out(text: str) -> None:
    parse_config(text)
    parse_partitions(text)
    parse_nodes(text)
    assert gpus(text) >= 0
