from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.egress.registries import parsers
from app.egress.registries.asking import Asker
from app.egress.registries.gather import Host, gather
from app.egress.registries.sources import registry, sort_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PIP_SOURCE = '''
"""Doc."""
import urllib.parse
class PackageIndex: ...
PyPI = PackageIndex("https://index.example/", file_storage_domain="files.example")
TestPyPI = PackageIndex("https://test.example/", file_storage_domain="test-files.example")
'''


def test_pip_conf_has_indexes_in_any_section() -> None:
    text = """
[global]
index-url = https://user:secret@pip.example:8443/simple
extra-index-url =
    https://one.example/simple
    http://two.example/simple
[install]
find-links = /srv/wheels https://links.example/
timeout = 5
"""
    urls = parsers.pip_conf(text)
    assert [found.host for url in urls if (found := registry(url, "pip", "x"))] == [
        "pip.example",
        "one.example",
        "two.example",
        "links.example",
    ]
    assert parsers.pip_sets_index(text)
    assert not parsers.pip_sets_index("[global]\nextra_index_url = https://x.example\n")


def test_an_npmrc_has_scoped_registries_and_its_secrets_are_not_looked_at() -> None:
    text = """
registry=https://npm.example/
@corp:registry = "https://${NPM_HOST}/npm/"
//npm.example/:_authToken=hunter2
; registry=https://comment.example/
always-auth=true
"""
    urls = parsers.npmrc(text, {"NPM_HOST": "corp.example"})
    assert urls == ("https://npm.example/", "https://corp.example/npm/")
    assert parsers.npm_sets_registry(text)
    assert not parsers.npm_sets_registry("@corp:registry=https://x.example\n")


def test_apt_has_lines_paragraphs_and_proxies() -> None:
    lines = """
deb http://deb.example/debian stable main # http://comment.example
deb [arch=amd64 signed-by=/k] https://signed.example/apt stable main
# deb http://off.example/debian stable main
deb-src http://src.example/debian stable main
deb cdrom:[Debian]/ stable main
"""
    assert parsers.apt_list(lines) == (
        "http://deb.example/debian",
        "https://signed.example/apt",
        "http://src.example/debian",
        "cdrom:[Debian]/",
    )
    paragraphs = """
# http://comment.example
Types: deb
URIs: http://a.example/debian
 http://b.example/debian
Suites: stable

Enabled: no
URIs: http://off.example/
"""
    assert parsers.apt_deb822(paragraphs) == ("http://a.example/debian", "http://b.example/debian")
    options = 'Acquire::http::Proxy "http://proxy.example:3142";\n'
    options += '//Acquire::http::Proxy "http://comment.example";\nAcquire::https::Proxy "DIRECT";\n'
    assert parsers.apt_conf(options) == ("http://proxy.example:3142",)


def test_cargo_has_registries_sources_and_the_places_of_downloads() -> None:
    text = """
[registries.corp]
index = "sparse+https://cargo.example/index/"
[source.default]
replace-with = "mirror"
[source.mirror]
registry = "https://mirror.example/index"
"""
    assert parsers.cargo_toml(text) == (
        "https://cargo.example/index/",
        "https://mirror.example/index",
    )
    assert parsers.cargo_replaces_default(text)
    assert parsers.cargo_index_config('{"dl": "https://dl.example/c", "api": "https://a.example"}')
    assert parsers.cargo_index_config("[]") == ()


def test_go_has_proxies_and_a_database() -> None:
    assert parsers.go_proxy("https://a.example|https://b.example,direct") == (
        "https://a.example",
        "https://b.example",
    )
    assert parsers.go_proxy("off") == ()
    assert parsers.go_sumdb("sum.example") == ("https://sum.example",)
    assert parsers.go_sumdb("sum.example+1234+key") == ("https://sum.example",)
    assert parsers.go_sumdb("sum.example+1234+key https://mirror.example") == (
        "https://mirror.example",
    )
    assert parsers.go_sumdb("off") == ()


def test_pips_default_is_read_out_of_its_source_and_not_run() -> None:
    assert parsers.pip_builtin(PIP_SOURCE) == ("https://index.example/", "https://files.example/")
    assert parsers.pip_builtin("raise SystemExit\n") == ()
    assert parsers.pip_builtin("((((") == ()


