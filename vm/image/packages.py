"""Packages of the distribution through mmdebstrap, with this host's own apt configuration.

On a Debian host the image comes from the host's own sources, so mirrors and proxies that work for
the host work for the image. Elsewhere it is Debian stable from mmdebstrap's own default.
"""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vm.errors import HostLacks
from vm.image.tools import Watch, find, require, run, spawn

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from vm.image.recipes import Recipe

KERNEL = "linux-image-cloud-amd64"
TOOLKIT_PACKAGES = ("openssh-server", "busybox-static", KERNEL)
BUILD_SECONDS = 1800.0
"""A slow mirror's time; beyond it something hangs."""

_SUBORDINATE = Path("/etc/subuid")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_UNUSED = ("doc", "man", "info", "locale", "groff", "lintian", "bug")
_TARGETS = "$(ORIGIN) $(CODENAME) $(REPO_URI) $(RELEASE) $(COMPONENT)"
_NETWORK = re.compile(r"^Acquire::(http|https|Retries|Check-Date|Check-Valid-Until)\b.*")
_PACKAGE = re.compile(r"^package (\S+)$")
_STAGE = re.compile(r"^I: (.+?)\.*$")


def require_bootstrap() -> None:
    """Raise HostLacks unless mmdebstrap can work here: as root, or in a user namespace."""
    require("apt-config", "mmdebstrap", "mksquashfs")
    if not _KEYRING.is_file():
        raise HostLacks(
            f"The keys of Debian's archive are missing ({_KEYRING}).",
            "sudo apt-get install debian-archive-keyring",
        )
    if os.geteuid() == 0:
        return
    require("newuidmap")
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = str(os.geteuid())
    owners = _SUBORDINATE.read_text().splitlines() if _SUBORDINATE.is_file() else []
    if not any(line.split(":")[0] in (name, str(os.geteuid())) for line in owners):
        raise HostLacks(
            f"The user {name} has no range of user ids to build an image with.",
            f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}",
        )


@dataclass(frozen=True, slots=True)
class Sources:
    """Where packages come from: a suite, and apt source lines (none: mmdebstrap's default)."""

    suite: str
    lines: tuple[str, ...]


def host_sources() -> Sources:
    """Return the Debian sources of this host's apt, Debian stable where it has none."""
    argv = ["apt-get", "indextargets", "--format", _TARGETS, "Identifier: Packages"]
    rows = {tuple(line.split()) for line in _printed(argv) if line.startswith("Debian ")}
    complete = sorted(row for row in rows if len(row) == 5)
    suites = [row[1] for row in complete if row[1] == row[3]]
    if not suites:
        return Sources("stable", ())
    suite = suites[0]
    lines = (f"deb [signed-by={_KEYRING}] {uri} {release} {part}"
             for _, name, uri, release, part in complete
             if name.startswith(suite) and "backports" not in name)  # fmt: skip
    return Sources(suite, tuple(lines))


def network_options() -> str:
    """Return the host's apt settings for the network (proxies, retries, checks) as a conf file."""
    return "".join(f"{line}\n" for line in _printed(["apt-config", "dump"]) if _NETWORK.match(line))


def _printed(argv: list[str]) -> list[str]:
    if find(argv[0]) is None:
        return []
    return run(argv, what=argv[0], seconds=60).decode(errors="replace").splitlines()


@dataclass
class Bootstrap:
    """One run of mmdebstrap that writes a tar to `child.stdout`."""

    child: subprocess.Popen[bytes]
    watch: Watch
    versions: list[str] = field(default_factory=list[str])
    """`name_version` of every package, complete when `finish` has returned."""

    def finish(self, what: str) -> None:
        """Wait for the end; VMError when it failed."""
        self.watch.finish(what)
        self.versions.sort()

    def close(self) -> None:
        """End it if it still runs, and let go of its pipes."""
        self.watch.close()


def unpack_toolkit(scratch: Path, said: Callable[[str], None]) -> Bootstrap:
    """Start unpacking (never installing) the packages that toolkit and kernel are taken from."""
    listing = 'cd "$1/var/cache/apt/archives" && for p in *.deb; do echo "package ${p%.deb}"; done'
    options = ["--variant=extract", f"--include={','.join(TOOLKIT_PACKAGES)}",
               f"--extract-hook={listing} >&2"]  # fmt: skip
    return _bootstrap(options, scratch, said)


def install_base(recipe: Recipe, scratch: Path, said: Callable[[str], None]) -> Bootstrap:
    """Start installing the base system of the agent's world."""
    return _bootstrap(list(base_options(recipe)), scratch, said)


_WORLD = (
    'echo "agent:x:1000:1000:agent:/home/agent:/bin/bash" >> "$1/etc/passwd"',
    'echo "agent:x:1000:" >> "$1/etc/group"',
    'echo "agent:*:19000:0:99999:7:::" >> "$1/etc/shadow"',
    'cp -a "$1/etc/skel" "$1/home/agent" && chown -R 1000:1000 "$1/home/agent"',
    'mkdir "$1/workspace" && chown 1000:1000 "$1/workspace" && chmod 700 "$1/root"',
    # vim-tiny registers itself as vi, view and editor; people type vim
    '[ -e "$1/usr/bin/vim" ] || ln -s vim.tiny "$1/usr/bin/vim"',
    'echo cloche > "$1/etc/hostname" && echo "127.0.0.1 localhost" > "$1/etc/hosts"',
    'echo "LANG=C.UTF-8" > "$1/etc/default/locale"',
    # the host's proxies are the host's affair, and a machine id must not be shared
    'rm -f "$1/etc/apt/apt.conf.d/99mmdebstrap" "$1/etc/resolv.conf"; : > "$1/etc/machine-id"',
    'rm -rf "$1"/var/cache/apt/*.bin "$1"/var/lib/apt/lists/* "$1"/var/log/*.log',
    'rm -rf "$1"/var/cache/debconf/*-old "$1"/var/lib/dpkg/*-old',
)
"""Finishing touches, each run by a shell with the new root as `$1`."""


_QUERY = "dpkg-query -W -f 'package ${Package}_${Version}_${Architecture}\\n'"


def base_options(recipe: Recipe) -> tuple[str, ...]:
    """Return all that decides a base system, apart from what the mirror holds that day."""
    return (
        "--variant=apt",
        f"--include={','.join(recipe.packages)}",
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _UNUSED),
        "--dpkgopt=path-include=/usr/share/locale/locale.alias",
        f'--customize-hook=chroot "$1" {_QUERY} >&2',
        *(f"--customize-hook={step}" for step in _WORLD),
    )


def _command(options: list[str], sources: Sources) -> list[str]:
    """Return mmdebstrap's command line; the tar goes to its standard output."""
    # where apt knows no Debian it has no keys for it either; mmdebstrap finds them by gpg only
    keys = [] if sources.lines else [f"--keyring={_KEYRING}"]
    fixed = ("--format=tar", "--architectures=amd64", *keys)
    return ["mmdebstrap", *fixed, *options, sources.suite, "-", *sources.lines]


def _bootstrap(options: list[str], scratch: Path, said: Callable[[str], None]) -> Bootstrap:
    network = scratch / "network.conf"
    network.write_text(network_options())
    if network.stat().st_size:
        options = [*options, f"--aptopt={network}"]
    child = spawn(_command(options, host_sources()))
    versions: list[str] = []

    def line(text: str) -> None:
        if found := _PACKAGE.match(text):
            versions.append(found[1])
        elif stage := _STAGE.match(text):
            said(stage[1])

    return Bootstrap(child, Watch(child, BUILD_SECONDS, line), versions)
