from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.git_config import BadConfig, Setting, parse, render
from snapshot.git_sanitise import (
    clean_url,
    minimal,
    object_hash,
    sanitise,
    uses_worktree_config,
)
from tests.snapshot.capture_helpers import GIT_ENVIRONMENT

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "ghp_0123456789abcdefABCDEF0123456789abcd"


def listed(data: bytes, tmp_path: Path) -> list[tuple[str, str | None]] | None:
    """What git itself reads (name and value), None when it refuses the file."""
    path = tmp_path / "config"
    path.write_bytes(data)
    done = subprocess.run(
        ["git", "config", "--file", str(path), "--list", "--null"],
        env=GIT_ENVIRONMENT,
        cwd=tmp_path,
        capture_output=True,
    )
    if done.returncode:
        return None
    rows = done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    return [
        (row.partition("\n")[0], row.partition("\n")[2] if "\n" in row else None) for row in rows
    ]


def named(settings_: list[Setting]) -> list[tuple[str, str | None]]:
    return [(_name(item), item.value) for item in settings_]


def _name(item: Setting) -> str:
    parts = [item.key] if item.subsection is None else [item.subsection, item.key]
    return ".".join([item.section, *parts] if item.section else parts)


def ours(data: bytes) -> list[tuple[str, str | None]] | None:
    try:
        return named(parse(data))
    except BadConfig:
        return None


CASES = [
    b"",
    b"[core]\n\tbare = false\n",
    b"[core] sshCommand = evil\n",
    b'[remote "o"] url = https://u:tok@host/x\n',
    b"\xef\xbb\xbf[core]\nbare\n",
    b"[core]\r\n\tbare = true\r\n\teditor = a \\\r\n b\r\n",
    b"[core]bare[user]name=x\n",
    b"[core] bare\n",
    b"[core]\nbare=\n",
    b"[core]\nBare = Yes\n",
    b'[Core "Sub.Section"]\nKey = v\n',
    b"[core.Sub]\nkey = v\n",
    b"[a.b.c]\nkey = v\n",
    b'[a.b "c"]\nkey = v\n',
    b'[core "quo\\"te\\\\x\\y"]\nkey = v\n',
    b"[core]\nkey = a # comment\nother = b ; comment\n",
    b'[core]\nkey = "a # no comment" tail\n',
    b'[core]\nkey = a"b"c\n',
    b"[core]\nkey = a\\\n   b\n",
    b"[core]\nkey = a\\\nother = b\n",
    b'[core]\nkey = \\t\\n\\b\\\\\\"\n',
    b"[core]\nkey = a   \n",
    b"[core]\nkey = a \t b\n",
    b"# only a comment",
    b"; only\n[core] ; after\n key = v # x",
    b"[core]\nkey = v",
    b"   [core]   key   =   v",
    b'[core]\nkey = "open\n',
    b"[core]\nkey = \\x\n",
    b"[core\nkey = v\n",
    b"[core]\n1key = v\n",
    b"[core]\nk_ey = v\n",
    b"[]\nkey = v\n",
    b'[core "a\nb"]\nkey = v\n',
    b'[core"a"]\nkey = v\n',
    b'[core "a" ]\nkey = v\n',
    b"[co re]\nkey = v\n",
    b"[core]\nkey value\n",
    b"]\n",
    b"\xef\xbb[core]\nkey = v\n",
    b"[core]\nkey = \xff\xfe\n",
    b"[core]\nkey = a\rb\n",
    b"[core]\nkey = a\x0bb\n",
    b"[core]\n\x0bkey = a\n",
    b'[core]key = "a\\\nb"\n',
    b"[alias]\n# c\\\nlog = evil\n",
    b"[core]\nkey = # c\\\nother = v\n",
]


@pytest.mark.parametrize("data", CASES)
def test_reads_what_git_reads(data: bytes, tmp_path: Path) -> None:
    assert _alike(ours(data)) == _alike(listed(data, tmp_path))


