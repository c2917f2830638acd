"""What of a host a new session's network is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.egress.beginning import Beginning, authorities_of, certificates, read_authorities
from app.egress.registries.gather import Host
from app.egress.registries.guest_env import guest_env
from app.egress.session import StoredRule, read_session_egress, started_with
from vm.egress.rules import parse_rule

if TYPE_CHECKING:
    from pathlib import Path

PEM = b"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
KEY = b"-----BEGIN PRIVATE KEY-----\nU0VDUkVU\n-----END PRIVATE KEY-----\n"


def host(root: Path, variables: dict[str, str] | None = None, **files: str) -> Host:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Host(root, root / "home", variables or {})


def test_a_guest_is_told_of_the_registries_without_their_credentials(tmp_path: Path) -> None:
    here = host(tmp_path)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "pip.conf").write_text("[global]\nindex-url = https://old.example/s\n")
    config = tmp_path / "home" / ".config" / "pip"
    config.mkdir(parents=True)
    (config / "pip.conf").write_text(
        "[global]\nindex-url = https://me:SECRET@pkgs.example/simple\n"
        "extra-index-url = http://more.example:8080/s file:///opt/simple\n"
    )
    (tmp_path / "home" / ".npmrc").write_text(
        "@ours:registry=https://scoped.example/\nregistry=https://npm.example/\n"
        "//npm.example/:_authToken=SECRET\n"
    )
    go = tmp_path / "home" / ".config" / "go"
    go.mkdir()
    (go / "env").write_text("GOPROXY=https://go.example|direct\nGOSUMDB=off\n")
    assert guest_env(here) == {
        "PIP_INDEX_URL": "https://pkgs.example/simple",
        "PIP_EXTRA_INDEX_URL": "http://more.example:8080/s",
        "PIP_TRUSTED_HOST": "more.example:8080",
        "UV_DEFAULT_INDEX": "https://pkgs.example/simple",
        "UV_INDEX": "http://more.example:8080/s",
        "NPM_CONFIG_REGISTRY": "https://npm.example/",
        "GOPROXY": "https://go.example|direct",
        "GOSUMDB": "off",
    }


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"PIP_INDEX_URL": "http://127.0.0.1:3141/root/simple"},
        {"PIP_INDEX_URL": "file:///opt/simple"},
        {"PIP_INDEX_URL": "https://pkgs.example/" + "x" * 3000},
        {"GOPROXY": "https://me:SECRET@go.example"},
        {"npm_config_registry": "not a url"},
    ],
)
def test_what_a_guest_cannot_use_is_left_out(tmp_path: Path, variables: dict[str, str]) -> None:
    assert guest_env(host(tmp_path, variables)) == {}


def test_variables_win_over_files(tmp_path: Path) -> None:
    config = tmp_path / "home" / ".config" / "pip"
    config.mkdir(parents=True)
    (config / "pip.conf").write_text("[global]\nindex-url = https://file.example/s\n")
    here = host(
        tmp_path,
        {
            "PIP_INDEX_URL": "https://variable.example/s",
            "UV_DEFAULT_INDEX": "https://uv.example/s",
            "NPM_CONFIG_REGISTRY": "https://npm.example/",
        },
    )
    found = guest_env(here)
    assert found["PIP_INDEX_URL"] == "https://variable.example/s"
    assert found["UV_DEFAULT_INDEX"] == "https://uv.example/s"
    assert found["NPM_CONFIG_REGISTRY"] == "https://npm.example/"


def test_of_a_bundle_only_the_certificates_are_taken(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(b"# mine\n" + PEM + KEY + b"words\n" + PEM)
    assert certificates(bundle.read_bytes()) == PEM + PEM
    assert read_authorities({"SSL_CERT_FILE": str(bundle)}, ()) == PEM + PEM
    assert read_authorities({}, (tmp_path / "none.pem", bundle)) == PEM + PEM
    assert read_authorities({"SSL_CERT_FILE": "relative.pem"}, ()) == b""


def test_a_session_keeps_what_was_found_when_it_began(tmp_path: Path) -> None:
    rule = parse_rule("pkgs.example:443", "allow", private=True, origin="from pip.conf")
    egress = started_with("locked", ["a.example"], [], ask=False)
    stored = (StoredRule(rule.effect, rule.text, rule.origin),)
    begun = Beginning(
        type(egress)(egress.profile, rules=egress.rules, ask=False, registries=stored), {}, PEM
    )
    begun.write(tmp_path)
    found = read_session_egress(tmp_path)
    assert found == begun.egress
    assert found.registry_rules() == (rule,)
    assert authorities_of(tmp_path) == PEM
