"""Upstream recipes and images: checks 3 and 6."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infx.review.bundle import Bundle, UpstreamRecipe
from infx.review.checks import review
from tests.review.failing import corrected
from tests.review.minimax_m3 import KEY, VLLM
from tests.review.verdicts import one, verdicts

RECIPE_URL = "https://recipes.vllm.ai/minimax/m3"


def vllm_touched(state: str) -> Bundle:
    bundle = corrected()
    (addition,) = bundle.changelog
    bundle = replace(bundle, changelog=(replace(addition, config_keys=(KEY, VLLM)),))
    recipe = UpstreamRecipe(entry=VLLM, url=RECIPE_URL, state=state)  # type: ignore[arg-type]
    body = f"{bundle.pull_request.body}\nIts recipe: {RECIPE_URL}.\n"
    request = replace(bundle.pull_request, body=body)
    return replace(bundle, upstream=(recipe,), pull_request=request)


@pytest.mark.parametrize("state", ["published", "merged", "open", "draft", "closed"])
def test_an_upstream_recipe_must_be_out(state: str) -> None:
    expected = "PASS" if state in ("published", "merged") else "FAIL"
    assert verdicts(vllm_touched(state))[3] == expected


def test_an_upstream_recipe_is_linked_and_is_upstream() -> None:
    bundle = vllm_touched("merged")
    bare = replace(bundle, pull_request=corrected().pull_request)
    found = one(bare, 3)
    assert (found.verdict, f"links {RECIPE_URL}" in found.sentence) == ("WARN", True)
    elsewhere = replace(bundle.upstream[0], url="https://example.org/recipe")
    found = one(replace(bundle, upstream=(elsewhere,)), 3)
    assert found.verdict == "FAIL"
    assert "is not in the documentation of vllm" in found.sentence
    untold = one(replace(bundle, upstream=()), 3)
    assert untold.verdict == "FAIL"
    assert f"it links {RECIPE_URL}, whose state is not told" in untold.sentence


def test_an_affected_entry_without_figures_fails() -> None:
    found = review(vllm_touched("merged")).checks
    assert f"no point of {VLLM} is planned" in found[1].sentence
    assert f"nothing was evaluated of {VLLM}" in found[2].sentence


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("vllm/vllm-openai-rocm:v0.27.1", "PASS"),
        ("docker.io/vllm/vllm-openai:v0.27.1", "PASS"),
        ("vllm/vllm-openai@sha256:" + "a" * 64, "PASS"),
        ("rocm/vllm-dev:nightly", "FAIL"),
        ("localhost:5000/vllm/vllm-openai", "FAIL"),
    ],
)
def test_vllm_runs_from_an_upstream_image(image: str, expected: str) -> None:
    bundle = vllm_touched("merged")
    atom, vllm = bundle.entries.head
    entries = replace(bundle.entries, head=(atom, replace(vllm, image=image)))
    assert verdicts(replace(bundle, entries=entries))[6] == expected
