"""The rules' files, what is wrong with some, and the schemas of all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from infx.config.conformity import conforms
from infx.config.nodes import Report, plain, read_yaml
from infx.domain.errors import ConfigError
from infx.review.reading import MANIFEST, PARTS
from infx.review.rules import RULES, load_rules
from infx.review.schema import write_schemas
from infx.review.writing import bundle_files
from tests.review.minimax_m3 import ARTIFACTS, minimax_m3

REVIEW = Path(__file__).parents[2] / "infx/review"


def data(name: str) -> str:
    return (REVIEW / f"data/{name}.yaml").read_text()


def test_the_written_schemas_are_current(tmp_path: Path) -> None:
    written = write_schemas(tmp_path)
    assert {path.name for path in written} == {p.name for p in (REVIEW / "schema").iterdir()}
    for path in written:
        text = (REVIEW / "schema" / path.name).read_text()
        assert text == path.read_text(), "write them again: infx.review.schema.write_schemas"


def valid(value: Any, schema: dict[str, Any]) -> bool:
    return conforms(value, known(schema), known(schema["$defs"]))


def known(schema: Any) -> Any:
    """The schema without the lengths of pairs, which `conforms` does not know."""
    if isinstance(schema, list):
        return [known(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "prefixItems" in schema:
        return {"type": "array"}
    return {key: known(value) for key, value in schema.items()}


def schema(name: str) -> dict[str, Any]:
    return json.loads((REVIEW / f"schema/{name}.json").read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", RULES)
def test_our_rules_conform_and_name_their_schema(name: str) -> None:
    report = Report()
    node, _ = read_yaml(REVIEW / f"data/{name}.yaml", name, report)
    assert node is not None
    assert not report.findings
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", data(name))
    assert named
    assert (REVIEW / "data" / named[1]).resolve() == (REVIEW / f"schema/{name}.json")
    assert valid(plain(node), schema(name))
    assert not valid({**plain(node), "other": 1}, schema(name))


def test_the_public_case_conforms_to_the_schema_of_bundles() -> None:
    files = bundle_files(minimax_m3(), ARTIFACTS)
    parts = {name: json.loads(files[name]) for name in (MANIFEST, *PARTS)}
    assert valid(parts, schema("bundle"))
    assert not valid({**parts, "runs.json": [{"run_id": "1"}]}, schema("bundle"))


def test_a_bundle_brings_its_own_rules() -> None:
    own = data("evidence").replace("frontier-points: 5", "frontier-points: 12")
    assert load_rules({"evidence": own}).evidence.frontier_points == 12
    assert load_rules().evidence.frontier_points == 5


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("bars", "version: 1\n", "bad-rules"),
        ("bars", "version: 0\ndefault: {}\n", "bad-rules"),
        ("bars", "version: 1\ndefault: {gsm8k: {strict-match: 1.5}}\n", "bad-rules"),
        ("bars", "version: 1\ndefault: {}\nmodells: {}\n", "bad-rules"),
        ("model-status", "version: 1\nmodels: {m: {scenarios: {agentic: gone}}}\n", "bad-rules"),
        ("labels-of-mine", "version: 1\n", "bad-rules"),
        ("bars", "version: 1\nversion: 1\ndefault: {}\n", "duplicate-key"),
        ("bars", "", "file-empty"),
        ("labels", "version: 1\n", "bad-label-rules"),
        ("evidence", data("evidence").replace("'^(.*/)?configs/'", "'(configs'"), "bad-rules"),
        ("source", data("source").replace("'\\bhf[-_]", "'\\bhf[-_"), "bad-rules"),
    ],
)
def test_wrong_rules_are_refused(name: str, text: str, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_rules({name: text})
    assert code in {finding.code for finding in caught.value.findings}
    assert all(finding.where for finding in caught.value.findings)


def test_a_model_of_its_own_bar() -> None:
    bars = load_rules().bars
    assert bars.of("qwen3.5", "gsm8k")["strict-match"] == 0.94
    assert bars.of("minimaxm3", "gsm8k")["strict-match"] == 0.9
    assert bars.of("minimaxm3", "no-such-task") == {}
