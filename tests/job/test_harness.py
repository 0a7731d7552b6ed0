from __future__ import annotations

from importlib.metadata import version

import pytest

from infx.domain.errors import InfraError
from infx.job.harness import check_version


@pytest.mark.parametrize(
    ("package", "code", "found"),
    [("aiperf", "harness-version", "0.13.0 is installed"), ("aiperf-2", "harness-missing", "not")],
)
def test_another_version_is_refused_with_what_to_do(package: str, code: str, found: str) -> None:
    with pytest.raises(InfraError) as caught:
        check_version(package, "9.9")
    assert caught.value.code == code
    for part in (package, found, f"expects {package} 9.9", f"pip install {package}==9.9"):
        assert part in str(caught.value)


def test_the_planned_version_passes() -> None:
    check_version("aiperf", version("aiperf"))