PIECES = st.sampled_from(
    [
        *("[core]", "[a.b]", '[r "x"]', "[", "]", '"', "\\", "\\\n", "\n", "\r\n", " ", "\t", "="),
        *("#", ";", "key", "Key2", "value", "\\t", "\\\\", '\\"', "-", ".", "[x]k=v", "\r", "é"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(pieces=st.lists(PIECES, max_size=14))
def test_reads_any_text_as_git_does(
    pieces: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = "".join(pieces).encode()
    theirs = listed(data, tmp_path_factory.mktemp("config"))

    assert _alike(ours(data)) == _alike(theirs)


def _alike(rows: list[tuple[str, str | None]] | None) -> list[tuple[str, str | None]] | None:
    """Make blanks equal: git before 2.45 turns every one inside of a value into a space."""
    if rows is None:
        return None
    return [(n, v and v.replace("\t", " ").replace("\r", " ")) for n, v in rows]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["core", "remote", "x-y"]),
            st.none() | TEXT.filter(lambda text: "\n" not in text),
            st.sampled_from(["url", "key-2"]),
            st.none() | TEXT,
        ),
        max_size=5,
    )
)
def test_what_is_written_reads_back(
    rows: list[tuple[str, str | None, str, str | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    given_ = [Setting(*row) for row in rows]

    data = render(given_)

    assert parse(data) == given_
    assert listed(data, tmp_path_factory.mktemp("config")) == named(given_)


URLS = [
    ("https://github.com/a/b.git", "https://github.com/a/b.git"),
    (f"https://{TOKEN}@github.com/a/b", "https://github.com/a/b"),
    (f"https://user:{TOKEN}@github.com/a/b", "https://github.com/a/b"),
    ("https://user@example.org/a", "https://example.org/a"),
    ("HTTPS://u:p@example.org/a@b", "HTTPS://example.org/a@b"),
    ("https://u:p@q@example.org/a", "https://example.org/a"),
    ("https://example.org/a?private_token=x#y", "https://example.org/a"),
    ("https://example.org:8443/a", "https://example.org:8443/a"),
    ("ssh://git@example.org/a", "ssh://git@example.org/a"),
    ("ssh://git:pw@example.org/a", "ssh://example.org/a"),
    (f"ssh://{TOKEN}@example.org/a", "ssh://example.org/a"),
    ("git@github.com:a/b.git", "git@github.com:a/b.git"),
    (f"{TOKEN}@github.com:a/b.git", "github.com:a/b.git"),
    ("github.com:a/b.git", "github.com:a/b.git"),
    ("user:pw@host:path", None),
    ("/srv/git/x.git", "/srv/git/x.git"),
    ("../x.git", "../x.git"),
    ("file:///srv/x", "file:///srv/x"),
    ("ext::sh -c evil", None),
    ("fd::17", None),
    ("helper::https://u:p@host/x", None),
    ("https:/u:p@host/x", None),
    ("https://u:p\\@host/x", None),
    ("https://u:p@\nhost/x", None),
    ("./u:p@host", None),
    ("git://u:p@host/x", "git://host/x"),
]


@pytest.mark.parametrize(("url", "expected"), URLS)
def test_urls_lose_who_they_speak_for(url: str, expected: str | None) -> None:
    assert clean_url(url) == expected


@given(st.text(max_size=30), st.sampled_from(["https", "http", "ftp", "git", "HttpS"]))
def test_no_user_of_a_web_address_survives(user: str, scheme: str) -> None:
    found = clean_url(f"{scheme}://{TOKEN}{user}@host/path")

    assert found is None or TOKEN not in found or "/" in user or "?" in user or "#" in user


DENIED = f"""
[core] sshCommand = evil1
[core]
	pager = evil2
	editor = evil3
	fsmonitor = evil4
	hooksPath = evil5
	askPass = evil6
	gitProxy = evil7
	worktree = /evil8
	attributesFile = /evil9
	excludesFile = /evil10
	alternateRefsCommand = evil11
	untrackedCache = true
[remote "origin"]
	url = https://{TOKEN}@github.com/a/b.git
	pushurl = https://user:{TOKEN}@github.com/a/b.git
	uploadpack = evil12
	receivepack = evil13
	proxy = http://user:{TOKEN}@proxy
	proxyAuthMethod = basic
	vcs = evil14
[remote "https://{TOKEN}@github.com/c"]
	fetch = x
[remote]
	pushDefault = https://{TOKEN}@github.com/a
[branch "main"]
	remote = https://{TOKEN}@github.com/a/b.git
	merge = refs/heads/main
	mergeOptions = --strategy=evil15
[url "https://user:{TOKEN}@github.com/"]
	insteadOf = https://github.com/
[credential]
	helper = evil16
[http]
	extraHeader = AUTHORIZATION: {TOKEN}
	cookieFile = /evil17
[include]
	path = /evil18
[includeIf "gitdir:/"]
	path = /evil19
[alias]
	st = !evil20
[filter "lfs"]
	clean = evil21
	process = evil22
[merge "driver"]
	driver = evil23
[merge]
	tool = evil24
[mergetool "x"]
	cmd = evil25
[diff "x"]
	textconv = evil26
	command = evil27
	xfuncname = good
[diff]
	external = evil28
	tool = evil29
[gpg]
	program = evil30
[user]
	name = Me
	email = me@example.org
	signingKey = evil31
[commit]
	gpgSign = true
	template = /evil32
[submodule "s"]
	url = https://{TOKEN}@github.com/s
	update = !evil33
[uploadpack]
	packObjectsHook = evil34
[receive]
	x = evil35
[sequence]
	editor = evil36
[init]
	templateDir = /evil37
[protocol "ext"]
	allow = always
[extensions]
	worktreeConfig = true
	objectFormat = sha1
[gc]
	recentObjectsHook = evil38
[maintenance]
	repo = /evil39
[lfs]
	url = https://{TOKEN}@lfs
[core.x]
	y = evil40
[interactive]
	diffFilter = evil41
[fetch]
	bundleURI = evil42
[pull]
	twohead = evil43
[trailer "x"]
	cmd = evil44
[safe]
	directory = *
[ssh]
	variant = evil45
[sendemail]
	smtpPass = {TOKEN}
"""


def test_what_runs_or_speaks_for_somebody_stays_behind(tmp_path: Path) -> None:
    clean = sanitise(DENIED.encode())

    assert b"evil" not in clean
    assert TOKEN.encode() not in clean
    kept = listed(clean, tmp_path)
    assert kept == [
        ("remote.origin.url", "https://github.com/a/b.git"),
        ("remote.origin.pushurl", "https://github.com/a/b.git"),
        ("remote.pushdefault", "https://github.com/a"),
        ("branch.main.remote", "https://github.com/a/b.git"),
        ("branch.main.merge", "refs/heads/main"),
        ("diff.x.xfuncname", "good"),
        ("user.name", "Me"),
        ("user.email", "me@example.org"),
        ("submodule.s.url", "https://github.com/s"),
        ("extensions.objectformat", "sha1"),
        ("core.bare", "false"),
        ("core.checkstat", "minimal"),
        ("core.trustctime", "false"),
    ]


def test_plain_settings_go_along(tmp_path: Path) -> None:
    data = b"""[core]
	autocrlf = input
	filemode
[branch "f/x"]
	remote = origin
	merge = refs/heads/f/x
	pushRemote = .
[color "diff"]
	old = red bold
[advice]
	detachedHead = false
[submodule "s"]
	update = rebase
	active = true
"""

    kept = dict(listed(sanitise(data), tmp_path) or [])

    assert kept["core.autocrlf"] == "input"
    assert kept["core.filemode"] is None
    assert kept["branch.f/x.remote"] == "origin"
    assert kept["branch.f/x.pushremote"] == "."
    assert kept["color.diff.old"] == "red bold"
    assert kept["submodule.s.update"] == "rebase"


def test_worktree_settings_are_merged_through_the_same_sieve() -> None:
    more = b"[core]\n\tfsmonitor = evil\n\tsparseCheckout = true\n"

    clean = sanitise(b"[extensions]\n\tworktreeConfig\n", more)

    assert b"sparsecheckout" in clean
    assert b"evil" not in clean
    assert b"worktree" not in clean


@pytest.mark.parametrize("value", [b"", b" = true", b" = On", b" = 1"])
def test_worktree_config_is_found(value: bytes) -> None:
    assert uses_worktree_config(b"[extensions]\nworktreeConfig" + value + b"\n")
    assert not uses_worktree_config(b"[extensions]\nworktreeConfig = false\n")


def test_the_hash_of_objects() -> None:
    assert object_hash(b"") == "sha1"
    assert object_hash(b"[extensions]\nobjectFormat = sha256\n") == "sha256"
    assert object_hash(b"[broken") == "sha1"
    assert object_hash(minimal("sha256")) == "sha256"


def test_a_config_that_git_refuses_is_refused() -> None:
    with pytest.raises(BadConfig, match="line 2"):
        sanitise(b"[core]\n1x = y\n")
    with pytest.raises(BadConfig, match="longer"):
        parse(b"#" * (1 << 21))


def test_a_large_config_takes_no_time() -> None:
    assert len(parse(b"[core]\n" + b"key = value # comment\n" * 20_000)) == 20_000
