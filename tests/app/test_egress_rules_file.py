from __future__ import annotations

import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.egress.rules_edit import ALWAYS, add_rule
from app.egress.rules_file import load_rules
from app.errors import AppError
from vm.egress.rules import parse_rule

if TYPE_CHECKING:
    from app.egress.rules_file import UserRules
    from vm.egress.rules import Rule

FULL = """\
# my rules
always:            # in every session
  allow:
    # the company
    - {rule: "db.corp.example:5432", private: true}   # behind the VPN

    # for builds
    - "*.pkgs.example"
  deny: [ads.example]
# by project
projects:
  /home/me/parser:
    allow: [api.example:443]
    deny:
      - spy.example   # why not
"""


def written(folder: Path, text: str) -> Path:
    (folder / "rules.yaml").write_text(text)
    return folder


def allow(text: str, private: bool = False) -> Rule:
    return parse_rule(text, "allow", private=private)


def deny(text: str) -> Rule:
    return parse_rule(text, "deny")


def texts(rules: UserRules) -> list[str]:
    return [
        f"{name}: {one.effect} {one.text}"
        for name, section in rules.sections()
        for one in (*section.allow, *section.deny)
    ]


def test_without_a_file_there_are_no_rules(tmp_path: Path) -> None:
    assert texts(load_rules(tmp_path)) == []
    assert texts(load_rules(written(tmp_path, "# nothing yet\n"))) == []


