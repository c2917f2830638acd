"""Files of package managers: a version is no risk; a script on install or a new host is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.risk import Risk, risk_of
from snapshot.risk_locks import places_in_values


def changed(path: str, before: bytes | None, after: bytes) -> Risk:
    """Return the risk of one edit."""
    old_mode = "" if before is None else "100644"
    return risk_of(path.encode(), mode="100644", old_mode=old_mode, agent=after, base=before)


NPM: dict[str, Any] = {
    "name": "x",
    "version": "1.0.0",
    "scripts": {"test": "jest", "prepare": "husky"},
    "dependencies": {"a": "^1.0.0"},
}


@pytest.mark.parametrize(
    ("edit", "tier", "word"),
    [
        ({"version": "1.0.1"}, "", ""),
        ({"description": "more", "keywords": ["a"]}, "", ""),
        ({"dependencies": {"a": "^2.0.0"}}, "warned", "installed"),
        ({"devDependencies": {"b": "*"}}, "warned", "installed"),
        ({"scripts": {"test": "jest --ci", "prepare": "husky"}}, "warned", "test"),
        ({"scripts": {**NPM["scripts"], "postinstall": "node x"}}, "held", "postinstall"),
        ({"scripts": {**NPM["scripts"], "PostInstall": "node x"}}, "held", "PostInstall"),
        ({"scripts": {**NPM["scripts"], "prepare": "sh x"}}, "held", "prepare"),
        ({"scripts": {"test": "jest"}}, "held", "prepare"),
        ({"scripts": "no table"}, "held", "prepare"),
        ({"husky": {"hooks": {"pre-commit": "x"}}}, "held", "hook"),
        ({"lint-staged": {"*": "x"}}, "held", "hook"),
        ({"packageManager": "pnpm@9.9.9"}, "held", "install"),
        ({"gypfile": True}, "held", "install"),
        ({"dependencies": {"a": "git+ssh://git@evil.example/a.git"}}, "held", "evil.example"),
        ({"dependencies": {"a": "https://evil.example/a.tgz"}}, "held", "evil.example"),
        ({"dependencies": {"a": "owner/name"}}, "held", "github.com"),
        ({"dependencies": {"a": "gitlab:owner/name"}}, "held", "gitlab.com"),
        ({"overrides": {"a": {"b": "http://e.example/x.tgz"}}}, "held", "without encryption"),
        ({"jest": {"setupFiles": ["./x.js"]}}, "warned", "built"),
        ({"homepage": "https://evil.example"}, "", ""),
    ],
)
def test_package_json_is_judged_by_what_changed(edit: dict[str, Any], tier: str, word: str) -> None:
    before, after = json.dumps(NPM).encode(), json.dumps({**NPM, **edit}).encode()
    found = changed("web/package.json", before, after)
    assert found.tier == tier
    assert word in found.reason


@pytest.mark.parametrize(
    "text", ["{", "[]", '"x"', "[" * 100_000, '{"a": ' + "9" * 5000 + "}", "\x00", "{} {}"]
)
@pytest.mark.parametrize("path", ["package.json", "PACKAGE.JSON", "composer.json"])
def test_what_cannot_be_parsed_is_held(path: str, text: str) -> None:
    assert changed(path, b"{}", text.encode()).tier == "held"


def test_a_new_package_json_is_judged_whole() -> None:
    assert changed("package.json", None, b'{"name": "x"}').tier == ""
    assert (
        changed("package.json", None, b'\xef\xbb\xbf{"scripts": {"install": "x"}}').tier == "held"
    )
    assert changed("package.json", None, b"").tier == ""


PYTHON = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "x"
version = "1"
dependencies = ["a"]
[tool.ruff]
line-length = 99
"""


@pytest.mark.parametrize(
    ("old", "new", "tier", "word"),
    [
        ('version = "1"', 'version = "2"', "", ""),
        ('"a"', '"a", "b"', "warned", "installed"),
        ('"a"', '"a @ git+https://evil.example/a"', "held", "evil.example"),
        ("line-length = 99", "line-length = 88", "warned", "built"),
        (
            "[tool.ruff]",
            '[tool.pytest.ini_options]\naddopts = "-p x"\n[tool.ruff]',
            "held",
            "Python",
        ),
        ("[tool.ruff]", '[tool.mypy]\nplugins = ["x.py"]\n[tool.ruff]', "held", "Python"),
        ("[tool.ruff]", '[tool.hatch.build.hooks.custom]\npath = "x"\n[tool.ruff]', "warned", ""),
        (
            "[tool.ruff]",
            '[[tool.uv.index]]\nurl = "https://e.example/"\n[tool.ruff]',
            "held",
            "e.ex",
        ),
        ('["hatchling"]', '["evil"]', "held", "backend"),
        ('"hatchling.build"', '"x"\nbackend-path = ["."]', "held", "backend"),
        ("[project]", "[project", "held", "parsed"),
    ],
)
def test_pyproject_is_judged_by_what_changed(old: str, new: str, tier: str, word: str) -> None:
    assert old in PYTHON
    found = changed("pyproject.toml", PYTHON.encode(), PYTHON.replace(old, new, 1).encode())
    assert found.tier == tier
    assert word in found.reason


