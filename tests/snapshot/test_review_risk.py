from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.names import NameRefused, alike, check_link, is_git_dir, leaves, split_path
from snapshot.risk import risk_of, risk_of_name
from snapshot.safe_text import decode, is_suspicious, safe_block, safe_line, safe_name

RISKY = [
    b".github/workflows/ci.yml", b"sub/.github/workflows/x.yaml", b".gitlab-ci.yml", b"Makefile",
    b"lib/makefile", b"rules.mk", b".gitattributes", b"deep/.gitmodules", b".envrc", b".env",
    b".env.local", b"package.json", b".vscode/tasks.json", b".VSCode/settings.json",
    b"tests/conftest.py", b"setup.py", b"x.pth", b"Dockerfile", b"prod.Dockerfile",
    b"Dockerfile.dev", b"docker-compose.yml", b".husky/pre-commit", b".pre-commit-config.yaml",
    b"vendor/repo.git/hooks/update", b"CLAUDE.md", b".claude/settings.json", b".cloche.yaml",
    b"vite.config.ts", b".eslintrc.js", b"build.rs", b"Cargo.toml", b"pyproject.toml", b"flake.nix",
]  # fmt: skip

HARMLESS = [
    b"src/main.py", b"README.md", b"docs/makefiles.md", b".env.example", b"a.config", b"github/x",
    b"workflows/ci.yml", b".gitignore", b"dockerfiles/readme.txt", b"src/setup/x.py",
]  # fmt: skip


@pytest.mark.parametrize("path", RISKY)
def test_risky_names(path: bytes) -> None:
    assert risk_of_name(path)
    assert risk_of(path, mode="", old_mode="100644", agent=None)


@pytest.mark.parametrize("path", HARMLESS)
def test_harmless_names(path: bytes) -> None:
    assert risk_of_name(path) == ""
    assert risk_of(path, mode="100644", old_mode="100644", agent=b"x\n") == ""


@pytest.mark.parametrize(
    ("mode", "old_mode", "agent", "word"),
    [
        ("100755", "100644", b"x\n", "executable"),
        ("100755", "", b"x\n", "executable"),
        ("100755", "100755", b"x\n", ""),
        ("100644", "", b"\0", "binary"),
        ("100644", "100644", b"\0", "binary"),
        ("120000", "", b"/etc/passwd", "absolute"),
        ("120000", "", b"../../x", "out of the workspace"),
        ("120000", "", b".git/hooks", ".git"),
        ("120000", "", b"main.py", ""),
        ("120000", "100644", b"main.py", "in place of a file"),
        ("100644", "", "a\u202eb".encode(), "invisible"),
        ("100644", "", "\ufeffa".encode(), ""),
    ],
)
def test_risky_entries(mode: str, old_mode: str, agent: bytes, word: str) -> None:
    found = risk_of(b"src/x", mode=mode, old_mode=old_mode, agent=agent)
    assert word in found
    assert bool(found) == bool(word)


@pytest.mark.parametrize("name", [b".git", b".GIT", b".git.", b".git ", b"git~1", b"GIT~2"])
def test_git_in_all_its_spellings(name: bytes) -> None:
    assert is_git_dir(name)
    with pytest.raises(NameRefused):
        split_path(b"a/" + name + b"/config")


@pytest.mark.parametrize("name", [b".github", b"git", b".gitignore", b"git~x", b"a.git", b"..git"])
def test_names_that_only_resemble_git(name: bytes) -> None:
    assert not is_git_dir(name)
    assert split_path(b"a/" + name) == [b"a", name]


@given(st.binary(max_size=40))
def test_accepted_paths_are_plain(path: bytes) -> None:
    try:
        parts = split_path(path)
    except NameRefused:
        return
    assert b"/".join(parts) == path
    assert not {b"", b".", b".."} & set(parts)


def test_links_inside_are_fine() -> None:
    check_link(b"a/b/link", b"../../c")
    check_link(b"link", b"a/../b")
    assert not leaves(b"a/b", b"../c")
    assert leaves(b"a/b", b"../../c")
    with pytest.raises(NameRefused):
        check_link(b"link", b"")


def test_names_that_differ_in_case_or_form_are_alike() -> None:
    assert alike("é".encode()) == alike("E\u0301".encode())
    assert alike(b"a") != alike(b"b")


@given(st.text())
def test_sanitised_text_has_no_control_character_and_the_same_length(text: str) -> None:
    for safe in (safe_line(text), safe_name(text)):
        assert len(safe.text) == len(text)
        bad = [c for c in safe.text if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or is_suspicious(c)]
        assert set(bad) <= {"\t"}
        safe.text.encode()
    assert "\t" not in safe_name(text).text


@given(st.binary())
def test_every_byte_can_be_shown(data: bytes) -> None:
    assert decode(data).encode("utf-8", "surrogateescape") == data
    safe_name(data).text.encode()


def test_markers() -> None:
    assert safe_line("\x1b[2J\x7f\x9b").text == "␛[2J␡\ufffd"
    assert safe_line("a\u2066b") == ("a⇄b", True)
    assert safe_line("a\u200bb") == ("a¤b", True)
    assert safe_name(b"n\nl\xff") == ("n␊l\ufffd", False)
    assert safe_line("app/[slug]/page.tsx") == ("app/[slug]/page.tsx", False)
    assert safe_line("a\u2028b") == ("a␤b", False)
    assert safe_block("a\tb\nc\x1b\u202e\n") == ("a\tb\nc␛⇄\n", True)
