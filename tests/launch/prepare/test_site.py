"""Preparing a cluster: a temporary folder, the commands of this machine, a real Slurm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infx.config.sites import Cluster, SlurmSite
from infx.domain.errors import ConfigError, InfraError, UsageError
from infx.domain.findings import Where
from infx.launch.prepare import Prepared, check_image, prepare, prepared_python
from infx.launch.prepare.bundle import kept, own_wheel
from infx.launch.prepare.node_check import NodeCheck, check_node, read_log, submission
from infx.launch.prepare.own_wheel import OwnWheel
from infx.launch.prepare.scripts import read_survey
from infx.launch.transport import Answer, LocalTransport
from tests.launch.prepare.tiny_wheel import write_tiny

if TYPE_CHECKING:
    from tests.launch.lab_fixture import Lab


slow = pytest.mark.slow
SITE = SlurmSite(python=sys.executable)


class Counting(LocalTransport):
    """Counts round trips; ``before`` sees each script first."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(environment)
        self.trips = 0
        self.before: Callable[[str], None] = lambda script: None

    def run(self, script: str, *, limit_s: float = 30.0) -> Answer:
        self.trips += 1
        self.before(script)
        return super().run(script, limit_s=limit_s)

    def push(self, source: Path, target: str, names: Sequence[str]) -> None:
        self.trips += 1
        super().push(source, target, names)


@dataclass
class Site:
    """A cluster's shared folder, and preparing it with a stand-in for infx."""

    folder: Path
    cache: Path
    own: OwnWheel
    transport: Counting
    told: list[str] = field(default_factory=list)

    def cluster(self, **changed: object) -> Cluster:
        site = replace(SITE, folder=str(self.folder), **changed)  # type: ignore[arg-type]
        where = Where("configs/clusters.yaml", 3, 5)
        return Cluster(name="there", executor="slurm", hardware="cpu", slurm=site, where=where)

    def prepare(self, ask: str = "", own: OwnWheel | None = None, **changed: object) -> Prepared:
        self.transport.trips = 0
        cluster = self.cluster(**changed)
        return prepare(
            cluster, self.transport, own or self.own, self.cache,
            extras=[], python=ask, say=self.told.append,
        )  # fmt: skip

    @property
    def bundles(self) -> Path:
        return self.folder / "bundles"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache") / "bundles"


@pytest.fixture
def site(tmp_path: Path, cache: Path, request: pytest.FixtureRequest) -> Site:
    own = kept(write_tiny(tmp_path / "tiny", source='__version__ = "0.0.1"\n'), cache)
    wants_slurm = request.node.get_closest_marker("slow") is not None
    conf = request.getfixturevalue("lab").conf if wants_slurm else "/nonexistent"
    # a folder with a blank and a quote: every script must quote it
    return Site(tmp_path / "shared it's", cache, own, Counting({"SLURM_CONF": str(conf)}))


@slow
def test_a_prepared_site_needs_one_round_trip_and_no_byte(site: Site) -> None:
    made = site.prepare()
    assert made.installed
    assert (made.pushed_files, made.pushed_bytes) == (2, made.bytes)
    assert made.checked.node.startswith("node")
    assert made.checked.versions == {"infx": "0.0.1"}
    assert prepared_python(site.transport, str(site.folder)) == made.python
    ran = subprocess.run([made.python, "-P", "-m", "infx"], capture_output=True, text=True)
    assert "infx.__main__" in ran.stderr, "the bundle's interpreter does not find infx"
    again = site.prepare()
    assert site.transport.trips == 1
    changes = {"pushed_files": 0, "pushed_bytes": 0, "installed": False, "seconds": again.seconds}
    assert again == replace(made, **changes)
    assert not list(site.bundles.glob("incoming-*"))
    assert json.loads((site.bundles / made.bundle / "bundle.json").read_text())["schema"] == 1


@slow
def test_a_damaged_file_there_is_pushed_again_and_alone(site: Site) -> None:
    site.prepare()
    victim = next(site.bundles.glob("wheels/*/pip-*.whl"))
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-1] + b"?")
    again = site.prepare()
    assert (again.pushed_files, again.pushed_bytes) == (1, len(whole))
    assert victim.read_bytes() == whole
    assert not again.installed


@slow
def test_an_edit_of_infx_pushes_its_wheel_only_and_becomes_current(
    site: Site, tmp_path: Path
) -> None:
    first = site.prepare()
    edited = kept(write_tiny(tmp_path / "edited", source='__version__ = "2"\n'), site.cache)
    second = site.prepare(own=edited)
    assert second.pushed_files == 1
    assert prepared_python(site.transport, str(site.folder)) == second.python != first.python
    site.prepare()
    assert prepared_python(site.transport, str(site.folder)) == first.python


@slow
def test_a_file_that_arrives_damaged_is_no_part_of_the_bundle(site: Site) -> None:
    wheel = site.own.path
    site.prepare()  # so that the bundle is known here
    whole = wheel.read_bytes()
    there = site.bundles / "wheels" / wheel.parent.name / wheel.name
    there.unlink()
    wheel.write_bytes(whole[:-1] + b"?")
    with pytest.raises(InfraError, match=r"another sha256") as caught:
        site.prepare()
    wheel.write_bytes(whole)
    assert caught.value.code == "transfer-failed"
    assert not there.exists()
    assert not list(site.bundles.glob("incoming-*"))
    assert site.prepare().pushed_files == 1


