"""Free memory is the machine's, or what the tightest control group leaves."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infx.domain.errors import UsageError
from infx.engine import memory
from infx.engine.config import EngineConfig
from infx.engine.free_memory import free_bytes, room_in_groups

GIB = 2**30
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = ("memory.max", "memory.current", "inactive_file")


def group(folder: Path, names: tuple[str, str, str], limit: str, used: int, idle: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {idle}\n")


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    return tmp_path


def test_a_group_of_version_2_and_those_around_it(root):
    (root / "proc/self/cgroup").write_text("0::/slice/unit\n")
    top = root / "sys/fs/cgroup"
    group(top / "slice/unit", V2, "max", GIB)
    group(top / "slice", V2, str(8 * GIB), 3 * GIB, idle=GIB)
    top.joinpath("memory.stat").write_text("anon 1\n")  # the root has no limit
    assert list(room_in_groups(root)) == [6 * GIB]


def test_a_group_of_version_1_whose_path_is_that_of_the_host(root):
    """Inside a container the group's own files lie at the top of the mount."""
    (root / "proc/self/cgroup").write_text("9:cpu:/docker/1\n4:hugetlb,memory:/docker/1\n0::/\n")
    group(root / "sys/fs/cgroup/memory", V1, str(2 * GIB), GIB)
    assert list(room_in_groups(root)) == [GIB]


def test_a_group_that_is_over_its_limit_has_no_room(root):
    (root / "proc/self/cgroup").write_text("0::/\n")
    group(root / "sys/fs/cgroup", V2, str(GIB), GIB + 5)
    assert list(room_in_groups(root)) == [0]


def test_a_machine_without_control_groups_has_no_limit(root):
    assert list(room_in_groups(root)) == []
    (root / "proc/self/cgroup").write_text("0::/gone\n")
    assert list(room_in_groups(root)) == []


def test_the_tightest_decides(monkeypatch):
    monkeypatch.setattr("infx.engine.free_memory.room_in_groups", lambda: iter([9 * GIB, 12345]))
    assert free_bytes() == 12345
    config = EngineConfig(num_blocks=100, max_model_len=512)
    with pytest.raises(UsageError, match=r"\(12345 bytes\)") as refused:
        memory.refuse_too_large(config)
    assert refused.value.code == "too-little-memory"


@contextlib.contextmanager
def limited(limit: int) -> Iterator[Path]:
    """A control group of version 1 with a limit, skipped where none may be made."""
    folder = Path(f"/sys/fs/cgroup/memory/infx-test-{os.getpid()}")
    try:
        folder.mkdir()
        (folder / V1[0]).write_text(str(limit))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield folder
    finally:
        folder.rmdir()


@pytest.mark.slow
def test_a_real_group_limits_the_engine():
    with limited(256 * 2**20) as folder:
        enter = f'echo $$ > {folder}/cgroup.procs && exec "$@"'
        engine = [sys.executable, "-m", "infx.engine", "--port", "0", "--num-blocks", "60000"]
        command = ["sh", "-c", enter, "sh", *engine]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr[:17]) == (2, "too-little-memory")
