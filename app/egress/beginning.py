"""What of this host a new session's network is given: registries, variables, authorities.

All of it is found by the command that starts the session, in the user's own environment. The keeper
has another one, so it goes by what is written down here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from app.config import load_config
from app.egress.registries.asking import Asker
from app.egress.registries.gather import Host, gather
from app.egress.registries.guest_env import guest_env
from app.egress.registries.sources import sort_out
from app.egress.session import SessionEgress, StoredRule, write_session_egress
from app.files import read_regular, write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.paths import Paths

AUTHORITIES: Final = "ca.pem"
"""The session's copy of this host's certificate authorities, in its folder."""

IN_GUEST: Final = "/run/cloche/ca.pem"
"""Where the guest's first process puts it (vm/guest/net.c)."""

MAX_AUTHORITIES: Final = 4 << 20
"""Most bytes of authorities; Debian's have 0.2 million."""

BUNDLES: Final = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/ca-bundle.pem"),
    Path("/etc/ssl/cert.pem"),
)
"""Where Debian, Fedora, SUSE and Alpine keep them, a company's own included."""

TRUST: Final = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
)
"""Variables by which OpenSSL, requests, curl, Node, pip, git and cargo find them in any image."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a new session's folder and record get."""

    egress: SessionEgress
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables for every program in the guest."""
    authorities: bytes = b""
    """Empty: the guest keeps its own."""

    def write(self, folder: Path) -> None:
        """Put it into a session's folder. Raises OSError."""
        write_session_egress(folder, self.egress)
        if self.authorities:
            write_atomic(folder / AUTHORITIES, self.authorities)


def begin(paths: Paths, egress: SessionEgress, workspace: Path | None) -> Beginning:
    """Look at this host for a session that is to be made with these options.

    Takes about a second where a tool must be asked for the first time. Raises AppError
    `bad-config`.
    """
    if egress.closed or not egress.network:
        return Beginning(msgspec.structs.replace(egress, registries=()))
    host = Host(ask=Asker(dict(os.environ), paths.cache, workspace))
    found = sort_out(gather(host))
    stored = tuple(StoredRule(one.effect, one.text, one.origin) for one in found.rules)
    egress = msgspec.structs.replace(egress, registries=stored, notes=found.refused)
    wanted = load_config(paths.config).egress.ca == "host"
    authorities = read_authorities(host.variables) if wanted else b""
    trust = dict.fromkeys(TRUST, IN_GUEST) if authorities else {}
    return Beginning(egress, {**trust, **guest_env(host)}, authorities)


def authorities_of(folder: Path) -> bytes:
    """Return a session's authorities; nothing where its guest keeps its own."""
    try:
        return read_regular(folder / AUTHORITIES, MAX_AUTHORITIES)
    except FileNotFoundError:
        return b""


def read_authorities(variables: Mapping[str, str], places: tuple[Path, ...] = BUNDLES) -> bytes:
    """Return the certificates that this host believes; nothing where it has no such file.

    The user's own SSL_CERT_FILE comes first. A private key beside them is left out.
    """
    named = variables.get("SSL_CERT_FILE", "")
    for place in (Path(named),) if named.startswith("/") else places:
        try:
            with place.open("rb") as file:
                data = file.read(MAX_AUTHORITIES + 1)
        except OSError:
            continue  # another system's place
        if len(data) <= MAX_AUTHORITIES:
            return certificates(data)
    return b""


def certificates(data: bytes) -> bytes:
    """Return the PEM certificates in a text and nothing else of it."""
    kept: list[bytes] = []
    inside = False
    for line in data.splitlines():
        inside = inside or line.strip() == b"-----BEGIN CERTIFICATE-----"
        if inside:
            kept.append(line.strip() + b"\n")
        inside = inside and line.strip() != b"-----END CERTIFICATE-----"
    return b"".join(kept)
