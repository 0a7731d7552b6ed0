"""configs/clusters.yaml: what a sound file becomes, and each fault at its place with its hint."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from infx.cli.planning import plan_of
from infx.config.clusters import _OWN, expired_exclusions
from infx.config.library import Library
from infx.config.project import Project
from infx.config.sites import Cluster, Container, SlurmSite, TimeLimits
from infx.domain.findings import Where
from tests.config.sample_project import FILES, MATRIX, Edit, write_project

ROOT = Path(__file__).resolve().parents[2]
FILE = "configs/clusters.yaml"
SITES = """\
box: {executor: local, hardware: cpu, time-limits: {job: 60}}
far:
  executor: slurm
  hardware: h200
  gpus-per-node: 8
  time-limits: {job: 14400, start: 1800, point: 3600}
  slurm:
    ssh: h200-login
    partition: gpu
    account: bench
    qos: normal
    gpus: gpus-per-node
    gpu-type: h200
    exclusive: true
    jobs-at-once: 4
    submit-limit: 200
    largest-array: 500
    retries: 3
    folder: /shared/in fx
    python: /opt/py311/bin/python
    directives: ["--constraint=h200", "--comment=of infx"]
    container: {runtime: pyxis, mounts: ["/m:/m:ro", "/c:/d"], images: /sq, client: "me/infx:1"}
    models: {"hf:OWNER/NAME": /models/name}
    strip: [HTTP_PROXY, "NCCL_*"]
    exclude-nodes:
      - {nodes: "node[3-4]", until: "2026-12-31", reason: "NVLink errors, ticket 12"}
