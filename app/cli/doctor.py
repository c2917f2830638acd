"""`cloche doctor`: what this host has, what it lacks, and the exact command that mends it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from app.client import checks
from app.errors import EXIT_DONE, EXIT_HOST, AppError
from app.paths import Paths
from vm.errors import VMError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from app.cli.output import Output

GLYPHS: Final = {"ok": "✓", "warn": "!", "fail": "✗"}
MIN_PYTHON: Final = (3, 11)
COMFORTABLE: Final = 5 << 30
"""Free bytes below which sessions may fill the disk."""


class Finding(NamedTuple):
    """One thing that was looked at."""

    id: str
    status: Literal["ok", "warn", "fail"]
    message: str
    fix: str = ""


def doctor(_: argparse.Namespace, output: Output) -> int:
    """Look at everything; fails (5) when no session could start."""
    paths = Paths.from_environment()
    findings = [check(paths) for check in CHECKS]
    output.result(
        {"findings": [finding._asdict() for finding in findings]},
        lambda: _print(output, findings),
    )
    failed = any(finding.status == "fail" for finding in findings)
    return EXIT_HOST if failed else EXIT_DONE


def _print(output: Output, findings: list[Finding]) -> None:
    colours = {"ok": "green", "warn": "amber", "fail": "red"}
    for found in findings:
        glyph = output.painted(colours[found.status], GLYPHS[found.status])
        output.styled(f"{glyph} ", output.plain(found.message))
        if found.fix:
            output.line(f"    {found.fix}")


def _python(_: Paths) -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < MIN_PYTHON:
        return Finding("python", "fail", f"Python {version} is too old.", "Use Python 3.11+")
    return Finding("python", "ok", f"Python {version}")


def _qemu(_: Paths) -> Finding:
    from vm.machine import accel

    try:
        version = ".".join(map(str, asyncio.run(accel.qemu_version())))
    except VMError as error:
        return Finding("qemu", "fail", error.message, error.hint)
    return Finding("qemu", "ok", f"QEMU {version}")


def _program(
    program: str, package: str, status: Literal["warn", "fail"], why: str
) -> Callable[[Paths], Finding]:
    def check(_: Paths) -> Finding:
        from vm.image.tools import find  # looks into sbin, too, as those who run the program do

        found = find(program)
        if found is not None:
            return Finding(program, "ok", f"{program} is {found}")
        return Finding(
            program, status, f"{program} is missing: {why}.", f"sudo apt-get install {package}"
        )

    return check


def _first_process(paths: Paths) -> Finding:
    """Look for the guest's PID 1, which a wheel brings; a checkout needs what compiles it."""
    from vm.image import guest
    from vm.image.tools import require

    if guest.find_init(paths.store) is not None:
        return Finding("guest-init", "ok", "the guest's first process is compiled")
    try:
        require(*guest.COMPILERS)
    except VMError as error:
        return Finding("guest-init", "warn", error.message, error.hint)
    return Finding("guest-init", "ok", "the guest's first process can be compiled")


def _image(paths: Paths) -> Finding:
    try:
        image = checks.check_image(paths)
    except VMError as error:
        return Finding("image", "fail", error.message, error.hint)
    return Finding("image", "ok", f"image base {image.digest[:12]}, kernel {image.kernel_release}")


def _accelerator(paths: Paths) -> Finding:
    from vm.machine import accel

    try:
        image = checks.check_image(paths)
        paths.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        choice = asyncio.run(accel.choose(image.vmlinux, paths.cache))
    except VMError as error:
        return Finding("kvm", "warn", f"KVM was not tried: {error.message}", error.hint)
    if choice.accelerator == "kvm":
        return Finding("kvm", "ok", "guests run under KVM")
    fix = "" if os.path.exists("/dev/kvm") else "Use a host (or nested guest) with /dev/kvm"
    if os.path.exists("/dev/kvm") and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        fix = "sudo usermod -aG kvm $USER, then log in again"
    return Finding("kvm", "warn", choice.notice or "guests are emulated (TCG)", fix)


def _space(paths: Paths) -> Finding:
    try:
        checks.check_space(paths)
    except AppError as error:
        return Finding("disk", "fail", error.message, error.hint)
    folder = paths.state
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    text = f"{free >> 30} GiB free at {folder}"
    if free < COMFORTABLE:
        return Finding("disk", "warn", f"Only {text}.", "Free some space, or set XDG_STATE_HOME")
    return Finding("disk", "ok", text)


def _sockets(paths: Paths) -> Finding:
    try:
        checks.check_sockets(paths, "0" * 10)
    except AppError as error:
        return Finding("sockets", "fail", error.message, error.hint)
    return Finding("sockets", "ok", f"sockets at {paths.runtime}")


def _sandbox(_: Paths) -> Finding:
    program = shutil.which("bwrap")
    if program is None:
        return Finding(
            "sandbox",
            "warn",
            "bwrap is missing: terminals are shown in a weaker sandbox.",
            "sudo apt-get install bubblewrap",
        )
    arguments = [program, "--ro-bind", "/", "/", "--unshare-all", "--", "/bin/true"]
    done = subprocess.run(arguments, capture_output=True, timeout=10, check=False)
    if done.returncode == 0:
        return Finding("sandbox", "ok", "bubblewrap and user namespaces work")
    said = done.stderr.decode(errors="replace").strip()[-120:]
    return Finding(
        "sandbox",
        "warn",
        f"bubblewrap does not work here: {said}",
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    )


def _terminal(_: Paths) -> Finding:
    term = os.environ.get("TERM", "")
    if not sys.stdout.isatty():
        return Finding("terminal", "ok", "this is no terminal; the workstation needs one")
    if term in ("", "dumb"):
        return Finding("terminal", "warn", f"TERM is '{term}'.", "Use a terminal with colours")
    colour = "24-bit colour" if os.environ.get("COLORTERM") else "256 colours at most"
    return Finding("terminal", "ok", f"{term}, {colour}")


CHECKS: Final = (
    _python,
    _qemu,
    _program("qemu-img", "qemu-utils", "fail", "it makes the guest's disks"),
    _accelerator,
    _program("mksquashfs", "squashfs-tools", "fail", "it makes snapshots"),
    _program("unsquashfs", "squashfs-tools", "fail", "it reads snapshots"),
    _program("mkfs.ext4", "e2fsprogs", "fail", "it makes the guest's disks"),
    _program("mmdebstrap", "mmdebstrap", "warn", "images cannot be built"),
    _first_process,
    _image,
    _space,
    _sockets,
    _sandbox,
    _terminal,
)
