"""Bring one program out of a package of an npm registry, without node. Never runs on the host.

    python3 npm_fetch.py PREFIX PACKAGE[@VERSION] FILE NAME

It stands in the place of `npm install` for packages that are one program and need no other: in an
emulated machine npm alone takes minutes until it begins. The package goes to PREFIX/lib/NAME, and
PREFIX/bin/NAME is a link to FILE in it, a pattern. VERSION is a tag, the beginning of a version, or
has the newest one's number for `{latest}`; `{arch}` is npm's word for this processor. What cannot
be had in this way is an error, and leaves nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, BinaryIO, cast

ARCH = {"x86_64": "x64", "aarch64": "arm64"}
NPM = Path("/usr/share/nodejs/npm/lib/utils/config/definitions.js")
"""Where Debian's npm says which registry is asked when nothing else is said."""

ABBREVIATED = "application/vnd.npm.install-v1+json"
MAX_DOCUMENT = 64 << 20
TOLD_EVERY_S = 2.0
ANSWER_S = 60
"""Seconds in which a server must send something."""


def say(text: str) -> None:
    """Say how far it is."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def registry() -> str:
    """Return the address of the registry that npm would ask."""
    named = os.environ.get("NPM_CONFIG_REGISTRY", "")
    if not named:
        found = re.search(r"define\('registry', \{\s*default: [`']([^`']+)", NPM.read_text())
        if found is None:
            raise SystemExit("npm-fetch: npm does not say which registry it asks")
        named = found[1]
    return named.rstrip("/")


def chosen(document: dict[str, Any], wanted: str) -> dict[str, Any]:
    """Return what a package's document says of the version that is meant."""
    tags: dict[str, str] = document["dist-tags"]
    versions: dict[str, dict[str, Any]] = document["versions"]
    name = wanted.replace("{latest}", tags["latest"])
    if name in tags:
        return versions[tags[name]]
    if name in versions:
        return versions[name]
    numbers = [one for one in versions if re.fullmatch(r"[0-9]+(\.[0-9]+){2}", one)]
    fitting = [one for one in numbers if one.startswith(f"{name}.")]
    if not fitting:
        raise SystemExit(f"npm-fetch: {document['name']} has no version {name}")
    return versions[max(fitting, key=lambda one: [int(part) for part in one.split(".")])]


def download(url: str, target: BinaryIO, name: str) -> str:
    """Write what is at `url` to an open file; its digest as npm writes it."""
    digest, done, told = hashlib.sha512(), 0, 0.0
    with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        while data := answer.read(1 << 18):
            digest.update(data)
            target.write(data)
            done += len(data)
            if time.monotonic() - told > TOLD_EVERY_S:
                told = time.monotonic()
                say(f"fetching {name}: {done >> 20} of {total >> 20} MiB")
    target.flush()
    return "sha512-" + base64.b64encode(digest.digest()).decode()


def unpack(archive: str, folder: Path) -> None:
    """Unpack a package's tar, whose names all begin with a folder that means nothing."""
    folder.mkdir(parents=True)
    words = ["tar", "-xzf", archive, "--no-same-owner", "--strip-components=1", "-C", str(folder)]
    subprocess.run(words, check=True)


def link(prefix: Path, folder: Path, file: str, name: str) -> None:
    """Make the program one of PREFIX/bin, and start it once unless it is a script."""
    found = sorted(folder.glob(file))
    if len(found) != 1:
        raise SystemExit(f"npm-fetch: there is not one {file} in the package")
    found[0].chmod(0o755)
    (prefix / "bin").mkdir(exist_ok=True)
    place = prefix / "bin" / name
    place.symlink_to(os.path.relpath(found[0], place.parent))
    with found[0].open("rb") as opened:
        script = opened.read(2) == b"#!"
    if not script:
        subprocess.run([str(place), "--version"], check=True)


def main(prefix: Path, wanted: str, file: str, name: str) -> None:
    """Fetch, check, unpack and link."""
    wanted = wanted.replace("{arch}", ARCH[platform.machine()])
    package, _, version = wanted[1:].partition("@")  # the first letter may be a scope's
    package = wanted[0] + package
    asked = urllib.request.Request(
        f"{registry()}/{package.replace('/', '%2f')}", headers={"Accept": ABBREVIATED}
    )
    with urllib.request.urlopen(asked, timeout=ANSWER_S) as answer:
        meant = chosen(json.loads(answer.read(MAX_DOCUMENT)), version or "latest")
    say(f"fetching {package} {meant['version']}")
    with tempfile.NamedTemporaryFile() as archive:
        digest = download(meant["dist"]["tarball"], cast("BinaryIO", archive), package)
        if digest != meant["dist"].get("integrity"):
            raise SystemExit(f"npm-fetch: {package} is not what the registry says it is")
        say(f"unpacking {package}")
        folder = prefix / "lib" / name
        try:
            unpack(archive.name, folder)
            link(prefix, folder, file, name)
        except BaseException:  # an interrupted one leaves no half either
            shutil.rmtree(folder, ignore_errors=True)
            (prefix / "bin" / name).unlink(missing_ok=True)
            raise


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
