"""Where a lab may be, and what is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.domain.errors import InfraError, UsageError
from infx.launch.lab.conf import LabSpec, Place
from infx.launch.lab.folders import (
    checked,
    cluster_name,
    lab_folder,
    lay_out,
    recorded,
    slurm_conf,
)


def refusal(spec: LabSpec) -> str:
    with pytest.raises(UsageError) as caught:
        checked(spec)
    assert caught.value.code == "bad-option"
    return str(caught.value)


def test_the_folder_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("INFX_LAB", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert lab_folder() == tmp_path / "infx" / "lab"
    monkeypatch.setenv("INFX_LAB", str(tmp_path / "mine"))
    assert lab_folder() == tmp_path / "mine"


def test_the_folder_is_in_the_state_folder_by_default(monkeypatch):
    for name in ("INFX_LAB", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert lab_folder() == Path("/home/somebody/.local/state/infx/lab")
    assert slurm_conf(lab_folder()) == lab_folder() / "etc" / "slurm.conf"


def test_a_folder_must_leave_room_for_sockets():
    longest = Path("/tmp") / ("a" * 64)
    assert checked(LabSpec(longest)).folder == longest
    assert "70 characters" in refusal(LabSpec(Path("/tmp") / ("a" * 65)))
    assert "--dir or INFX_LAB" in refusal(LabSpec(Path("/tmp") / ("a" * 65)))


@pytest.mark.parametrize("name", ["with space", "a,b", "n[1-4]", "hash#", "ü"])
def test_a_name_that_slurm_would_misread_is_refused(name):
    assert name in refusal(LabSpec(Path("/tmp") / name))


def test_sizes_that_cannot_be_are_refused():
    assert "0 nodes" in refusal(LabSpec(Path("/tmp/lab-x"), nodes=0))
    assert "1 to 126" in refusal(LabSpec(Path("/tmp/lab-x"), nodes=127))
    assert "-1 GPUs" in refusal(LabSpec(Path("/tmp/lab-x"), gpus=-1))
    assert "0 to 64" in refusal(LabSpec(Path("/tmp/lab-x"), gpus=65))


def test_files_of_somebody_else_are_safe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thesis").write_text("")
    monkeypatch.setattr("infx.launch.lab.folders.SOCKET_BYTES", 1000)  # tmp_path is long
    assert "no lab's" in refusal(LabSpec(tmp_path))
    assert "is a file" in refusal(LabSpec(tmp_path / "thesis"))


def test_what_is_laid_out_is_read_back(tmp_path):
    spec = LabSpec(tmp_path / "lab", nodes=3, gpus=2, accounting=True)
    place = Place(cluster_name(spec.folder), "vm", "somebody", 17_024)
    assert recorded(spec.folder) is None
    lay_out(spec, place)
    key = (spec.folder / "munge" / "key").read_bytes()
    lay_out(spec, place)
    assert recorded(spec.folder) == (spec, place)
    assert (spec.folder / "munge" / "key").read_bytes() == key
    assert (spec.folder / "dev" / "nvidia1").is_char_device()
    assert (spec.folder / "etc" / "slurmdbd.conf").stat().st_mode & 0o777 == 0o600
    assert (spec.folder / "munge").stat().st_mode & 0o777 == 0o700


def test_a_broken_record_is_named(tmp_path):
    (tmp_path / "lab.json").write_text("{}")
    with pytest.raises(InfraError, match=r"lab\.json cannot be read"):
        recorded(tmp_path)


def test_another_users_lab_is_named(tmp_path, monkeypatch):
    (tmp_path / "lab.json").write_text("{}")
    monkeypatch.setattr("os.geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(UsageError, match=r"is of another user \(\w+\) \(name another folder"):
        recorded(tmp_path)


def test_a_folder_that_cannot_be_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: File name too long"):
        recorded(tmp_path / ("a" * 300))
    spec = LabSpec(Path("/proc/none"))
    with pytest.raises(UsageError, match="/proc/none cannot be made: No such file"):
        lay_out(spec, Place(cluster_name(spec.folder), "vm", "somebody", 17_024))


def test_clusters_have_names_of_their_own():
    names = {cluster_name(Path(f"/tmp/{number}")) for number in range(1000)}
    assert len(names) == 1000
    assert {len(name) for name in names} == {10}
