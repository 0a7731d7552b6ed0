from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.errors import EngineError
from infx.domain.point import Point
from infx.engine.tokenizer import write_tokenizer
from infx.job.client_env import REVISION
from infx.job.prompt_file import prompt_seed, write_prompts
from infx.workloads.chat_tokens import ChatTokens
from tests.job.jobs import arm, point


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def rows(point: Point, tokenizer: Path, folder: Path) -> list[dict[str, str | int]]:
    lines = write_prompts(point, str(tokenizer), folder).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_warm_up_comes_first_and_nothing_twice(tokenizer: Path, tmp_path: Path) -> None:
    load = {"isl": 64, "osl": 16, "requests": 12, "warmup_requests": 3}
    made = rows(point(arm(), conc=2, **load), tokenizer, tmp_path)
    names = [f"warmup-{n}" for n in range(3)] + [f"profiling-{n}" for n in range(12)]
    assert [row["session_id"] for row in made] == names
    assert len({row["text"] for row in made}) == 15
    assert {row["output_length"] for row in made} == {16}
    assert ChatTokens(tokenizer)([str(row["text"]) for row in made]) == [64] * 15


def test_the_same_point_has_the_same_prompts(tokenizer: Path, tmp_path: Path) -> None:
    first, again, other = (rows(point(arm(), conc=conc), tokenizer, tmp_path) for conc in (1, 1, 2))
    assert first == again
    assert not {row["text"] for row in first} & {row["text"] for row in other}


def test_a_timed_run_has_prompts_to_its_end(tokenizer: Path, tmp_path: Path) -> None:
    timed = point(arm(), conc=2, duration_s=3, requests=1, warmup_requests=1, osl=8)
    made = rows(timed, tokenizer, tmp_path)
    # At a millisecond a token each user gets 125 answers of 8 tokens a second.
    assert len(made) == 1 + 2 * 3 * 125 + 2
    assert len({row["text"] for row in made}) == len(made)


def test_a_tokenizer_that_is_not_there(tmp_path: Path) -> None:
    for name in (str(tmp_path), "/nowhere/tokenizer"):
        with pytest.raises(EngineError, match=f"tokenizer '{name}' cannot be read") as caught:
            write_prompts(point(arm()), name, tmp_path)
        assert caught.value.code == "tokenizer-unknown"


def test_a_tokenizer_of_the_hub(tokenizer: Path, tmp_path: Path) -> None:
    """Taken from the local cache of the hub."""
    repository = tmp_path / "hub" / "models--org--tok"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / REVISION).symlink_to(tokenizer)
    code = (
        "import sys; from pathlib import Path; from tests.job.jobs import arm, point\n"
        "from infx.job.prompt_file import write_prompts\n"
        "print(write_prompts(point(arm()), 'org/tok', Path(sys.argv[1])).read_text())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("profiling-") == 4, done.stderr


def test_prompts_follow_workload_and_concurrency_alone() -> None:
    first = point(arm(), conc=1)
    newer = point(arm(image="pypi:engine==2"), conc=1)
    assert prompt_seed(first) == prompt_seed(newer)
    others = [point(arm(), conc=2), point(arm(), isl=65), point(arm(), seed=8)]
    assert len({prompt_seed(p) for p in (first, *others)}) == 4
    assert 0 <= prompt_seed(replace(first, conc=64)) < 1 << 28
