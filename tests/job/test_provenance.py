from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.job.provenance import HIDDEN, collect, redacted

SECRET = ("OPENAI_API_KEY", "HF_TOKEN", "DB_PASSWORD", "aws_secret", "GOOGLE_CREDENTIALS", "X_AUTH")


@given(st.sampled_from(SECRET), st.sampled_from(("", "_2", "_FILE")), st.text(min_size=5))
def test_no_secret_is_told(name: str, tail: str, value: str) -> None:
    assert redacted({name + tail: value}) == {name + tail: HIDDEN}


def test_what_is_no_secret_is_told() -> None:
    env = {"OMP_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM": "false"}
    assert redacted(env) == env


def test_a_password_inside_a_url_is_hidden() -> None:
    env = {"HF_ENDPOINT": "https://me:hunter2@mirror.example/x", "A": "see http://b.example/c@d"}
    told = redacted(env)
    assert told["HF_ENDPOINT"] == f"https://{HIDDEN}@mirror.example/x"
    assert told["A"] == env["A"]


def test_only_telling_variables_and_the_recipes_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    monkeypatch.setenv("MY_LETTERS", "private")
    monkeypatch.setenv("HF_TOKEN", "hf_abc")
    env = collect(tmp_path, env={"ENGINE_FLAG": "1"}).env
    assert env["OMP_WAIT_POLICY"] == "PASSIVE"
    assert env["HF_TOKEN"] == HIDDEN
    assert env["ENGINE_FLAG"] == "1"
    assert "MY_LETTERS" not in env


def test_machine_and_packages(tmp_path: Path) -> None:
    made = collect(tmp_path, server_argv=["serve"], server={"max_num_seqs": 2})
    assert made.packages["aiperf"] == "0.13.0"
    assert made.host["cores"] >= 1
    assert made.host["memory_bytes"] > 1 << 28
    assert made.host["cpu"]
    assert made.server == {"max_num_seqs": 2}
    assert (made.git_revision, made.git_dirty) == ("", None)


def test_git_revision_and_dirtiness(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-qm", "one")
    (tmp_path / "untracked").write_text("")
    clean = collect(tmp_path)
    (tmp_path / "file").write_text("2")
    dirty = collect(tmp_path)
    assert clean.git_revision == dirty.git_revision == git("rev-parse", "HEAD")
    assert (clean.git_dirty, dirty.git_dirty) == (False, True)
