"""What a cluster says of itself; CONFIG, PARTITIONS and NODES are of a 22.05 cluster."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.launch.slurm.site_text import (
    gpu_types,
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
node1|gpu|idle|64|512000|gpu:h200:8
node1|low|idle|64|512000|gpu:h200:8
node2|gpu|mixed|64|512000|gpu:h200:8
node3|gpu|down*|64|512000|gpu:h200:8
node4|gpu|draining|64|512000|(null)
node4|low|idle*|64+|512000+|(null)
slurm_load_node: nonsense
"""


def test_the_settings_of_a_cluster() -> None:
    told = parse_config(CONFIG)
    assert (told.cluster, told.version, told.accounting) == ("lab", "22.05.8", True)
    assert (told.max_array_size, told.max_job_count) == (10001, 20000)
    assert (told.min_job_age_s, told.kill_wait_s) == (200, 5)
    assert told.max_script_bytes == 65536


def test_what_it_does_not_tell_is_slurms_default() -> None:
    told = parse_config("AccountingStorageType   = accounting_storage/none\n")
    assert not told.accounting
    assert (told.max_array_size, told.max_script_bytes) == (1001, 4 * 1024 * 1024)
    assert not parse_config("AccountingStorageType   = (null)\n").accounting  # 23.11


def test_partitions() -> None:
    gpu, low, own = parse_partitions(PARTITIONS)
    assert (gpu.name, gpu.default, gpu.state, gpu.nodes) == ("gpu", True, "UP", "node[1-4]")
    assert (gpu.max_time_s, gpu.default_time_s, gpu.max_nodes) == (86400, 600, None)
    assert gpu.allow_accounts is None
    assert gpu.allow_qos is None
    assert (low.default, low.state, low.nodes, low.max_nodes) == (False, "INACTIVE", "", 2)
    assert (low.max_time_s, low.default_time_s) == (None, None)
    assert low.allow_accounts == ("bench", "root")
    assert (own.allow_qos, own.deny_accounts) == (("a", "b"), ("z",))


def test_nodes() -> None:
    nodes = parse_nodes(NODES)
    assert [(n.name, n.partition) for n in nodes][:2] == [("node1", "gpu"), ("node1", "low")]
    assert [n.usable for n in nodes] == [True, True, True, False, False, False]
    assert [n.state for n in nodes][3:] == ["down", "draining", "idle"]
    assert (nodes[0].cpus, nodes[0].memory_mb, nodes[0].gpus) == (64, 512000, 8)
    assert (nodes[5].cpus, nodes[5].gpus, nodes[5].gpu_types) == (64, 0, ())


@pytest.mark.parametrize(
    ("gres", "count", "types"),
    [
        ("gpu:8", 8, ()),
        ("gpu:h200:8", 8, ("h200",)),
        ("gpu:h200:8(S:0-1)", 8, ("h200",)),
        ("gpu:8(S:0,2),shard:32", 8, ()),
        ("gpu:a:4,gpu:b:4", 8, ("a", "b")),
        ("gpu:a100:2(S:0),nvme:1,gpu:a100_3g.20gb:4(S:1)", 6, ("a100", "a100_3g.20gb")),
        ("gpu", 1, ()),
        ("gpu:h200", 1, ("h200",)),
        ("mps:100,gpux:3", 0, ()),
        ("(null)", 0, ()),
        ("", 0, ()),
    ],
)
def test_accelerators_of_a_gres(gres: str, count: int, types: tuple[str, ...]) -> None:
    assert (gpus(gres), gpu_types(gres)) == (count, types)


@settings(max_examples=50)
@given(st.text())
def test_garbage_is_left_out(text: str) -> None:
    parse_config(text)
    parse_partitions(text)
    parse_nodes(text)
    assert gpus(text) >= 0
