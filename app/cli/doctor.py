"""`cloche doctor`: what this host has, what it lacks, and the exact command that mends it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from app.config import Defaults, load_config
from app.doctor import host_checks, look, look_terminal, machine_checks, terminal_checks
from app.doctor.findings import Finding, worst
from app.doctor.host import Fault
from app.egress.rules_file import load_rules
from app.errors import EXIT_DONE, EXIT_HOST, AppError, app_error
from app.paths import Paths
from app.services.recipes import load_recipes
from vm.errors import VMError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from app.cli.output import Output
    from app.doctor.findings import Facts

GLYPHS: Final = {"ok": "✓", "warn": "!", "fail": "✗"}
COLOURS: Final = {"ok": "green", "warn": "amber", "fail": "red"}
MIN_PYTHON: Final = (3, 11)


class Program(NamedTuple):
    """A program that others of ours run: its package, and what is missing without it."""

    name: str
    package: str
    status: Literal["warn", "fail"]
    why: str


PROGRAMS: Final = (
    Program("qemu-img", "qemu-utils", "fail", "it makes the guest's disks"),
    Program("mksquashfs", "squashfs-tools", "fail", "it makes snapshots"),
    Program("unsquashfs", "squashfs-tools", "fail", "it reads snapshots"),
    Program("prlimit", "util-linux", "fail", "it bounds what QEMU takes of this host"),
    Program("mkfs.ext4", "e2fsprogs", "fail", "it makes the guest's disks"),
    Program("mmdebstrap", "mmdebstrap", "warn", "images cannot be built"),
)


def doctor(_: argparse.Namespace, output: Output) -> int:
    """Look at everything; fails (5) when no session could start."""
    findings = tuple(examine(Paths.from_environment()))
    status = worst(findings)
    output.result(
        {"status": status, "findings": [found.as_json() for found in findings]},
        lambda: _print(output, findings),
    )
    return EXIT_HOST if status == "fail" else EXIT_DONE


def _print(output: Output, findings: tuple[Finding, ...]) -> None:
    said = ""
    for found in findings:
        if found.message == said:
            continue  # what is no terminal is so in every respect
        said = found.message
        glyph = output.painted(COLOURS[found.status], GLYPHS[found.status])
        output.styled(f"{glyph} ", output.plain(found.message))
        if found.fix:
            output.line(f"    {found.fix}")


def examine(paths: Paths) -> Iterator[Finding]:
    """Look at this host and give all findings, always the same ids in the same order."""
    yield python(look.python(), sys.version_info[:2])
    config, defaults = _configuration(paths)
    yield config
    yield machine_checks.qemu(look.qemu())
    yield _accelerator(paths, defaults.accel)
    for wanted in PROGRAMS:
        yield program(wanted, look.free_program(wanted.name))
    yield guest_init(look.guest_init(paths))
    yield image(look.image(paths))
    state = look.space("disk-state", "sessions", "XDG_STATE_HOME", paths.state)
    yield host_checks.space(state)
    yield host_checks.space(look.space("disk-data", "images", "XDG_DATA_HOME", paths.data))
    yield host_checks.reflink(state)
    yield host_checks.memory(look.available_memory(), defaults.memory << 20)
    yield sockets(look.sockets(paths), str(paths.runtime))
    yield host_checks.namespaces(look.namespaces())
    yield _jail(defaults.jail)
    yield host_checks.panes(look.panes())
    yield host_checks.clock(look.clock())
    yield from terminal_checks.terminal(look_terminal.terminal())


def _configuration(paths: Paths) -> tuple[Finding, Defaults]:
    """Read the user's files; where config.yaml cannot be read, the usual defaults hold."""
    try:
        defaults = load_config(paths.config).defaults
    except (AppError, OSError) as error:
        return _misread(paths, error, "fail"), Defaults()
    try:
        load_rules(paths.config)
    except (AppError, OSError) as error:
        return _misread(paths, error, "fail"), defaults
    try:
        load_recipes(paths.config)
    except (AppError, OSError) as error:  # sessions start all the same
        return _misread(paths, error, "warn"), defaults
    message = f"The configuration in {paths.config} is well-formed."
    return Finding("config", "ok", message, facts={"folder": str(paths.config)}), defaults


def _misread(paths: Paths, error: Exception, status: Literal["warn", "fail"]) -> Finding:
    told = app_error(error)
    message, hint = (told.message, told.hint) if told else (str(error), "")
    fix = hint if isinstance(error, AppError) and hint else f"Look: ls -l '{paths.config}'"
    return Finding("config", status, message, fix)


def _accelerator(paths: Paths, wish: str) -> Finding:
    try:
        return machine_checks.accelerator(look.acceleration(paths, wish))
    except VMError as error:
        return Finding("accelerator", "fail", error.message, error.hint)


def _jail(wish: str) -> Finding:
    try:
        return host_checks.jail(look.jail(wish))
    except VMError as error:
        return Finding("jail", "fail", error.message, error.hint)


def python(version: str, release: tuple[int, ...]) -> Finding:
    """Say whether this Python will do."""
    facts: Facts = {"version": version}
    if release < MIN_PYTHON:
        return Finding("python", "fail", f"Python {version} is too old.", "Use Python 3.11+", facts)
    return Finding("python", "ok", f"Python {version} runs this.", facts=facts)


def program(wanted: Program, path: str | None) -> Finding:
    """Say whether a program is installed."""
    facts: Facts = {"path": path}
    if path is not None:
        return Finding(wanted.name, "ok", f"{wanted.name} is {path}.", facts=facts)
    message = f"{wanted.name} is missing: {wanted.why}."
    fix = f"sudo apt-get install {wanted.package}"
    return Finding(wanted.name, wanted.status, message, fix, facts)


def guest_init(seen: bool | Fault) -> Finding:
    """Say whether there is the guest's PID 1, which a wheel brings and a checkout compiles."""
    if isinstance(seen, Fault):
        return Finding("guest-init", "warn", seen.message, seen.hint)
    state = "is compiled" if seen else "can be compiled"
    return Finding("guest-init", "ok", f"The guest's first process {state}.")


def image(seen: tuple[str, str] | Fault) -> Finding:
    """Say whether there is something to boot."""
    if isinstance(seen, Fault):
        return Finding("image", "fail", seen.message, seen.hint)
    digest, kernel = seen
    message = f"The image base is {digest[:12]} with the kernel {kernel}."
    return Finding("image", "ok", message, facts={"digest": digest, "kernel": kernel})


def sockets(seen: Fault | None, folder: str) -> Finding:
    """Say whether the sockets of a session have names that Linux allows."""
    if seen is not None:
        return Finding("sockets", "fail", seen.message, seen.hint, {"folder": folder})
    return Finding("sockets", "ok", f"Sockets are made in {folder}.", facts={"folder": folder})
