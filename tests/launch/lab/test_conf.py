"""The rendered files say what Slurm needs, whatever the lab's size."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from infx.launch.lab.conf import (
    LabSpec,
    Place,
    gres_conf_text,
    slurm_conf_text,
    slurmdbd_conf_text,
)

PLACE = Place("lab1234567", "vm", "root", 17_024)
SPECS = st.builds(
    LabSpec,
    st.just(Path("/tmp/lab")),
    nodes=st.integers(1, 126),
    gpus=st.integers(0, 16),
    accounting=st.booleans(),
)


def settings(text: str) -> dict[str, str]:
    """Single settings; a line of several (a node, a partition) is left out."""
    pairs = re.findall(r"^(\w+)=(\S+)$", text, re.MULTILINE)
    assert len({name for name, _ in pairs}) == len(pairs), "a setting stands twice"
    return dict(pairs)


@given(SPECS)
def test_each_node_has_its_own_port(spec):
    text = slurm_conf_text(spec, PLACE)
    ports = [int(port) for port in re.findall(r"^NodeName=.* Port=(\d+)", text, re.MULTILINE)]
    taken = {PLACE.controller_port, PLACE.accounting_port, *ports}
    assert len(taken) == spec.nodes + 2
    assert taken == set(range(17_024, 17_024 + spec.nodes + 2))


@given(SPECS)
def test_gpus_are_named_only_where_there_are_some(spec):
    text = slurm_conf_text(spec, PLACE)
    assert ("GresTypes=gpu" in text) == (spec.gpus > 0)
    assert text.count(f" Gres=gpu:h200:{spec.gpus} ") == (spec.nodes if spec.gpus else 0)
    assert bool(gres_conf_text(spec)) == (spec.gpus > 0)


@given(SPECS)
def test_gpus_are_counted_only_with_a_database(spec):
    # Slurm's controller ends at once when it is told to count them without one.
    counted = "AccountingStorageTRES" in settings(slurm_conf_text(spec, PLACE))
    assert counted == (spec.accounting and spec.gpus > 0)


@given(SPECS)
def test_controller_and_database_daemon_agree(spec):
    ours, theirs = settings(slurm_conf_text(spec, PLACE)), settings(slurmdbd_conf_text(spec, PLACE))
    assert ours["AuthInfo"] == theirs["AuthInfo"] == "socket=/tmp/lab/run/munge.sock"
    if spec.accounting:
        assert ours["AccountingStoragePort"] == theirs["DbdPort"]
        assert ours["AccountingStoragePass"] == "/tmp/lab/run/munge.sock"


def test_jobs_meet_what_sites_have():
    told = settings(slurm_conf_text(LabSpec(Path("/tmp/lab")), PLACE))
    assert told["KillWait"] == "30"
    assert told["MaxArraySize"] == "1001"
    assert told["MinJobAge"] == "300"
    assert "Memory" not in told["SelectTypeParameters"]  # jobs need not ask for any


def test_every_file_lies_in_the_folder():
    spec = LabSpec(Path("/srv/here"), accounting=True)
    text = slurm_conf_text(spec, PLACE) + gres_conf_text(spec) + slurmdbd_conf_text(spec, PLACE)
    paths = re.findall(r"=(?:socket=)?(/\S+)", text)
    assert len(paths) > 10
    assert {p for p in paths if not p.startswith("/srv/here/")} == {"/bin/true"}