@given(st.text(max_size=300))
def test_no_text_upsets_a_parser(text: str) -> None:
    for read in (
        parsers.pip_conf,
        parsers.apt_list,
        parsers.apt_deb822,
        parsers.apt_conf,
        parsers.cargo_toml,
        parsers.cargo_index_config,
        parsers.go_proxy,
        parsers.go_sumdb,
        parsers.pip_builtin,
    ):
        for url in read(text):
            found = registry(url, "x", "x")
            sort_out([found] if found else [])
    parsers.npmrc(text, {})


@pytest.mark.parametrize(
    "url",
    ["", "file:///srv", "cdrom:[x]", "git://x.example", "https://", "https://x:99999/", "[::1"],
)
def test_what_leads_to_no_host_is_no_registry(url: str) -> None:
    assert registry(url, "x", "x") is None


def test_a_rule_is_private_names_its_origin_and_keeps_no_secret() -> None:
    found = registry("https://user:secret@Pip.Example:8443/simple?token=secret", "pip", "pip.conf")
    literal = registry("http://10.0.0.5:3141/root", "pip", "pip.conf")
    six = registry("http://[fd00::5]/", "pip", "pip.conf")
    assert found is not None
    assert literal is not None
    assert six is not None
    one, two = sort_out([found, literal, six, found]).rules
    assert (one.text, one.private, one.origin) == ("pip.example:8443", True, "from pip.conf")
    assert (two.text, two.private) == ("10.0.0.5/32:3141", True)
    assert "secret" not in repr((found, one))


def test_a_host_that_is_none_makes_no_rule() -> None:
    found = registry("https://bad_host-.example/", "pip", "pip.conf")
    assert found is not None
    assert sort_out([found]).rules == ()


def test_a_registry_on_this_machine_is_named_as_out_of_reach() -> None:
    found = registry("http://127.0.0.1:3141/root/simple", "pip", "pip.conf")
    assert found is not None
    assert sort_out([found]).rules == ()
    (sentence,) = sort_out([found, found]).refused
    assert sentence.startswith("From pip.conf: 127.0.0.1/32 never takes effect")


def a_host(
    root: Path, files: Mapping[str, str], variables: Mapping[str, str], ask: Callable[..., str]
) -> Host:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Host(root, root / "home", variables, ask)


def nobody(*_: str) -> str:
    return ""


def found_by(host: Host) -> list[str]:
    return [f"{one.tool} {one.host}:{one.port} {one.origin}" for one in gather(host)]


def test_every_place_of_every_tool_is_read(tmp_path: Path) -> None:
    files = {
        "etc/pip.conf": "[global]\nextra-index-url = https://global.example/simple\n",
        "home/.config/pip/pip.conf": "[global]\nindex-url = https://user.example/simple\n",
        "etc/npmrc": "@a:registry=https://scoped.example/\n",
        "home/.npmrc": "registry=https://npm.example/\n",
        "etc/apt/sources.list": "deb http://list.example/debian stable main\n",
        "etc/apt/sources.list.d/a.sources": "URIs: https://deb822.example/\n",
        "etc/apt/sources.list.d/b.list": "deb http://more.example/ stable main\n",
        "etc/apt/sources.list.d/c.disabled": "deb http://no.example/ stable main\n",
        "etc/apt/apt.conf.d/01proxy": 'Acquire::http::Proxy "http://cache.example:3142";\n',
        "home/.cargo/config.toml": '[registries.c]\nindex = "sparse+https://cargo.example/"\n',
        "home/.cargo/registry/index/used.example-0123456789abcdef/config.json": (
            '{"dl": "https://dl.example/crates"}'
        ),
        "home/.config/go/env": "GOPROXY=https://go.example,direct\nGOSUMDB=off\n",
    }
    variables = {"PIP_EXTRA_INDEX_URL": "https://variable.example/simple"}
    assert found_by(a_host(tmp_path, files, variables, nobody)) == [
        "pip global.example:443 pip.conf",
        "pip user.example:443 pip.conf",
        "pip variable.example:443 pip's variables",
        "npm scoped.example:443 npmrc",
        "npm npm.example:443 .npmrc",
        "apt list.example:80 sources.list",
        "apt more.example:80 b.list",
        "apt deb822.example:443 a.sources",
        "apt cache.example:3142 01proxy",
        "cargo cargo.example:443 cargo's config.toml",
        "cargo used.example:443 cargo's registry folder",
        "cargo dl.example:443 cargo's registry folder",
        "go go.example:443 go/env",
    ]


