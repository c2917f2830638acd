"""A registry behind TLS of its own authority and a login: what lacks is said, then it works."""

from __future__ import annotations

import datetime
import ipaddress
import subprocess
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.e2e.registry import registry
from tests.vm.oci_help import SHELL, Layout, layer
from vm.errors import FetchFailed
from vm.image.oci import skopeo
from vm.image.oci.reference import parse

if TYPE_CHECKING:
    from pathlib import Path

HTPASSWD = "ann:$2b$05$RW2G.kyTMTXcIQQmV7C9/Ofbxn2E.nLwLZLoaNUaS9P19lgrRQkI2\n"
PASSWORD = "made-up-for-the-test"


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Make an authority and a server's certificate for 127.0.0.1: its ca.crt, crt and key."""
    keys = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    made: list[Path] = []
    for name, own, file in (("lab authority", keys[0], "ca.crt"), ("lab", keys[1], "lab.crt")):
        extension: x509.ExtensionType = x509.BasicConstraints(ca=True, path_length=None)
        if file == "lab.crt":
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            extension = x509.SubjectAlternativeName([address])
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name("lab authority"))
            .public_key(own.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(extension, critical=False)
        )
        signed = builder.sign(keys[0], hashes.SHA256())
        (folder / file).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        made.append(folder / file)
    key = keys[1].private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "lab.key").write_bytes(key)
    return made[0], made[1], folder / "lab.key"


def test_an_authority_of_ones_own_and_a_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for variable in ("HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(home))
    for variable in ("XDG_CONFIG_HOME", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "SSL_CERT_FILE"):
        monkeypatch.delenv(variable, raising=False)
    authority, certificate, key = certificates(tmp_path)
    (tmp_path / "htpasswd").write_text(HTPASSWD)
    made = Layout(tmp_path / "lay")
    made.tag(made.image(layer(*SHELL)))
    auth = f"{{htpasswd: {{realm: lab, path: '{tmp_path / 'htpasswd'}'}}}}"
    tls = f"{{certificate: '{certificate}', key: '{key}'}}"
    with registry(tmp_path, auth, tls) as host:
        wanted = parse(f"{host}/lab/tiny:1")
        with pytest.raises(FetchFailed, match="x509") as caught:
            skopeo.manifest(wanted, skopeo.DIRECT)
        assert f"~/.config/containers/certs.d/{host}" in caught.value.hint
        certs = home / ".config/containers/certs.d" / host
        certs.mkdir(parents=True)
        (certs / "ca.crt").write_bytes(authority.read_bytes())
        with pytest.raises(FetchFailed) as caught:
            skopeo.manifest(wanted, skopeo.DIRECT)
        assert caught.value.hint.endswith(f"skopeo login {host}")
        words = (["login", "-u", "ann", "--password-stdin", host],
                 ["copy", "-q", f"oci:{tmp_path / 'lay'}:latest", str(wanted)])  # fmt: skip
        for command in words:
            subprocess.run(
                ["skopeo", *command], input=PASSWORD.encode(), check=True, timeout=120,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        assert b"layers" in skopeo.manifest(wanted, skopeo.DIRECT)
        (tmp_path / "to").mkdir()
        skopeo.copy(wanted, skopeo.DIRECT, tmp_path / "to", lambda _: None)
        assert (tmp_path / "to" / skopeo.FETCHED / "manifest.json").is_file()