near: {executor: slurm, hardware: cpu, slurm: {partition: low}}
lab: {executor: slurm, hardware: cpu, slurm: {lab: true, gpus: none}}
"""
CONTAINER = '{runtime: pyxis, mounts: ["/m:/m:ro", "/c:/d"], images: /sq, client: "me/infx:1"}'
EXCLUSION = '{nodes: "node[3-4]", until: "2026-12-31", reason: "NVLink errors, ticket 12"}'
NEAR = "near: {executor: slurm, hardware: cpu, slurm: {partition: low}}"
LOCAL, LAB = "time-limits: {job: 60}", "{lab: true, gpus: none}"


def read(text: str, root: Path, name: str = "far") -> tuple[Cluster | None, Library]:
    library = Library(write_project(root, {FILE: text}))
    return library.cluster(name, Where("--on")), library


TABLE: list[tuple[str, Edit, str]] = [
    # Keys, at each level
    ("unknown-key", Edit("gpus-per-node: 8", "«gpus-pernode: 8"), "did you mean `gpus-per-node`?"),
    ("unknown-key", Edit("partition: gpu", "«partion: gpu"), "did you mean `partition`?"),
    ("unknown-key", Edit("runtime: pyxis", "«run-time: pyxis"), "did you mean `runtime`?"),
    ("unknown-key", Edit("until:", "«till: x, until:"), "did you mean `until`?"),
    ("unknown-key", Edit("start: 1800", "«starts: 1800"), "did you mean `start`?"),
    ("unknown-key", Edit(LOCAL, "«time-limit-s: 90"), "write time-limits: {job: 90}"),
    ("missing-key", Edit("box: {executor: local, ", "box: «{"), "add it"),
    ("missing-key", Edit(EXCLUSION, '«{nodes: n1, until: "2026-12-31"}'), "add it"),
    ("missing-key", Edit(EXCLUSION, "«{nodes: n1, reason: x}"), "add it"),
    # What goes with what
    ("conflicting-keys", Edit(LOCAL, "«slurm: {partition: gpu}"), "write executor: slurm"),
    ("missing-key", Edit(NEAR, "near: «{executor: slurm, hardware: cpu}"), "add slurm: {partition"),
    ("missing-key", Edit(NEAR, "near: «{executor: slurm, hardware: x, slurm: null}"), "add slurm:"),
    ("conflicting-keys", Edit("    partition: gpu", "    «lab: true"), "remove one"),
    ("missing-key", Edit("{partition: low}", "{«ssh: x}"), "add folder:"),
    ("conflicting-keys", Edit("gpus: none", "gpus: none, «gpu-type: h200"), "remove one"),
    ("conflicting-keys", Edit("hardware: cpu, slurm: {lab: true, gpus: none}",
                              "hardware: x, gpus-per-node: 8, slurm: {«gpus: none}"), "exclusive"),
    ("conflicting-keys", Edit(LAB, "{«gpus: gres}"), "write gpus-per-node: 8"),
    ("conflicting-keys", Edit(LAB, "{«gpu-type: h200}"), "write gpus-per-node: 8"),
    ("conflicting-keys", Edit(CONTAINER, "{«mounts: [/a:/b]}"), "write runtime: pyxis"),
    ("conflicting-keys", Edit(CONTAINER, "{runtime: none, «client: x}"), "write runtime: pyxis"),
    ("conflicting-keys", Edit(CONTAINER, "{«images: /x}"), "write runtime: pyxis"),
    ("missing-key", Edit("{partition: low}", "{container: «{runtime: pyxis}}"), "add images:"),
    ("conflicting-keys", Edit('"--constraint=h200"', "«--time=5"), "time-limits: {job: …}"),
    ("conflicting-keys", Edit('"--constraint=h200"', "«--qos=x"), "write `qos:`"),
    ("conflicting-keys", Edit('"--constraint=h200"', "«--requeue"), "leave it out"),
    ("conflicting-keys", Edit("HTTP_PROXY", '«"SLURM_*"'), "name less"),
    ("conflicting-keys", Edit("HTTP_PROXY", '«"*"'), "name less"),
    # Names and paths
    ("bad-name", Edit("partition: gpu", 'partition: «"gpu\\n#SBATCH --wait"'), "letters"),
    ("bad-name", Edit("partition: gpu", "partition: «gpu'x"), "letters"),
    ("bad-name", Edit("account: bench", "account: «a b"), "letters"),
    ("bad-name", Edit("qos: normal", 'qos: «"no$x"'), "letters"),
    ("bad-name", Edit("gpu-type: h200", "gpu-type: «h200:8"), "letters"),
    ("bad-name", Edit("ssh: h200-login", "ssh: «-oProxyCommand=x"), "~/.ssh/config"),
    ("bad-name", Edit("folder: /shared/in fx", "folder: «shared"), "absolute path"),
    ("bad-name", Edit("folder: /shared/in fx", "folder: «~/infx"), "absolute path"),
    ("bad-name", Edit("folder: /shared/in fx", 'folder: «"/a\\nb"'), "absolute path"),
    ("bad-name", Edit("folder: /shared/in fx", "folder: «/a'b"), "without quotes"),
    ("bad-name", Edit("python: /opt/py311/bin/python", "python: «python3"), "absolute path"),
    ("bad-name", Edit("images: /sq", "images: «sq"), "absolute path"),
    ("bad-name", Edit("/models/name", "«models/name"), "absolute path"),
    ("bad-name", Edit('"hf:OWNER/NAME"', "«OWNER"), ""),
    ("bad-name", Edit('"--constraint=h200"', "«-C h200"), "in one word"),
    ("bad-name", Edit('"--constraint=h200"', "«--constraint h200"), "in one word"),
    ("bad-name", Edit('"--constraint=h200"', '«"--x=1\\n#SBATCH --wait"'), "in one word"),
    ("bad-name", Edit("HTTP_PROXY", "«HTTP-PROXY"), "variable's name"),
    ("bad-name", Edit("HTTP_PROXY", '«"A) rm -rf x;;"'), "variable's name"),
    ("bad-name", Edit('"node[3-4]"', '«"node3 --wait"'), "host list"),
    ("bad-name", Edit('"me/infx:1"', '«"me/infx 1"'), "reference"),
    # Values
    ("unknown-value", Edit("executor: local", "executor: «slrum"), "did you mean `slurm`?"),
    ("unknown-value", Edit("gpus: gpus-per-node", "gpus: «gpus-pernode"), "`gpus-per-node`?"),
    ("unknown-value", Edit("runtime: pyxis", "runtime: «pyxs"), "did you mean `pyxis`?"),
    ("out-of-range", Edit("jobs-at-once: 4", "jobs-at-once: «0"), ""),
    ("out-of-range", Edit("retries: 3", "retries: «21"), ""),
    ("out-of-range", Edit("job: 60", "job: «0"), ""),
    ("out-of-range", Edit("start: 1800", "start: «-1"), ""),
    ("wrong-type", Edit("exclusive: true", "exclusive: «1"), ""),
    ("ambiguous-scalar", Edit("exclusive: true", "exclusive: «yes"), "write true"),
    ("wrong-type", Edit("{job: 60}", "«60"), ""),
    ("wrong-type", Edit("slurm: {partition: low}", "slurm: «[low]"), ""),
    ("wrong-type", Edit(CONTAINER, "«pyxis"), ""),
    ("wrong-type", Edit(EXCLUSION, "«node3"), ""),
    ("ambiguous-scalar", Edit('"2026-12-31"', "«2026-12-31"), "quote it"),
    ("wrong-type", Edit('"2026-12-31"', '«"2026-02-30"'), "YYYY-MM-DD"),
    ("wrong-type", Edit('"2026-12-31"', "«soon"), "YYYY-MM-DD"),
    ("wrong-type", Edit('"2026-12-31"', '«"20261231"'), "YYYY-MM-DD"),
    ("wrong-type", Edit('"/c:/d"', "«/c"), ""),
    ("wrong-type", Edit('"/c:/d"', '«"c:/d"'), ""),
    ("wrong-type", Edit('"/c:/d"', '«"/c:/d:rx"'), ""),
    ("wrong-type", Edit('"/c:/d"', '«"/c,/e:/d"'), ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "edit", "hint"), TABLE, ids=[f"{n:02}-{code}" for n, (code, *_) in enumerate(TABLE)]
)
def test_fault(tmp_path: Path, code: str, edit: Edit, hint: str) -> None:
    text, place = edit.apply(SITES)
    _, library = read(text, tmp_path)
    found = library.report.findings
    shown = [str(finding) for finding in found]
    assert [finding.code for finding in found] == [code], shown
    where = found[0].where
    assert where is not None
    assert (where.file, where.line, where.col) == (FILE, *place), shown
    assert hint in found[0].hint, shown


def test_faults_of_all_sections_come_in_one_pass(tmp_path: Path) -> None:
    text = SITES.replace("/c:/d", "/c").replace("2026-12-31", "soon").replace("job: 60", "job: 0")
    text = text.replace("qos: normal", "qoss: normal")
    _, library = read(text, tmp_path)
    codes = sorted(finding.code for finding in library.report.findings)
    assert codes == ["out-of-range", "unknown-key", "wrong-type", "wrong-type"]


def test_a_site_with_every_key(tmp_path: Path) -> None:
    far, library = read(SITES, tmp_path)
    assert not library.report.findings
    assert far is not None
    assert far.limits == TimeLimits(job=14400, start=1800, point=3600)
    site = far.slurm
    assert site is not None
    assert (site.ssh, site.lab, site.partition, site.account) == (
        "h200-login",
        False,
        "gpu",
        "bench",
    )
    assert (site.gpus, site.gpu_type, site.exclusive) == ("gpus-per-node", "h200", True)
    assert (site.jobs_at_once, site.submit_limit, site.largest_array, site.retries) == (
        4,
        200,
        500,
        3,
    )
    assert (site.folder, site.python) == ("/shared/in fx", "/opt/py311/bin/python")
    assert site.directives == ("--constraint=h200", "--comment=of infx")
    assert site.container == Container(
        runtime="pyxis", mounts=("/m:/m:ro", "/c:/d"), images="/sq", client="me/infx:1"
    )
    assert site.models == {"hf:OWNER/NAME": "/models/name"}
    assert site.strip == ("HTTP_PROXY", "NCCL_*")
    (line,) = site.exclude_nodes
    assert (line.nodes, line.until, line.where.line) == ("node[3-4]", "2026-12-31", 26)


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    near, _ = read(SITES, tmp_path, "near")
    assert near is not None
    assert (near.limits, near.gpus_per_node) == (TimeLimits(), 0)
    assert near.slurm == SlurmSite(partition="low")
    box, _ = read(SITES, tmp_path, "box")
    assert box is not None
    assert (box.limits, box.slurm) == (TimeLimits(job=60), None)


def test_every_field_of_a_site_is_a_key_and_every_key_a_field() -> None:
    from infx.config.schema import model_of

    assert set(SlurmSite.__dataclass_fields__) == set(model_of("SlurmSection").model_fields)
    assert set(TimeLimits.__dataclass_fields__) == set(model_of("TimeLimitsSection").model_fields)
    assert set(Container.__dataclass_fields__) == set(model_of("ContainerSection").model_fields)
    site, model = SlurmSite(), model_of("SlurmSection")()
    for name in ("gpus", "exclusive", "lab", "submit_limit", "retries"):
        assert getattr(site, name) == getattr(model, name)
    assert TimeLimits() == TimeLimits(**dict(model_of("TimeLimitsSection")()))


def test_images_lie_in_the_folder_unless_said(tmp_path: Path) -> None:
    far, _ = read(SITES.replace("images: /sq, ", ""), tmp_path)
    assert far is not None
    assert far.slurm is not None
    assert far.slurm.container is not None
    assert far.slurm.container.images == "/shared/in fx/images"


@pytest.mark.parametrize(
    ("today", "used"), [("2026-12-30", False), ("2026-12-31", False), ("2027-01-01", True)]
)
def test_an_exclusion_ends_after_its_last_day(tmp_path: Path, today: str, used: bool) -> None:
    far, _ = read(SITES, tmp_path)
    assert far is not None
    assert far.slurm is not None
    assert far.slurm.excluded(today) == (() if used else ("node[3-4]",))
    found = list(expired_exclusions(far, today))
    assert [(f.code, f.level) for f in found] == [("exclusion-expired", "warning")] * used
    for finding in found:
        assert str(finding.where) == f"{FILE}:26:9"
        assert "NVLink errors, ticket 12" in finding.sentence


def test_a_plan_warns_of_an_exclusion_that_has_passed(tmp_path: Path) -> None:
    matrix = FILES[MATRIX].replace("cluster: box", "cluster: near").replace("[4, 8]", "[4, 16]")
    line = '{partition: low, exclude-nodes: [{nodes: n1, until: "2020-01-31", reason: fan}]}'
    text = SITES.replace("{partition: low}", line)
    recipe = FILES["recipes/mini.yaml"] + "chat-template: true\n"
    changes = {FILE: text, MATRIX: matrix, "recipes/mini.yaml": recipe}
    project = write_project(tmp_path, changes)
    plan = plan_of([str(project.root / MATRIX)], None, project, None)
    assert [f.sentence for f in plan.findings if f.code == "exclusion-expired"] == [
        "jobs run on n1 again: left out until 2020-01-31 (fan)"
    ]


def test_no_option_of_sbatch_that_the_script_writes_is_left_to_the_site() -> None:
    template = (ROOT / "infx/launch/slurm/templates/job.sh.j2").read_text()
    written = set(re.findall(r"^#SBATCH (--[a-z-]+)", template, re.M))
    assert len(written) > 8
    assert written <= set(_OWN)


def test_the_lab_has_the_points_of_this_machine() -> None:
    project = Project.find(ROOT)
    here, lab = (plan_of(["quickstart"], None, project, on) for on in (None, "lab"))
    assert [p.point_id for p in lab.points] == [p.point_id for p in here.points]
    assert [p.curve_id for p in lab.points] == [p.curve_id for p in here.points]
    assert {job.cluster for job in lab.jobs} == {"lab"}
    assert lab.cost.gpu_hours == 0


def test_a_sound_cluster_file_does_not_import_pydantic() -> None:
    code = """
import sys
from pathlib import Path
from infx.config.library import Library
from infx.config.project import Project
from infx.domain.findings import Where
assert Library(Project.find(Path("."))).cluster("mi355x", Where("x"))
print("pydantic" in sys.modules)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False\n"