def test_variables_come_before_what_a_tool_has_built_in(tmp_path: Path) -> None:
    variables = {
        "PIP_INDEX_URL": "https://pip.example/",
        "NPM_CONFIG_REGISTRY": "https://npm.example/",
        "GOPROXY": "https://go.example",
        "GOSUMDB": "off",
        "CARGO_REGISTRIES_CORP_INDEX": "sparse+https://cargo.example/",
    }

    def ask(*argv: str) -> str:
        raise AssertionError(argv)

    assert [one.host for one in gather(a_host(tmp_path, {}, variables, ask))] == [
        "pip.example",
        "npm.example",
        "cargo.example",
        "go.example",
    ]


def test_without_configuration_the_tools_are_asked(tmp_path: Path) -> None:
    place = tmp_path / "lib" / "pip"
    answers: dict[tuple[str, ...], str] = {
        ("pip3", "--version"): f"pip 99.1 from {place} (python 3.99)\n",
        ("npm", "config", "get", "registry"): "https://npm.example/\n",
        ("go", "env", "GOPROXY"): "https://go.example,direct\n",
        ("go", "env", "GOSUMDB"): "sum.example\n",
    }

    def ask(*argv: str) -> str:
        return answers.get(argv, "")

    files = {"lib/pip/_internal/models/index.py": PIP_SOURCE}
    assert found_by(a_host(tmp_path, files, {}, ask)) == [
        "pip index.example:443 pip itself",
        "pip files.example:443 pip itself",
        "npm npm.example:443 npm itself",
        "go go.example:443 go itself",
        "go sum.example:443 go itself",
    ]


def test_a_replaced_default_of_cargo_is_not_allowed_for_what_was_used_before(
    tmp_path: Path,
) -> None:
    files = {
        "home/.cargo/config.toml": (
            '[source.x]\nreplace-with = "m"\n[source.m]\nregistry = "https://m.example/"\n'
        ),
        "home/.cargo/registry/index/old.example-0123456789abcdef/config.json": "{}",
    }
    assert [one.host for one in gather(a_host(tmp_path, files, {}, nobody))] == ["m.example"]


def a_tool(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def path_of(*folders: Path) -> dict[str, str]:
    return {"PATH": ":".join([*map(str, folders), os.environ["PATH"]]), "SECRET": "x"}


def test_a_tool_runs_in_the_root_with_a_clean_environment(tmp_path: Path) -> None:
    a_tool(tmp_path / "bin", "npm", 'echo "$(pwd) ${SECRET:-clean} $1"')
    ask = Asker(path_of(tmp_path / "bin"), None, None)
    assert ask("npm", "config") == "/ clean config\n"
    assert ask("no-such-tool-anywhere") == ""


def test_no_program_of_a_workspace_or_of_a_relative_folder_is_run(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    a_tool(workspace / ".venv" / "bin", "pip", "echo evil")
    a_tool(tmp_path / "good", "pip", "echo good")
    variables = path_of(workspace / ".venv" / "bin", tmp_path / "good")
    variables["PATH"] = "work/.venv/bin:" + variables["PATH"]
    assert Asker(variables, None, workspace)("pip") == "good\n"


def test_an_answer_is_remembered_until_the_tool_changes(tmp_path: Path) -> None:
    bin_, cache, count = tmp_path / "bin", tmp_path / "cache", tmp_path / "count"
    a_tool(bin_, "npm", f'echo x >> "{count}"; echo first')
    for _ in range(2):
        assert Asker(path_of(bin_), cache, None)("npm", "get") == "first\n"
    assert count.read_text() == "x\n"
    a_tool(bin_, "npm", "echo second; : a longer text")
    assert Asker(path_of(bin_), cache, None)("npm", "get") == "second\n"


def test_a_tool_that_fails_says_nothing_and_damage_of_the_memory_is_none(tmp_path: Path) -> None:
    a_tool(tmp_path / "bin", "npm", "echo half; exit 3")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "registries.json").write_text("[")
    assert Asker(path_of(tmp_path / "bin"), cache, None)("npm") == ""
