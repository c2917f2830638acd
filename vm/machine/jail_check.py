"""Whether QEMU can be locked up on this host: a tiny jail is really made, once a boot."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from vm.errors import HostLacks
from vm.machine import jail
from vm.machine.spec import BadSpec
from vm.text import printable

Wish = Literal["auto", "on", "off"]
WISHES: Final[tuple[Wish, ...]] = ("auto", "on", "off")
VARIABLE: Final = "CLOCHE_JAIL"

CHECK_S: Final = 15.0
"""Longest that the tiny jail may take; it takes 0.1 s."""

PROVEN: Final = "jail.proven"
OPEN: Final = "QEMU runs without its jail, "
"""How every notice about a missing jail begins."""

APPARMOR: Final = (
    r"printf 'abi <abi/4.0>,\ninclude <tunables/global>\n"
    r"profile bwrap /usr/bin/bwrap flags=(unconfined) {\n  userns,\n}\n' "
    "| sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap"
)
"""Ubuntu 24.04 and later let no program make user namespaces that has no profile for it."""

SHOW: Final = "bwrap --unshare-all --ro-bind / / true  # says what is forbidden here"

SWITCHES: Final[tuple[tuple[str, str, str, str], ...]] = (
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor keeps bubblewrap from making user namespaces",
        APPARMOR,
    ),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are switched off",
        "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "user/max_user_namespaces",
        "0",
        "user namespaces are switched off",
        "sudo sysctl -w user.max_user_namespaces=10000",
    ),
)
"""Below /proc/sys: the value that forbids, what it means, and the command that mends it."""

_SYSTEM: Final = ("/usr/lib", "/usr/lib64", "/usr/share/qemu", "/usr/share/seabios")
_MERGED: Final = ("/lib", "/lib64")
_CACHE: Final = Path("/etc/ld.so.cache")


class NoJail(HostLacks):
    """A jail was demanded, and this host cannot make one."""

    code = "no-jail"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found: a jail, or why there is none (half a sentence) and what mends it."""

    jail: jail.Jail | None
    why: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The jail to use; `notice` is one sentence for the user, empty when there is none to say."""

    jail: jail.Jail | None
    notice: str = ""


async def choose(wish: str, cache: Path, binary: str = "qemu-system-x86_64") -> Choice:
    """Return the jail for machines under the user's wish; the variable CLOCHE_JAIL wins.

    `cache` is a folder for the proof, which holds until the host is booted again or bubblewrap or
    QEMU is another one. A failure is never remembered: whoever mended it must not wait.
    Raises NoJail for `on` without a jail, BadSpec for an unknown wish.
    """
    wish = os.environ.get(VARIABLE) or wish
    if wish not in WISHES:
        raise BadSpec(f"The jail is {wish!r}.", f"Set {VARIABLE} to {', '.join(WISHES)}.")
    if wish == "off":
        return Choice(None)
    verdict = await asyncio.to_thread(proven, cache, binary)
    if verdict.jail is not None:
        return Choice(verdict.jail)
    if wish == "on":
        raise NoJail(
            f"QEMU cannot be locked up, because {verdict.why}, and `jail: on` demands it.",
            verdict.fix,
        )
    return Choice(None, f"{OPEN}because {verdict.why}. Run: {verdict.fix}")


def proven(cache: Path, binary: str = "qemu-system-x86_64") -> Verdict:
    """Return what `check` finds, without asking again what was proven since the host booted."""
    found, path = _tools(), cache / PROVEN
    key = _key(found, binary)
    if found is not None and key and _kept(path) == key:
        return Verdict(found)
    verdict = check(binary)
    if verdict.jail is not None and key:
        _keep(path, key)
    return verdict


def check(binary: str = "qemu-system-x86_64") -> Verdict:
    """Make a jail and run `QEMU --version` in it. Never raises; takes about 0.1 s."""
    found = _tools()
    if found is None:
        return Verdict(None, *_missing())
    program = shutil.which(binary)
    if program is None:
        return Verdict(None, f"{binary} is not installed", "sudo apt-get install qemu-system-x86")
    said = _try(found, program)
    return Verdict(found) if said is None else Verdict(None, *_reason(said))


def _tools() -> jail.Jail | None:
    """Return the programs that make a jail, proven or not; None when one is missing."""
    bwrap = shutil.which("bwrap")
    setpriv = shutil.which("setpriv") if os.geteuid() == 0 else ""
    return jail.Jail(bwrap, setpriv) if bwrap and setpriv is not None else None


def _missing() -> tuple[str, str]:
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed", "sudo apt-get install bubblewrap"
    return "setpriv is not installed", "sudo apt-get install util-linux"


def _try(found: jail.Jail, program: str) -> str | None:
    """Run the tiny jail; None when it works, else what was said."""
    held, links = surroundings(program)
    tenant = jail.Lodger(jail.IDS[1]) if found.setpriv else None
    inmate = (os.path.realpath(program), "--version")
    words = jail.command(found, inmate, held, links=links, tenant=tenant, say_pid=False)
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            timeout=CHECK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0 and b"version" in done.stdout:
        return None
    return done.stderr.decode(errors="replace").strip() or f"it ended with {done.returncode}"


def _reason(said: str) -> tuple[str, str]:
    if os.geteuid() != 0:
        for name, forbidding, why, fix in SWITCHES:
            with contextlib.suppress(OSError):  # not every kernel has each of them
                if Path("/proc/sys", name).read_text().strip() == forbidding:
                    return why, fix
    last = printable(said.splitlines()[-1])[:160]
    return f"bubblewrap does not work here ({last})", SHOW


def surroundings(program: str) -> tuple[list[jail.File], list[tuple[str, str]]]:
    """Return QEMU itself, its libraries and firmware, and the links that lead to them."""
    real = Path(os.path.realpath(program))
    system = [Path(name) for name in _SYSTEM]
    prefix = real.parent.parent
    if real.parent.name == "bin" and prefix != Path("/usr") and not _holds_home(prefix):
        system += [prefix / "lib", prefix / "lib64", prefix / "share" / "qemu"]  # built by oneself
    links: list[tuple[str, str]] = []
    for name in _MERGED:
        if os.path.islink(name):
            links.append((name, os.readlink(name)))
        else:
            system.append(Path(name))
    held = [real, *(folder for folder in system if folder.is_dir())]
    if _CACHE.is_file():
        held.append(_CACHE)
    return [jail.File(path, path) for path in held], links


def _holds_home(folder: Path) -> bool:
    return folder in (Path.home(), *Path.home().parents)


def _key(found: jail.Jail | None, binary: str) -> str:
    """Return what the proof depends on, empty when it cannot be known."""
    program = shutil.which(binary)
    if found is None or program is None:
        return ""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        parts = [boot, str(os.geteuid())]
        for path in (found.bwrap, program):
            stat = os.stat(path)
            parts.append(f"{path} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns}")
    except OSError:
        return ""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _kept(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(64).decode("ascii", "replace")
    except OSError:
        return ""


def _keep(path: Path, key: str) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    # a proof that cannot be kept is made again next time
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.write_text(key)
        draft.replace(path)
