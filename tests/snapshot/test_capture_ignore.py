from __future__ import annotations

import sys

import pytest

from snapshot.errors import StoreDamaged
from snapshot.ignore import GitRules, IgnoreRules, PatternFile, UserRules
from snapshot.patterns import is_secret, is_secret_below, names_a_secret


def words(text: str) -> list[str]:
    return text.split()


SECRET_FILES = words("""
.env .env.local .env.production .envrc .ENV server.pem ca.PEM private.key a.p12 a.pfx a.jks
a.keystore a.truststore id_rsa id_rsa.pub id_rsa_work id_ed25519 id_ed25519.pub id_ecdsa
credentials.json .git-credentials .netrc .npmrc .yarnrc.yml .pypirc .pgpass .vault-token
terraform.tfstate terraform.tfstate.backup prod.tfvars age-key.txt secret.age
.docker/config.json .kube/config .config/gh/hosts.yml
""")

SECRET_FOLDERS = words(
    ".ssh .aws .gcp .gcloud .azure .config/gcloud .gnupg .terraform .config/cloche"
)

VISIBLE = words("""
.env.example .env.sample .env.template .env.dist .env.defaults .env.local.example .env-example
.env_sample env environment.py key pem.py keys monkey id_rs docker/config.json kube/config
config.json hosts.yml .config/hosts.yml credentials.json.example credentials.py .npmrc.example
.broodbox.yaml .cloche.yaml .clocheignore terraform.tf main.tfvars.example agenda.txt aws ssh/x
""")


@pytest.mark.parametrize("name", SECRET_FILES)
@pytest.mark.parametrize("folder", ["", "deep/in/the/tree/"])
def test_secret_files_at_any_depth(name: str, folder: str) -> None:
    assert is_secret((folder + name).encode(), is_dir=False)
    assert is_secret_below((folder + name).encode())


@pytest.mark.parametrize("name", SECRET_FOLDERS)
@pytest.mark.parametrize("folder", ["", "home/me/"])
def test_secret_folders_with_all_they_hold(name: str, folder: str) -> None:
    path = (folder + name).encode()

    assert is_secret(path, is_dir=True)
    assert not is_secret(path, is_dir=False)
    assert is_secret_below(path + b"/any/file")


@pytest.mark.parametrize("name", VISIBLE)
def test_what_only_looks_alike_stays_visible(name: str) -> None:
    assert not is_secret_below(name.encode())


def test_names_that_are_no_text() -> None:
    assert is_secret(b"\xff\xfe\n.pem", is_dir=False)
    assert is_secret(b".env\n", is_dir=False)
    assert not is_secret(b"\xff", is_dir=False)


@pytest.mark.parametrize(
    "pattern", [".env", ".env*", "*.pem", "/.aws/", "**/.ssh/", "config/prod.key", ".kube/config"]
)
def test_a_negation_of_a_secret_is_dropped_with_a_notice(pattern: str) -> None:
    assert names_a_secret(pattern)
    found = PatternFile()

    found.add([f"!{pattern}", "docs/"], ".clocheignore")

    assert found.lines == ["docs/"]
    assert len(found.notices) == 1
    assert "secret" in found.notices[0]


@pytest.mark.parametrize(
    "line", ["\\", "!", "x" * 1025, "a\0b", "*a*b*c*d*e", "*" * 2 + "x*y*z*w*"]
)
def test_an_unusable_line_is_dropped_with_a_notice(line: str) -> None:
    found = PatternFile()

    found.add([line], "here")

    assert found.lines == []
    assert len(found.notices) == 1


def test_comments_blank_lines_and_byte_order_marks() -> None:
    found = PatternFile()

    found.add_bytes(b"\xef\xbb\xbf# note\r\n\r\n*.log\r\n\\#x\n", "here")

    assert (found.lines, found.notices) == (["*.log", "\\#x"], [])