@slow
def test_two_prepares_at_once_end_with_one_environment(site: Site) -> None:
    pair = [replace(site, transport=Counting({"SLURM_CONF": conf(site)})) for _ in range(2)]
    meet = threading.Barrier(2)
    made: list[Prepared] = []
    for one in pair:
        one.transport.before = lambda script: meet.wait(60) if "-m venv" in script else None
    threads = [threading.Thread(target=lambda one=one: made.append(one.prepare())) for one in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    assert [one.installed for one in made] == [True, True]
    assert made[0].python == made[1].python
    assert len(list((site.bundles / made[0].bundle).glob("venv-*"))) == 1
    assert not site.prepare().installed


DRIVE = """
import sys
from pathlib import Path
from tests.launch.prepare.test_site import Counting, Site
from infx.launch.prepare.own_wheel import read_wheel
folder, cache, wheel, conf = sys.argv[1:]
site = Site(Path(folder), Path(cache), read_wheel(Path(wheel)), Counting({"SLURM_CONF": conf}))
site.prepare()
"""


@slow
@pytest.mark.parametrize(
    "sign",
    [
        pytest.param("incoming-*", marks=pytest.mark.proof),
        "*/venv-*",
        pytest.param("*/check-*.log", marks=pytest.mark.proof),
    ],
)
def test_what_a_killed_prepare_left_does_not_disturb_the_next(site: Site, sign: str) -> None:
    argv = [sys.executable, "-c", DRIVE, site.folder, site.cache, site.own.path, conf(site)]
    child = subprocess.Popen(argv, stderr=subprocess.PIPE, cwd=Path(__file__).parents[3])
    deadline = time.monotonic() + 100
    while not list(site.bundles.glob(sign)):
        assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert prepared_python(site.transport, str(site.folder)) is None
    made = site.prepare()
    assert made.checked.versions == {"infx": "0.0.1"}
    assert prepared_python(site.transport, str(site.folder)) == made.python
    assert site.prepare().pushed_files == 0


@slow
def test_a_node_that_lacks_something_is_named_and_the_next_prepare_installs_anew(
    site: Site, tmp_path: Path
) -> None:
    broken = kept(write_tiny(tmp_path / "w", source="import lib_that_is_not_here\n"), site.cache)
    with pytest.raises(InfraError, match=r"node node\d .*infx cannot be imported.*not_here") as e:
        site.prepare(own=broken)
    assert e.value.code == "node-unfit"
    assert prepared_python(site.transport, str(site.folder)) is None
    with pytest.raises(InfraError):
        site.prepare(own=broken)
    assert site.told.count(site.told[-2]) == 2, "the environment was not made again"


@slow
def test_a_check_that_does_not_get_a_node_is_cancelled(site: Site, lab: Lab) -> None:
    lab.run("scontrol update nodename=ALL state=drain reason=test")
    try:
        with pytest.raises(InfraError, match=r"did not end in 1 s: PENDING") as caught:
            check_node(site.cluster(), site.transport, "/tmp", sys.executable, patience_s=1.0)
    finally:
        lab.run("scontrol update nodename=ALL state=resume")
    assert caught.value.code == "check-failed"
    assert not lab.run("squeue -h")


@slow
def test_a_folder_that_the_node_does_not_see(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infx.launch.prepare.node_check.GRACE_S", 0.5)
    gone = check_node(site.cluster(), site.transport, str(tmp_path / "no"), sys.executable)
    assert "is not there" in gone.lacks[0]
    python = str(tmp_path / "no/bin/python")
    assert "not on this node" in check_node(
        site.cluster(), site.transport, str(tmp_path), python
    ).lacks[0]  # fmt: skip


@slow
def test_what_sbatch_refuses_is_told(site: Site) -> None:
    with pytest.raises(InfraError, match=r"sbatch refused.*partition") as caught:
        check_node(site.cluster(partition="none"), site.transport, "/tmp", sys.executable)
    assert "cluster there" in caught.value.hint


@slow
@pytest.mark.proof  # over ssh in tests/launch/slurm/test_over_ssh.py
def test_infx_itself_runs_from_its_bundle(site: Site) -> None:
    own = own_wheel(site.cache)
    made = site.prepare(own=own)
    argv = [made.python, "-P", "-m", "infx", "plan", "quickstart", "--json"]
    ran = subprocess.run(argv, capture_output=True, text=True, cwd=site.folder, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["ok"]


def conf(site: Site) -> str:
    return site.transport._environment["SLURM_CONF"]


def interpreter(path: Path, version: str) -> str:
    """A stand-in that says that it is Python of that version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version} {path}\n")
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_of_the_site_that_is_missing_is_told_with_its_place(site: Site) -> None:
    with pytest.raises(ConfigError, match=r"clusters.yaml:3:5.*/no/python is not there") as caught:
        site.prepare(python="/no/python")
    assert caught.value.code == "python-missing"


def test_one_that_is_too_old_is_told_with_its_version(site: Site, tmp_path: Path) -> None:
    old = interpreter(tmp_path / "old", "3.6.8")
    with pytest.raises(ConfigError, match=r"old is 3\.6\.8; need Python 3\.11 to 3\.13"):
        site.prepare(python=old)


def test_one_that_does_not_run_is_broken(site: Site, tmp_path: Path) -> None:
    broken = interpreter(tmp_path / "python", "")
    Path(broken).write_text("#!/bin/sh\nexit 127\n")
    with pytest.raises(ConfigError, match="python is broken"):
        site.prepare(python=broken)


def test_without_any_on_the_path_it_is_the_machine_that_lacks_it(
    site: Site, tmp_path: Path
) -> None:
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        interpreter(tmp_path / "bin" / name, "3.9.2")
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    site.transport = Counting({"PATH": path})
    with pytest.raises(InfraError, match=r"this machine has no Python 3\.12 \(.*3\.9\.2") as caught:
        site.prepare("3.12", python="")
    assert caught.value.code == "python-missing"
    assert "`python` of cluster there" in caught.value.hint


def test_a_version_that_infx_does_not_run_with_is_a_wrong_option(site: Site) -> None:
    with pytest.raises(UsageError, match=r"--python 3\.14"):
        site.prepare("3.14")


def test_a_folder_that_cannot_be_made(site: Site, tmp_path: Path) -> None:
    (tmp_path / "shared it's").write_text("a file")
    with pytest.raises(InfraError, match=r"cannot be written.*(Not a directory|File exists)") as e:
        site.prepare()
    assert e.value.code == "folder-unwritable"


def test_a_machine_without_wheels_for_it_is_told(site: Site, tmp_path: Path) -> None:
    for name, said in (("getconf", "glibc 2.12"), ("uname", "x86_64")):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho {said}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    site.transport = Counting({"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    with pytest.raises(InfraError, match=r"x86_64 with glibc 2\.12.*2\.17") as caught:
        site.prepare()
    assert "client" in caught.value.hint


@slow
def test_too_little_space_is_told_before_anything_is_pushed(site: Site, tmp_path: Path) -> None:
    df = tmp_path / "bin" / "df"
    df.parent.mkdir()
    df.write_text("#!/bin/sh\necho head\necho /dev/x 9 9 1000 1% /\n")
    df.chmod(0o755)
    site.transport = Counting({"PATH": f"{df.parent}:{os.environ['PATH']}"})
    with pytest.raises(InfraError, match=r"0\.0 GiB are free") as caught:
        site.prepare()
    assert caught.value.code == "disk-full"
    assert not list(site.bundles.glob("*/*.whl"))


def test_nothing_is_prepared_at_first(site: Site) -> None:
    assert prepared_python(site.transport, str(site.folder)) is None


def test_the_survey_ignores_what_it_did_not_ask_for() -> None:
    found = read_survey(
        "welcome to the login node\nfree\tx\nglibc\tglibc 2.28\npython\tpython3\t\n"
    )
    assert (found.free_bytes, found.glibc) == (0, "2.28")
    assert [(one.name, one.version) for one in found.interpreters] == [("python3", "")]


def test_a_node_whose_python_does_not_start_says_why() -> None:
    log = "node\tn7\n/x/python: /lib/libc.so.6: version `GLIBC_2.34' not found\nend\n"
    assert read_log(log, "4") == NodeCheck(
        node="n7", job="4",
        lacks=("Python does not run: /x/python: /lib/libc.so.6: version `GLIBC_2.34' not found",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "option"),
    [
        ({"gpu_type": "h200"}, "--gres=gpu:h200:1"),
        ({"gpus": "gpus-per-node"}, "--gpus-per-node=1"),
        ({"gpus": "none"}, ""),
        ({"account": "a b"}, "'--account=a b'"),
        ({"directives": ("--constraint=h200",)}, "--constraint=h200"),
    ],
)
def test_the_check_asks_for_what_the_site_wants(
    site: Site, changed: dict[str, object], option: str
) -> None:
    cluster = replace(site.cluster(**changed), gpus_per_node=8)
    words = submission(cluster, "/f", "/p", ["infx"], ["n1", "n2"])
    assert option in words
    assert "--exclude=n1,n2" in words
    assert ("gpu" in words) == (changed.get("gpus") != "none")


def test_the_image_of_a_client(site: Site, tmp_path: Path) -> None:
    (tmp_path / "client.sqsh").touch()
    for image in (
        str(tmp_path / "client.sqsh"),
        "registry.example#a/b:1.2",
        "host:5000/b@sha256:0a",
    ):
        assert check_image(site.transport, image) == image
    with pytest.raises(InfraError, match="no such image"):
        check_image(site.transport, str(tmp_path / "other.sqsh"))
    for image in ("b", "host:5000/b"):
        with pytest.raises(ConfigError, match="neither a tag nor a digest"):
            check_image(site.transport, image)
