"""Findings about the host around the machines: room, namespaces, panes, clock, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.doctor.findings import Finding
from vm.machine.jail_check import APPARMOR

if TYPE_CHECKING:
    from app.doctor.findings import Facts
    from app.doctor.host import Clock, Jail, Namespaces, Panes, Space

MIN_FREE: Final = 512 << 20
"""Bytes without which no session starts (`app.client.checks.MIN_FREE`)."""

COMFORTABLE: Final = 5 << 30
"""Bytes below which sessions may fill the disk."""

NOT_BEFORE: Final = 1_764_547_200.0
"""2025-12-01: a host whose clock says less was never set."""


def space(seen: Space) -> Finding:
    """Say whether there is room in a folder."""
    facts: Facts = {"folder": seen.folder, "free": seen.free, "reflink": seen.reflink}
    fix = f"Free some space at {seen.folder}, or: export {seen.variable}=FOLDER_ON_ANOTHER_DISK"
    if seen.files == 0:
        message = f"No more files can be made for {seen.holds} at {seen.folder}."
        return Finding(seen.id, "fail", message, fix, facts)
    amount = f"{seen.free >> 30} GiB" if seen.free >= 1 << 30 else f"{seen.free >> 20} MiB"
    message = f"{amount} are free for {seen.holds} at {seen.folder}."
    if seen.free < MIN_FREE:
        return Finding(seen.id, "fail", f"Only {message}", fix, facts)
    if seen.free < COMFORTABLE:
        return Finding(seen.id, "warn", f"Only {message}", fix, facts)
    return Finding(seen.id, "ok", message, facts=facts)


def reflink(seen: Space) -> Finding:
    """Say whether copies of large files are free."""
    facts: Facts = {"folder": seen.folder, "reflink": seen.reflink}
    if seen.reflink is None:
        message = f"Whether files can share blocks at {seen.folder} could not be tried."
    elif seen.reflink:
        message = f"Files at {seen.folder} can share blocks (reflink)."
    else:
        message = f"Files at {seen.folder} cannot share blocks (reflink): copies take their room."
    return Finding("reflink", "ok", message, facts=facts)


def memory(available: int, wanted: int) -> Finding:
    """Say whether a session of the configured size fits in; both in bytes, 0 for unknown."""
    facts: Facts = {"available": available, "session": wanted}
    text = f"{available >> 20} MiB of memory are available; a session may take {wanted >> 20}."
    if not available:
        return Finding("memory", "ok", "The host does not tell how much memory it has.")
    if available < wanted:
        fix = "End some programs, or set defaults: {memory: MIB} in config.yaml"
        return Finding("memory", "warn", f"Only {text}", fix, facts)
    return Finding("memory", "ok", text, facts=facts)


def namespaces(seen: Namespaces) -> Finding:
    """Say whether bubblewrap can jail a program here, and which setting forbids it."""
    facts: Facts = {
        "bwrap": seen.bwrap,
        "works": bool(seen.bwrap) and not seen.trial,
        "max_user_namespaces": seen.most,
        "unprivileged_userns_clone": seen.debian,
        "apparmor_restrict_unprivileged_userns": seen.apparmor,
    }
    if not seen.bwrap:
        message = "bubblewrap is missing, which makes the jail around QEMU."
        return Finding("userns", "warn", message, "sudo apt-get install bubblewrap", facts)
    if not seen.trial:
        return Finding("userns", "ok", "bubblewrap and user namespaces work.", facts=facts)
    why, fix = _forbidden(seen)
    return Finding("userns", "warn", f"bubblewrap does not work here: {why}.", fix, facts)


def _forbidden(seen: Namespaces) -> tuple[str, str]:
    """Return what stands in the way and what removes it, the most certain first."""
    if seen.most == 0:
        return "user namespaces are turned off", _setting("user.max_user_namespaces=15000")
    if seen.debian == 0:
        return (
            "the kernel keeps user namespaces to root",
            _setting("kernel.unprivileged_userns_clone=1"),
        )
    if seen.apparmor:
        return "AppArmor keeps user namespaces to programs that have a profile for it", APPARMOR
    trial = "bwrap --ro-bind / / --unshare-all -- /bin/true"
    return seen.trial.rstrip("."), f"See what it says as yourself: {trial}"


def _setting(line: str) -> str:
    return f"echo {line} | sudo tee /etc/sysctl.d/60-cloche.conf && sudo sysctl --system"


def jail(seen: Jail) -> Finding:
    """Say whether QEMU is locked up, and what the user asked for."""
    facts: Facts = {"wish": seen.wish, "works": not seen.why, "why": seen.why}
    if seen.wish == "off":
        message = "QEMU runs without its jail, as it was asked for."
        fix = "Set machine: {jail: auto} in config.yaml and unset CLOCHE_JAIL"
        return Finding("jail", "warn", message, fix, facts)
    if not seen.why:
        return Finding("jail", "ok", "QEMU runs in a jail.", facts=facts)
    if seen.wish == "on":
        message = f"QEMU cannot be locked up, because {seen.why}, and `jail: on` demands it."
        return Finding("jail", "fail", message, seen.fix, facts)
    message = f"QEMU runs without its jail, because {seen.why}."
    return Finding("jail", "warn", message, seen.fix, facts)


def panes(seen: Panes) -> Finding:
    """Say how strongly the programs that show an agent's terminal are confined."""
    facts: Facts = {"seccomp": seen.seccomp and seen.filter, "landlock": seen.landlock}
    if not seen.filter:
        message = "Terminal panes cannot open: there is no seccomp filter for this processor."
        return Finding("panes", "fail", message, "Use a Linux host with x86-64 or arm64", facts)
    if not seen.seccomp:
        message = "Terminal panes cannot open: this kernel has no seccomp."
        return Finding("panes", "fail", message, "Use a kernel with CONFIG_SECCOMP_FILTER", facts)
    if not seen.landlock:
        message = "Terminal panes are confined by seccomp alone: this kernel has no Landlock."
        fix = "Use Linux 5.13 or later, with landlock in its lsm= list"
        return Finding("panes", "warn", message, fix, facts)
    message = f"Terminal panes are confined by seccomp and Landlock {seen.landlock}."
    return Finding("panes", "ok", message, facts=facts)


def clock(seen: Clock) -> Finding:
    """Say whether the host's time can be right; guests get theirs from it."""
    facts: Facts = {
        "source": seen.source,
        "synchronised": seen.synchronised,
        "tsc_khz": seen.tsc_khz,
    }
    if seen.now < NOT_BEFORE:
        message = "The host's clock is years behind, and guests take their time from it."
        return Finding("clock", "warn", message, "sudo timedatectl set-ntp true", facts)
    if seen.source in ("jiffies", "refined-jiffies", "acpi_pm", "hpet", "pit"):
        message = f"The host's clock source ({seen.source}) is slow to read; guests feel it."
        fix = "See why the kernel left the TSC: sudo dmesg | grep -i -e tsc -e clocksource"
        return Finding("clock", "warn", message, fix, facts)
    state = "synchronised" if seen.synchronised else "not synchronised by this host itself"
    source = f" (clock source {seen.source})" if seen.source else ""
    return Finding("clock", "ok", f"The host's time is {state}{source}.", facts=facts)
