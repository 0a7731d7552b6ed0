"""What a change and a started server may not hold: checks 8 and 10."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from infx.review.checks import review
from infx.review.result import CheckResult
from tests.review.failing import FAILING, corrected, with_diff, with_records
from tests.review.minimax_m3 import NUMBER
from tests.review.verdicts import one, verdicts


@pytest.mark.parametrize("file", ["docs/note.md", "inferencex-e2e/perf-changelog.yaml"])
@pytest.mark.parametrize("line", ["--hf-overrides '{}'", "git apply x"])
def test_prose_may_name_what_a_change_may_not_do(file: str, line: str) -> None:
    found = verdicts(with_diff(corrected(), line, file))
    assert (found[8], found[10]) == ("PASS", "PASS")


def test_a_server_that_was_started_with_an_override_fails() -> None:
    def overridden(record):  # type: ignore[no-untyped-def]
        argv = (*record.provenance.server_argv, "--hf-overrides", "{}")
        return replace(record, provenance=replace(record.provenance, server_argv=argv))

    found = one(with_records(corrected(), "throughput", overridden), 8)
    assert (found.verdict, "--hf-overrides" in found.sentence) == ("FAIL", True)


# The sections of a waiver, as a pull request fills them.
WAIVER = """\
# What is patched
{what}
# Why the image cannot run this
The image's mono decode hangs here.
# Upstream link
{upstream}
# Removal plan
{plan}
"""
FILLED = {
    "what": "agentic.yaml applies mono.patch",
    "upstream": "https://github.com/ROCm/ATOM/pull/1",
    "plan": "with the next nightly",
}
WAIVER_PATH = f"inferencex-e2e/docs/waiver/{NUMBER}.md"


def waived(*, filed: bool = True, linked: bool = True, **words: str) -> CheckResult:
    patched = FAILING[10][0](corrected())
    request, (reuse, signed) = patched.pull_request, patched.comments
    changed = (*request.changed, WAIVER_PATH) if filed else request.changed
    body = f"{signed.body}\nWaiver: {WAIVER_PATH}\n" if linked else signed.body
    bundle = replace(
        patched,
        head={WAIVER_PATH: WAIVER.format(**{**FILLED, **words})},
        pull_request=replace(request, changed=changed),
        comments=(reuse, replace(signed, body=body)),
    )
    return one(bundle, 10)


def test_a_patch_with_a_filled_waiver_passes() -> None:
    assert waived().verdict == "PASS"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"plan": ""}, "lacks removal"),
        ({"plan": "TBD"}, "lacks removal"),
        ({"plan": "<!-- when does it go? -->"}, "lacks removal"),
        ({"plan": "- N/A."}, "lacks removal"),
        ({"upstream": "we told them"}, "links no upstream pull request"),
        ({"what": "a kernel"}, "does not name agentic.yaml"),
    ],
)
def test_a_waiver_that_is_not_filled_fails(words: dict[str, str], said: str) -> None:
    found = waived(**words)
    assert (found.verdict, said in found.sentence) == ("FAIL", True)


def test_a_waiver_is_filed_and_linked_in_its_pull_request() -> None:
    assert "is not of this pull request" in waived(filed=False).sentence
    unlinked = waived(linked=False)
    assert (unlinked.verdict, "does not link" in unlinked.sentence) == ("WARN", True)


PATCHES = [
    "patch -p1 < fix",
    "git am fix",
    "sed -i s/a/b/ /usr/lib/python3/dist-packages/vllm/x.py",
    "sed -e s/a/b/ -i /app/atom/x.py",
    "perl -pi -e s/a/b/ /sgl-workspace/sglang/x.py",
    "cat x > /opt/site-packages/atom/y.py",
    "cp fused.py $(python -c 'import site') && cp y /usr/lib/dist-packages/aiter/",
    "pip install git+https://github.com/x/vllm",
    "pip3 install --no-deps /wheels/sglang-0.5.whl",
    "uv pip install flashinfer-python==0.5",
    "vllm @ git+https://github.com/x/vllm@fix",
    "git clone https://github.com/x/aiter && cd aiter",
    "python setup.py develop",
    "docker cp x.py server:/app/atom/x.py",
    "  -v /fixes/atom:/app/atom/ \\",
    "  /fixes/layer.py: /usr/lib/python3/dist-packages/vllm/layer.py",
    "# a monkey-patch of the router",
    "vllm.model_executor.layers.Linear.forward = fast",
    "setattr(sglang.srt, 'x', y)",
    "path = Path(vllm.__file__).parent",
    "sys.modules['aiter'] = mine",
    "  PYTHONPATH: /fixes",
    "export LD_PRELOAD=/fixes/libfast.so",
    "TRITON_KERNEL_OVERRIDE=1",
    "  VLLM_PLUGINS: mine",
]

NO_PATCHES = [
    "pip install sentencepiece tiktoken",
    "pip install 'lm-eval @ git+https://github.com/x/lm-eval'",
    "sed -i s/a/b/ recipe.yaml",
    "  ATOM_MONO_ENABLE: '1'",
    "  framework: vllm",
    "  image: vllm/vllm-openai:v0.28.0",
    "LD_PRELOAD=/usr/lib/libtcmalloc.so.4",
    "  PYTHONPATH: ''",
    "  PYTHONNOUSERSITE: '1'",
    "if vllm.version.major == 1:",
    "  draft: ATOM-project/draft-model",
]


@pytest.mark.parametrize("line", PATCHES)
def test_what_patches_an_engine(line: str) -> None:
    assert verdicts(with_diff(corrected(), line))[10] == "FAIL"


@pytest.mark.parametrize("line", NO_PATCHES)
def test_what_patches_none(line: str) -> None:
    assert verdicts(with_diff(corrected(), line))[10] == "PASS"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("runners/patches/fix.patch", "FAIL"),
        ("runners/lib/sitecustomize.py", "FAIL"),
        ("runners/overlay.pth", "FAIL"),
        ("runners/wheels/atom.whl", "FAIL"),
        ("docker/Dockerfile.fixed", "FAIL"),
        ("runners/patches/README.md", "PASS"),
    ],
)
def test_which_files_patch_an_engine(path: str, expected: str) -> None:
    bundle = corrected()
    request = replace(bundle.pull_request, changed=(*bundle.pull_request.changed, path))
    assert verdicts(replace(bundle, pull_request=request))[10] == expected


def test_a_patch_that_is_taken_away_is_none() -> None:
    path = "runners/patches/fix.patch"
    gone = (
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-git apply x\n"
    )
    bundle = corrected()
    request = replace(bundle.pull_request, changed=(*bundle.pull_request.changed, path))
    found = replace(bundle, pull_request=request, diff=bundle.diff + gone)
    assert verdicts(found)[10] == "PASS"


def test_a_server_that_was_started_with_other_code_fails() -> None:
    def preloaded(record):  # type: ignore[no-untyped-def]
        env = {**record.provenance.env, "LD_PRELOAD": "/fixes/fast.so"}
        return replace(record, provenance=replace(record.provenance, env=env))

    found = one(with_records(corrected(), "throughput", preloaded), 10)
    assert found.verdict == "FAIL"
    assert "and 14 more: variable: LD_PRELOAD=/fixes/fast.so" in found.sentence


PIECES = [
    "> ",
    "cp ",
    "sed -i ",
    "LD_PRELOAD=",
    "pip install ",
    "atom.",
    "-v ",
    ": /a",
    "setattr(",
    " ",
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_no_added_line_takes_long(piece: str) -> None:
    bundle = with_diff(corrected(), piece * (65_536 // len(piece)))
    started = time.process_time()
    review(bundle)
    assert time.process_time() - started < 5
