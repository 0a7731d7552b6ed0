"""The report that the browser's tests open, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.report.html import write_html
from infx.report.model import ReportModel
from tests.report.browsed import browsed


@pytest.fixture(scope="session")
def model() -> ReportModel:
    return browsed()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory, model: ReportModel) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_html(model, path)
    return path
