"""Who owns what, who may reuse, and what a sign-off must hold."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import infx.ci
from infx.review.bundle import Bundle, Comment
from infx.review.checks import review
from infx.review.people import owners_of
from infx.review.rules import load_rules
from tests.review.failing import corrected
from tests.review.minimax_m3 import CONFIG, RUN

OWNERS = """\
# a comment
*            @core
docs/        @writers
/configs/*   @configs  # inline
*.py         @python
/recipes/**/m3.yaml @m3
/free/
"""


@pytest.mark.parametrize(
    ("path", "owners", "catch_all"),
    [
        ("README.md", ("@core",), True),
        ("docs/a/b.md", ("@writers",), False),
        ("x/docs/a.md", ("@writers",), False),
        ("configs/a.yaml", ("@configs",), False),
        ("configs/sub/a.yaml", ("@core",), True),
        ("x/configs/a.yaml", ("@core",), True),
        ("docs/conf.py", ("@python",), False),
        ("recipes/m3.yaml", ("@m3",), False),
        ("recipes/a/b/m3.yaml", ("@m3",), False),
        ("free/x", (), False),
    ],
)
def test_the_last_pattern_that_matches_owns(
    path: str, owners: tuple[str, ...], catch_all: bool
) -> None:
    assert owners_of(OWNERS, path) == (owners, catch_all)


def said(bundle: Bundle, number: int) -> tuple[str, str]:
    check = review(bundle).checks[number]
    return check.verdict, check.sentence


def commented(body: str, association: str = "MEMBER", created_at: str = "2026-10-09") -> Bundle:
    bundle = corrected()
    comment = Comment(
        id="9", author="another-owner", association=association, created_at=created_at, body=body
    )
    return replace(bundle, comments=(*bundle.comments, comment))


@pytest.mark.parametrize(
    ("body", "association", "expected"),
    [
        ("/reuse-sweep-run", "MEMBER", "PASS"),
        (f"please\n/reuse-sweep-run {RUN}\nthanks", "OWNER", "PASS"),
        (f"/reuse-sweep-run 1\r\n/reuse-sweep-run {RUN}\r\n", "MEMBER", "PASS"),
        ("/reuse-sweep-run 11111111", "MEMBER", "FAIL"),
        ("/reuse-sweep-run 11111111", "NONE", "PASS"),
        ("do not say /reuse-sweep-run 11111111", "MEMBER", "PASS"),
        ("> /reuse-sweep-run 11111111", "MEMBER", "PASS"),
        ("/reuse-sweep-run 11111111 please", "MEMBER", "PASS"),
    ],
)
def test_the_latest_command_alone_on_its_line_by_one_who_may(
    body: str, association: str, expected: str
) -> None:
    assert said(commented(body, association), 4)[0] == expected


def test_an_older_command_gives_way() -> None:
    older = commented("/reuse-sweep-run 11111111", created_at="2026-10-01")
    assert said(older, 4)[0] == "PASS"


def test_nobody_asked() -> None:
    bundle = corrected()
    assert said(replace(bundle, comments=bundle.comments[1:]), 4)[1].startswith(
        "/reuse-sweep-run was given by nobody"
    )


def signed(old: str, new: str) -> Bundle:
    bundle = corrected()
    reuse, one = bundle.comments
    assert old in one.body
    return replace(bundle, comments=(reuse, replace(one, body=one.body.replace(old, new, 1))))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("template version 1", "template version 0", "it says version 0, the latest is 1"),
        (" (template version 1)", "", "it says version nothing"),
        ("- [x] The model computes what it ships with\n", "", "architecture is not there"),
        ("- [x] The change", "- [ ] The change", "quality is not checked"),
    ],
)
def test_a_sign_off_is_whole_and_of_the_latest_template(old: str, new: str, words: str) -> None:
    verdict, sentence = said(signed(old, new), 5)
    assert verdict == "FAIL"
    assert words in sentence


def test_the_page_shows_the_sign_off_that_passes() -> None:
    page = (Path(__file__).parents[2] / "docs" / "review.md").read_text()
    [shown] = [b for b in re.findall(r"```md\n(.*?)```", page, re.DOTALL) if "sign-off" in b]
    bundle = corrected()
    reuse, one = bundle.comments
    verdict, sentence = said(replace(bundle, comments=(reuse, replace(one, body=shown))), 5)
    assert verdict == "PASS", sentence


def test_without_a_sign_off_nobody_owns() -> None:
    bundle = corrected()
    unsigned = replace(bundle, comments=bundle.comments[:1])
    assert (said(unsigned, 0)[0], said(unsigned, 5)[0]) == ("FAIL", "FAIL")


def test_a_catch_all_owner_signs_what_nobody_else_owns() -> None:
    bundle = replace(corrected(), codeowners="* @seungrokj\n")
    assert said(bundle, 0)[0] == "PASS"
    assert said(replace(bundle, codeowners="* @core\n"), 0)[0] == "FAIL"


def test_a_comment_that_only_quotes_the_template_signs_nothing() -> None:
    bundle = corrected()
    opening = load_rules().signoff.opening
    guide = Comment(
        id="9",
        author="github-actions",
        association="NONE",
        created_at="2026-10-09",
        body=f"Thanks for the contribution! Begin with “{opening}”.",
    )
    found = replace(bundle, comments=(*bundle.comments, guide))
    assert (said(found, 0)[0], said(found, 5)[0]) == ("PASS", "PASS")


def test_a_sign_off_of_one_who_owns_nothing_takes_none_away() -> None:
    bundle = corrected()
    strange = replace(bundle.comments[1], id="9", author="stranger", created_at="2026-10-09")
    assert said(replace(bundle, comments=(*bundle.comments, strange)), 0)[0] == "PASS"
    alone = replace(bundle, comments=(bundle.comments[0], strange))
    assert "@stranger signed off and does not own" in said(alone, 0)[1]


def test_the_newest_run_is_reused_only_where_one_measured() -> None:
    bundle = commented("/reuse-sweep-run")
    assert said(bundle, 4) == (
        "PASS",
        f"@another-owner (MEMBER) reuses the newest run that fits ({RUN})",
    )
    assert said(replace(bundle, records=()), 4)[0] == "FAIL"


def test_who_may_reuse_is_a_rule_of_the_labels() -> None:
    ours = Path(infx.ci.__file__ or "").parent / "data/labels.yaml"
    narrow = ours.read_text().replace("[OWNER, MEMBER, COLLABORATOR]", "[OWNER]")
    assert said(replace(corrected(), rules={"labels": narrow}), 4)[0] == "FAIL"


def test_the_latest_sign_off_counts() -> None:
    bundle = corrected()
    reuse, good = bundle.comments
    unchecked = replace(
        good, id="8", created_at="2026-10-09", body=good.body.replace("- [x]", "- [ ]", 1)
    )
    assert said(replace(bundle, comments=(reuse, good, unchecked)), 5)[0] == "FAIL"
    older = replace(unchecked, created_at="2026-10-01")
    assert said(replace(bundle, comments=(reuse, good, older)), 5)[0] == "PASS"


def test_who_is_of_a_team_is_not_told() -> None:
    bundle = corrected()
    team = replace(bundle, codeowners=f"* @org/core\n/{CONFIG} @org/llama\n")
    verdict, sentence = said(team, 0)
    assert (verdict, "of @org/llama the bundle does not say" in sentence) == ("WARN", True)
    strangers = tuple(replace(one, association="NONE") for one in team.comments)
    assert said(replace(team, comments=strangers), 0)[0] == "FAIL"
    stranger = replace(team.comments[1], id="9", association="NONE", body="", created_at="2027")
    body = team.comments[1].body
    late = replace(team, comments=(*team.comments, replace(stranger, author="x", body=body)))
    assert said(late, 0)[0] == "WARN"