HOSTS = {
    "package-lock.json": '{"packages": {"a": {"resolved": "https://HOST/a.tgz"}}}',
    "npm-shrinkwrap.json": '{"dependencies": {"a": {"version": "git+ssh://git@HOST/a.git#1"}}}',
    "yarn.lock": 'a@^1:\n  version "1"\n  resolved "https://HOST/a.tgz#abc"\n',
    "pnpm-lock.yaml": "packages:\n  a:\n    resolution: {tarball: https://HOST/a.tgz}\n",
    "bun.lock": '{"packages": {"a": ["a@1", "https://HOST/a.tgz", {}, "sha512-x"]}}',
    "deno.lock": '{"remote": {"https://HOST/mod.ts": "abc"}}',
    "uv.lock": '[[package]]\nname = "a"\nsource = { registry = "https://HOST/simple" }\n',
    "poetry.lock": '[package.source]\ntype = "git"\nurl = "https://HOST/a.git"\n',
    "pdm.lock": '[[package]]\nname = "a"\nurl = "https://HOST/a.whl"\n',
    "Pipfile.lock": '{"_meta": {"sources": [{"name": "x", "url": "https://HOST/simple"}]}}',
    "Cargo.lock": '[[package]]\nname = "a"\nsource = "registry+https://HOST/index"\n',
    "go.sum": "HOST/a v1.0.0 h1:abc=\n",
    "Gemfile.lock": "GEM\n  remote: https://HOST/\n  specs:\n    a (1)\n",
    "composer.lock": '{"packages": [{"dist": {"type": "zip", "url": "https://HOST/a.zip"}}]}',
    "requirements.txt": "--extra-index-url https://HOST/simple\na==1\n",
    "requirements-dev.txt": "a @ git+ssh://git@HOST/a\n",
    "flake.lock": '{"nodes": {"a": {"locked": {"host": "HOST", "type": "gitlab"}}}}',
    "packages.lock.json": '{"x": {"resolved": "https://HOST/x"}}',
}


@pytest.mark.parametrize("name", HOSTS)
def test_a_lock_file_is_held_when_a_host_is_new(name: str) -> None:
    old, new = (
        HOSTS[name].replace("HOST", "old.example"),
        HOSTS[name].replace("HOST", "evil.example"),
    )
    assert changed(f"web/{name}", old.encode(), old.encode() + b"\n").tier == ""
    found = changed(f"web/{name}", old.encode(), new.encode())
    assert found.tier == "held"
    assert "evil.example" in found.reason
    assert changed(name, new.encode(), new.encode() + b"\n").tier == ""
    assert changed(name, None, new.encode()).tier == "held"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package-lock.json", '{"r\\u0065solved": "https:\\/\\/evil.example\\/a"}'),
        ("package-lock.json", '{"a": "https://evil.example/x", "a": "https://old.example/x"}'),
        ("yarn.lock", 'resolved "https:\\u002f\\u002fevil.example/a"'),
        ("uv.lock", 'url = "\\U00000068ttps://evil.example/a"'),
        ("pnpm-lock.yaml", 'tarball: "https:\\x2f/evil.example/a"'),
        ("poetry.lock", 'url = "https://old.example@evil.example/a"'),
        ("Cargo.lock", 'source = "git+HTTPS://EVIL.example./a"'),
        ("yarn.lock", '"a@git@evil.example:o/r.git":'),
    ],
)
def test_a_host_cannot_be_hidden(name: str, text: str) -> None:
    base = "{}" if name.endswith("json") else ""
    found = changed(name, base.encode() + b"\n", text.encode())
    assert "evil.example" in found.reason


@pytest.mark.parametrize(
    "address",
    ["http://old.example/a", "https://old.example\\\\@evil.example/a", "https://old.example:1/"],
)
def test_the_same_host_otherwise_is_another_place(address: str) -> None:
    before = b'resolved "https://old.example/a"\n'
    assert changed("yarn.lock", before, f'resolved "{address}"\n'.encode()).tier == "held"


@pytest.mark.parametrize("value", ["{}", "[]", "null", "1", '"github"'])
def test_odd_values_of_known_keys_do_no_harm(value: str) -> None:
    lock = f'{{"type": {value}, "host": {value}, "funding": {value}}}'
    assert changed("flake.lock", lock.encode(), lock.encode() + b"\n").tier == ""


def test_addresses_for_people_are_no_hosts() -> None:
    lock = '{"packages": {"a": {"funding": {"url": "https://x.example"}, "license": "https://y"}}}'
    assert changed("package-lock.json", b"{}", lock.encode()).tier == ""


def test_a_lock_file_that_cannot_be_parsed_is_held() -> None:
    found = changed("package-lock.json", b"{}", b"{" * 100_000)
    assert found.tier == "held"
    assert "parsed" in found.reason


def test_a_reason_shows_no_control_character_and_stays_short() -> None:
    keys = {"postinstall": "x", "\x1b[2J\u202e" + "a" * 5000: "y"}
    found = changed("package.json", b"{}", json.dumps({"scripts": keys}).encode())
    assert found.reason == "changes scripts that run on install: postinstall"
    keys.pop("postinstall")
    found = changed("package.json", b"{}", json.dumps({"scripts": keys}).encode())
    assert found.reason.isprintable()
    assert len(found.reason) < 120
    hosts = "\n".join(f"https://h{n}.example/" for n in range(9))
    found = changed("requirements.txt", None, hosts.encode())
    assert found.reason.endswith("h0.example, h1.example, h2.example and 6 more")


def test_a_deleted_manifest_is_only_told() -> None:
    for name in (b"package.json", b"uv.lock"):
        assert risk_of(name, mode="", old_mode="100644", agent=None, base=b"{}").tier == "warned"
    assert risk_of(b"package.json", mode="120000", old_mode="100644", agent=b"x").tier == "held"


@given(
    st.recursive(
        st.text() | st.none() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_document_is_looked_through(value: object) -> None:
    assert places_in_values(value) <= places_in_values([value, "https://a.example"])


@given(st.binary(max_size=300), st.sampled_from([*HOSTS, "package.json", "pyproject.toml"]))
def test_any_content_has_an_answer(data: bytes, name: str) -> None:
    found = changed(name, None, data)
    assert bool(found.tier) == bool(found.reason)