@pytest.mark.parametrize("patterns", [[], ["*.tmp"]])
def test_heavy_folders_at_any_depth(patterns: list[str]) -> None:
    rules = UserRules(patterns)

    for name in (b"node_modules", b"a/b/vendor", b"__pycache__", b"target", b".venv", b"x/.tox"):
        assert rules.verdict(name, is_dir=True) == "heavy"
        assert rules.verdict(name, is_dir=False) == "keep"
    assert rules.verdict(b"builder", is_dir=True) == "keep"


def test_a_later_pattern_decides() -> None:
    rules = UserRules(["!/src/build/", "*.log", "!keep.log", "!node_modules/"])

    assert rules.verdict(b"src/build", is_dir=True) == "keep"
    assert rules.verdict(b"build", is_dir=True) == "heavy"
    assert rules.verdict(b"node_modules", is_dir=True) == "keep"
    assert rules.verdict(b"a/x.log", is_dir=False) == "excluded"
    assert rules.verdict(b"a/keep.log", is_dir=False) == "keep"


def git_rules() -> GitRules:
    rules = GitRules()
    rules.add(b"", ["*.log", "/out/", "!important.log"])
    rules.add(b"sub", ["!debug.log", "local"])
    rules.exclude = ["*.swp", "*.log2"]
    return rules


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"a.log", True),
        (b"important.log", False),
        (b"sub/a.log", True),
        (b"sub/debug.log", False),
        (b"sub/local", True),
        (b"local", False),
        (b"x.swp", True),
        (b"out/any/file", True),
        (b"sub/out/file", False),
        (b"src/a.py", False),
        (b"node_modules/x/y.js", True),
        (b"kept_vendor/vendor/lib.go", True),
    ],
)
def test_git_rules_of_all_levels(path: bytes, expected: bool) -> None:
    assert IgnoreRules(UserRules(()), git_rules()).ignored(path) is expected


def test_what_git_tracks_is_never_ignored() -> None:
    tracked = {b"out/file", b"vendor/lib.go"}
    rules = IgnoreRules(
        UserRules(()),
        git_rules(),
        (),
        tracked.__contains__,
        lambda folder: any(path.startswith(folder + b"/") for path in tracked),
    )

    assert not rules.ignored(b"out/file")
    assert rules.ignored(b"out/other")
    assert not rules.ignored(b"vendor/lib.go")
    assert not rules.ignored(b"vendor/new.go")
    assert rules.ignored(b"sub/vendor/new.go")


def test_withheld_folders_hold_their_content() -> None:
    rules = IgnoreRules(withheld=[b"a/.aws", b".env"])

    assert rules.was_withheld(b"a/.aws/config")
    assert rules.was_withheld(b".env")
    assert not rules.was_withheld(b"a/.awsome")
    assert not rules.was_withheld(b"a")
    assert rules.secret(b"x/.aws/config")


def test_rules_survive_json() -> None:
    rules = IgnoreRules(UserRules(["*.tmp", "\udcff"]), git_rules(), [b"\xff.pem"])

    again = IgnoreRules.from_json(rules.to_json())

    assert again.to_json() == rules.to_json()
    for path in (b"a.tmp", b"sub/local", b"sub/debug.log", b"x.swp", b"a.py"):
        assert again.ignored(path) == rules.ignored(path)
    assert again.was_withheld(b"\xff.pem")


@pytest.mark.parametrize("value", [{}, {"user": 1}, {"user": [1], "exclude": [], "gitignore": {}}])
def test_other_json_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(StoreDamaged):
        IgnoreRules.from_json(value)


def test_folders_can_be_deeper_than_calls() -> None:
    rules = IgnoreRules(UserRules(["drop/"]))
    below = b"d/" * (sys.getrecursionlimit() + 50) + b"f"
    assert not rules.ignored(below)
    assert rules.ignored(b"drop/" + below)
    assert rules.ignored(b"keep/drop/" + below)
