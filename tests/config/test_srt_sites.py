"""The section ``srt`` of a cluster: what a sound one becomes, and each fault with its hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.library import Library
from infx.config.sites import Cluster, SrtSite
from infx.domain.findings import Where
from tests.config.sample_project import write_project

FILE = "configs/clusters.yaml"
HEAD = "far:\n  executor: srt\n  hardware: h200\n  gpus-per-node: 8\n"
WHOLE = """\
  srt:
    ssh: login
    srtctl: /opt/srt/bin/srtctl
    config: /opt/srt/srtslurm.yaml
    folder: /shared/in fx
    client: me/client:1
    preflight: false
    jobs-at-once: 4
    retries: 0
    models: {"hf:OWNER/NAME": alias, "hf:O/N": /models/n}
    containers: {"vllm/vllm-openai:v0.24.0": /sq/vllm.sqsh}
    set: {slurm.partition: gpu, "roles.agg.args.max-num-seqs": "8"}
"""


def read(text: str, root: Path) -> tuple[Cluster | None, Library]:
    library = Library(write_project(root, {FILE: text}))
    return library.cluster("far", Where("--on")), library


def test_every_key(tmp_path: Path) -> None:
    found, library = read(HEAD + WHOLE, tmp_path)
    assert not library.report.findings
    assert found
    assert found.slurm is None
    assert found.srt == SrtSite(
        ssh="login",
        srtctl="/opt/srt/bin/srtctl",
        config="/opt/srt/srtslurm.yaml",
        folder="/shared/in fx",
        client="me/client:1",
        preflight=False,
        jobs_at_once=4,
        retries=0,
        models={"hf:OWNER/NAME": "alias", "hf:O/N": "/models/n"},
        containers={"vllm/vllm-openai:v0.24.0": "/sq/vllm.sqsh"},
        set={"slurm.partition": "gpu", "roles.agg.args.max-num-seqs": "8"},
    )


def test_nothing_is_required_but_the_section(tmp_path: Path) -> None:
    found, library = read(f"{HEAD}  srt: {{}}\n", tmp_path)
    assert not library.report.findings
    assert found
    assert found.srt == SrtSite()


@pytest.mark.parametrize(
    ("section", "code", "hint"),
    [
        ("", "missing-key", "add srt: {srtctl: PROGRAM}"),
        ("  srt: null\n", "missing-key", "add srt:"),
        ("  srt: {ssh: login}\n", "missing-key", "add folder:"),
        ("  srt: {partition: x}\n", "unknown-key", ""),
        ("  srt: {srtcl: x}\n", "unknown-key", "did you mean `srtctl`?"),
        ("  srt: {srtctl: bin/srtctl}\n", "bad-name", "absolute path"),
        ('  srt: {srtctl: "srtctl; rm -rf x"}\n', "bad-name", "absolute path"),
        ("  srt: {config: srtslurm.yaml}\n", "bad-name", "absolute path"),
        ("  srt: {ssh: -oProxyCommand=x, folder: /x}\n", "bad-name", "~/.ssh/config"),
        ("  srt: {jobs-at-once: 0}\n", "out-of-range", ""),
        ('  srt: {set: {"a b": x}}\n', "bad-name", "`a b` cannot be a name"),
        ("  srt: {set: {slurm.time_limit: 5}}\n", "wrong-type", "text"),
        ("  srt: {set: {name: x}}\n", "conflicting-keys", "leave it out"),
        ("  srt: {set: {output.folder: x}}\n", "conflicting-keys", "leave it out"),
        ("  srt: {set: {benchmark.command: x}}\n", "conflicting-keys", "leave it out"),
        ("  srt: {}\n  slurm: {partition: x}\n", "conflicting-keys", "write executor: slurm"),
    ],
)
def test_faults(section: str, code: str, hint: str, tmp_path: Path) -> None:
    found, library = read(HEAD + section, tmp_path)
    assert found is None
    [finding] = library.report.findings
    assert finding.code == code
    assert hint in str(finding)
    assert finding.where
    assert finding.where.file == FILE
    assert finding.where.line


@pytest.mark.parametrize("executor", ["local", "slurm"])
def test_the_section_of_another_executor(executor: str, tmp_path: Path) -> None:
    slurm = "  slurm: {partition: x}\n" if executor == "slurm" else ""
    text = HEAD.replace("executor: srt", f"executor: {executor}").replace("8", "0")
    _, library = read(f"{text}{slurm}  srt: {{}}\n", tmp_path)
    [finding] = library.report.findings
    assert finding.code == "conflicting-keys"
    assert "write executor: srt" in str(finding)


def test_a_benchmarks_other_keys_may_be_set(tmp_path: Path) -> None:
    found, library = read(f"{HEAD}  srt: {{set: {{benchmark.stream_output: 'true'}}}}\n", tmp_path)
    assert not library.report.findings
    assert found
