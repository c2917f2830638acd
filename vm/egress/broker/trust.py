"""Whom the broker believes: this host's own trust store, and nothing less."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vm.errors import BrokerRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

BUNDLES: Final = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/cert.pem"),
)
"""Where Debian, Fedora and Alpine keep the bundle, a company's own authority included."""


def bundle(env: Mapping[str, str], places: tuple[Path, ...] = BUNDLES) -> Path:
    """Return the file of trusted authorities: SSL_CERT_FILE, or the host's. BrokerRefused: none."""
    named = env.get("SSL_CERT_FILE")
    for place in (Path(named),) if named else places:
        if place.is_file():
            return place
    raise BrokerRefused(
        f"There is no list of trusted authorities at {named or places[0]}.",
        "unset SSL_CERT_FILE" if named else "sudo apt-get install ca-certificates",
    )


def context(place: Path) -> ssl.SSLContext:
    """Return what checks an upstream's certificate and name; TLS 1.2 at least. BrokerRefused."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    try:
        made.load_verify_locations(place)
        usable = bool(made.cert_store_stats()["x509_ca"])
    except (OSError, ssl.SSLError):
        usable = False
    if not usable:
        raise BrokerRefused(f"{place} holds no authority.", "sudo update-ca-certificates --fresh")
    return made