def test_each_rule_knows_its_line_and_scope(tmp_path: Path) -> None:
    rules = load_rules(written(tmp_path, FULL))
    (db, pkgs) = rules.always.allow
    assert (db.text, db.private, db.origin) == ("db.corp.example:5432", True, "rules.yaml:5")
    assert (pkgs.text, pkgs.private, pkgs.origin) == ("*.pkgs.example", False, "rules.yaml:8")
    project = rules.project("/home/me/parser")
    assert [one.origin for one in (*project.allow, *project.deny)] == [
        "rules.yaml:13",
        "rules.yaml:15",
    ]
    assert rules.project("/home/me/other").allow == ()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("alwyas: {}\n", 1, "unknown key 'alwyas'"),
        ("always:\n  alow: []\n", 2, "unknown key 'alow'"),
        ("always:\n  allow: x.example\n", 2, "a list of at most"),
        ("always:\n  allow:\n    - 5\n", 3, "here must stand a rule"),
        ("always:\n  allow:\n    - x..example\n", 3, "is no host name"),
        ("always:\n  allow:\n    - a.example\n    - x.example:0\n", 4, "from 1 to 65535"),
        ("always:\n  allow: [127.0.0.1]\n", 2, "always refused"),
        ("always:\n  allow: ['10.0.0.5:5432']\n", 2, "private: true"),
        ("always:\n  allow: ['*.com']\n", 2, "whole top-level domain"),
        ("always:\n  allow: [{rule: x.example, privat: true}]\n", 2, "unknown key 'privat'"),
        ("always:\n  allow: [{rule: x.example, private: 1}]\n", 2, "true or false"),
        ("projects:\n  parser: {}\n", 2, "not the full path"),
        ("always:\n  allow: [a.x.example]\n  deny: ['*.x.example']\n", 2, "never takes effect"),
        ("always: {deny: [x.example]}\nprojects:\n  /p:\n    allow: [x.example]\n", 4, "wins"),
        ("always: [\n", 2, "expected"),
        ("- x\n", 1, "a mapping"),
    ],
)
def test_a_bad_rule_is_refused_with_its_line_and_why(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    with pytest.raises(AppError, match=words) as caught:
        load_rules(written(tmp_path, text))
    assert caught.value.code == "bad-config"
    assert f"rules.yaml:{line}:" in caught.value.message


def test_the_first_rule_makes_a_file_that_explains_itself(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    change = add_rule(folder, allow("x.example"), ALWAYS)
    assert change.added
    assert texts(load_rules(folder)) == [": allow x.example"]
    text = (folder / "rules.yaml").read_text()
    assert text.startswith("# What agents may reach.")
    assert (folder / "rules.yaml").stat().st_mode & 0o777 == 0o600


def test_a_new_rule_keeps_comments_order_and_quotes(tmp_path: Path) -> None:
    written(tmp_path, FULL)
    add_rule(tmp_path, allow("new.example:443"), ALWAYS)
    add_rule(tmp_path, deny("bad.example"), "/home/me/parser")
    add_rule(tmp_path, allow("nas.lan:80", private=True), "/home/me/other")
    text = (tmp_path / "rules.yaml").read_text()
    kept = [line for line in FULL.splitlines() if line]
    assert [line for line in text.splitlines() if line in kept] == kept
    added = [line.strip() for line in text.splitlines() if line and line not in kept]
    assert added == [
        "- new.example:443",
        "- bad.example",
        "/home/me/other:",
        "allow:",
        "- rule: nas.lan:80",
        "private: true",
    ]


QUOTES = st.sampled_from(("", '"', "'"))
ITEMS = st.lists(
    st.tuples(QUOTES, st.booleans(), st.booleans(), st.booleans(), st.booleans()), max_size=5
)


def a_section(name: str, items: list[tuple[str, bool, bool, bool, bool]], indent: str) -> str:
    """Write a list as people do: quotes, braces, comments above and behind, blank lines."""
    lines = [f"{indent}allow:{'' if items else ' []'}"]
    for number, (quote, private, above, behind, blank) in enumerate(items):
        text = f"{quote}{name}{number}.example:443{quote}"
        item = f"rule: {text}\n{indent}    private: true" if private else text
        lines += [f"{indent}  # above {name}{number}"] * above + [""] * blank
        lines.append(f"{indent}  - {item}" + f"   # behind {name}{number}" * behind)
    return "\n".join(lines) + "\n"


@settings(max_examples=60, deadline=None)
@given(ITEMS, ITEMS, st.sampled_from(("always", "project")), st.booleans())
def test_whatever_the_files_form_a_rule_is_added_and_no_comment_is_lost(
    first: list[tuple[str, bool, bool, bool, bool]],
    second: list[tuple[str, bool, bool, bool, bool]],
    where: str,
    private: bool,
) -> None:
    text = "always:  # top\n" + a_section("a", first, "  ")
    text += "projects:\n  /p:  # mine\n" + a_section("p", second, "    ")
    with TemporaryDirectory() as name:
        folder = written(Path(name), text)
        before = texts(load_rules(folder))
        scope = ALWAYS if where == "always" else "/p"
        add_rule(folder, allow("new.example", private), scope)
        assert sorted(texts(load_rules(folder))) == sorted([*before, f"{scope}: allow new.example"])
        after = (folder / "rules.yaml").read_text()
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    assert [line.partition("#")[2] for line in after.splitlines() if "#" in line] == comments


def test_rather_than_to_lose_a_comment_nothing_is_written(tmp_path: Path) -> None:
    text = (
        "always:\n  allow:\n    - {rule: a.example}\n    # mine\n"
        "    - {rule: b.example}   # yours\n    - x.example\n"
    )
    written(tmp_path, text)
    with pytest.raises(AppError, match="a comment would be lost") as caught:
        add_rule(tmp_path, allow("c.example"), ALWAYS)
    assert caught.value.hint == "Add it by hand: allow c.example"
    assert (tmp_path / "rules.yaml").read_text() == text


def test_the_same_rule_is_not_written_twice(tmp_path: Path) -> None:
    written(tmp_path, FULL)
    change = add_rule(tmp_path, allow("*.PKGS.example:80,443"), ALWAYS)
    assert (change.added, change.removed, change.rule.origin) == (False, (), "rules.yaml:8")
    assert (tmp_path / "rules.yaml").read_text() == FULL


def test_a_deny_takes_out_the_allows_that_it_hides_and_no_comment_of_others(
    tmp_path: Path,
) -> None:
    written(tmp_path, FULL)
    change = add_rule(tmp_path, deny("*.corp.example"), ALWAYS)
    assert [one.text for one in change.removed] == ["db.corp.example:5432"]
    text = (tmp_path / "rules.yaml").read_text()
    assert "# for builds" in text
    assert "# the company" in text
    assert "VPN" not in text
    assert load_rules(tmp_path).always.deny[-1].text == "*.corp.example"


def test_a_deny_that_holds_always_takes_out_a_projects_allow_too(tmp_path: Path) -> None:
    written(tmp_path, FULL)
    change = add_rule(tmp_path, deny("api.example"), ALWAYS)
    assert [one.text for one in change.removed] == ["api.example:443"]
    assert load_rules(tmp_path).project("/home/me/parser").allow == ()


def test_an_allow_takes_back_the_deny_of_just_this_host(tmp_path: Path) -> None:
    written(tmp_path, "always:\n  deny: [x.example, 'y.example:443']\n")
    assert [one.text for one in add_rule(tmp_path, allow("x.example"), ALWAYS).removed] == [
        "x.example"
    ]
    assert [one.text for one in add_rule(tmp_path, allow("y.example"), ALWAYS).removed] == [
        "y.example:443"
    ]
    assert texts(load_rules(tmp_path)) == [": allow x.example", ": allow y.example"]


def test_an_allow_under_a_wider_deny_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    written(tmp_path, "always:\n  deny: ['*.x.example']\n")
    before = (tmp_path / "rules.yaml").read_bytes()
    for scope in (ALWAYS, "/p"):
        with pytest.raises(AppError, match=r"'deny \*\.x\.example' \(rules\.yaml:2\) wins"):
            add_rule(tmp_path, allow("a.x.example"), scope)
    assert (tmp_path / "rules.yaml").read_bytes() == before


def test_private_replaces_the_plain_form_of_a_rule(tmp_path: Path) -> None:
    add_rule(tmp_path, allow("nas.lan:80"), ALWAYS)
    change = add_rule(tmp_path, allow("nas.lan:80", private=True), ALWAYS)
    assert len(change.removed) == 1
    assert [one.private for one in load_rules(tmp_path).always.allow] == [True]


def test_a_damaged_file_is_left_as_it_is(tmp_path: Path) -> None:
    written(tmp_path, "always: [oops\n")
    with pytest.raises(AppError, match=r"rules\.yaml"):
        add_rule(tmp_path, allow("x.example"), ALWAYS)
    assert (tmp_path / "rules.yaml").read_text() == "always: [oops\n"


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("always: {}\n")
    (tmp_path / "rules.yaml").symlink_to(tmp_path / "victim")
    with pytest.raises(AppError, match="cannot be read"):
        add_rule(tmp_path, allow("x.example"), ALWAYS)
    assert (tmp_path / "victim").read_text() == "always: {}\n"


def test_rules_that_are_added_at_once_are_all_there(tmp_path: Path) -> None:
    rules = [allow(f"h{number}.example") for number in range(8)]
    threads = [threading.Thread(target=add_rule, args=(tmp_path, one, ALWAYS)) for one in rules]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {one.host for one in load_rules(tmp_path).always.allow} == {one.host for one in rules}
