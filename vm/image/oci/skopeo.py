"""Fetching by `skopeo`: registries with their logins, and what `docker save` writes.

Cloche reads no password: skopeo finds the user's own file of logins, as podman does. Whatever
arrives is checked by digest afterwards, so skopeo is trusted with the way, not with the bytes.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vm.errors import FetchFailed
from vm.image.oci.limits import MAX_DOCUMENT, MAX_FETCHED
from vm.image.tools import Watch, end, spawn
from vm.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vm.image.oci.reference import Reference

FETCHED, _ARCHIVE = "fetched", "archive"
ASK_SECONDS: Final = 60.0
COPY_SECONDS: Final = 3600.0
_LOOK_SECONDS: Final = 0.25
"""Time between two looks at how much has arrived."""

_PASSED: Final = (
    *("PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
"""All that skopeo gets of the environment: where logins, authorities and proxies are."""

_MESSAGE: Final = re.compile(r'msg="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Way:
    """How a registry is spoken to."""

    plain_http: bool = False
    """Also without TLS, and with a certificate that nobody vouches for."""

    def option(self, prefix: str) -> list[str]:
        """Return the option that says it, for a command whose options begin with `prefix`."""
        return [f"--{prefix}tls-verify={'false' if self.plain_http else 'true'}"]


DIRECT: Final = Way()
"""With TLS, verified."""


def manifest(reference: Reference, way: Way, seconds: float = ASK_SECONDS) -> bytes:
    """Return the manifest or index that a registry has under a name, its bytes as they are.

    Raises FetchFailed, HostLacks without skopeo.
    """
    argv = ["skopeo", "inspect", "--raw", "--no-tags", *way.option(""), str(reference)]
    child = _start(argv, None)
    watch = Watch(child, seconds)
    said: list[str] = []
    try:
        assert child.stdout is not None
        raw = child.stdout.read(MAX_DOCUMENT + 1)
        if len(raw) > MAX_DOCUMENT:
            raise FetchFailed(f"{reference} has a manifest that is too long.")
        status = child.wait()
    finally:
        watch.close()
        said.extend(watch.tail)
    if status != 0:
        raise failure(reference, said)
    return raw


def copy(reference: Reference, way: Way, folder: Path, told: Callable[[int], None]) -> None:
    """Copy an image as it is into the folder FETCHED of `folder`: its manifest beside its blobs.

    `told` is called with the bytes that have arrived. Raises FetchFailed, also when it takes too
    long or too much arrives; HostLacks without skopeo.
    """
    fixed = ("--quiet", "--retry-times", "2")
    # names within `folder`: skopeo takes a colon of a path for the beginning of a tag
    if reference.kind == "docker":
        source = [*way.option("src-"), str(reference)]
    else:
        (folder / _ARCHIVE).symlink_to(reference.place)
        source = [f"docker-archive:{_ARCHIVE}{reference.version}"]
    child = _start(["skopeo", "copy", *fixed, *source, f"dir:{FETCHED}"], folder)
    watch = Watch(child, COPY_SECONDS)
    try:
        _follow(child, folder, told)
        status = child.wait()
    finally:
        watch.close()
    if status != 0:
        raise failure(reference, watch.tail)


def _follow(child: subprocess.Popen[bytes], folder: Path, told: Callable[[int], None]) -> None:
    while True:
        try:
            child.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            arrived = _bytes_below(folder)
            told(arrived)
            if arrived > MAX_FETCHED:
                end(child)
                text = f"More than {MAX_FETCHED >> 30} GiB arrived; that is no image."
                raise FetchFailed(text) from None
        else:
            return


def _bytes_below(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue  # a part that was renamed meanwhile
    return total


def _start(argv: list[str], scratch: Path | None) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
    environment["LC_ALL"] = "C.UTF-8"
    if scratch is not None:
        environment["TMPDIR"] = str(scratch)  # large layers pass through there
    child = spawn(argv, environment=environment, cwd=scratch)
    with contextlib.suppress(ProcessLookupError):  # it had nothing to do
        hard = resource.prlimit(child.pid, resource.RLIMIT_FSIZE)[1]
        most = MAX_FETCHED if hard == resource.RLIM_INFINITY else min(hard, MAX_FETCHED)
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (most, most))
    return child


def failure(reference: Reference, said: list[str]) -> FetchFailed:
    """Return the error that says what skopeo said, with the way out where one is known."""
    found = _MESSAGE.findall("\n".join(said))
    text = found[-1].replace('\\"', '"') if found else " ".join(said)[-300:]
    clean = printable(text).strip()[-300:]
    return FetchFailed(f"{reference} was not fetched: {clean}.", _way_out(reference, clean))


def _way_out(reference: Reference, said: str) -> str:
    low = said.lower()
    if "http response to https" in low:
        return f"If you trust the way there: cloche image import --plain-http {reference}"
    if any(word in low for word in ("unauthorized", "authentication required", "denied")):
        return f"Log in, then do it again: skopeo login {reference.host}"
    if "x509" in low or "certificate" in low:
        folder = f"~/.config/containers/certs.d/{reference.host}"
        return f"Put the registry's authority there as ca.crt: {folder}"
    if "manifest unknown" in low or "name unknown" in low:
        return f"Look what there is: skopeo list-tags docker://{reference.place}"
    several = any(word in low for word in ("expected 1 item", "not found", "source index"))
    if reference.kind == "docker-archive" and several:
        file = shlex.quote(reference.place)
        return (
            f"Say which one: cloche image import docker-archive:{reference.place}:NAME:TAG "
            f"(what there is: tar -xOf {file} manifest.json)"
        )
    if reference.kind == "docker":
        return f"Look at the network, then do it again: cloche image import {reference}"
    return f"Look at it: ls -l {reference.place}"
