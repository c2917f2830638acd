"""Findings about hosts that nobody has: each trouble has its status and its exact fix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.cli import doctor
from app.doctor import host_checks, machine_checks, terminal_checks
from app.doctor.findings import Finding, worst
from app.doctor.host import (
    Acceleration,
    Clock,
    Fault,
    Jail,
    Namespaces,
    Panes,
    Space,
    Terminal,
)
from app.doctor.look_terminal import name_of

WHY = "/dev/kvm is there but no guest runs under it (QEMU crashed with signal 6)"
NO_IMAGE = Fault("The image base is not built.", "Run: cloche image build base")
ROOM = Space("disk-state", "sessions", "/s", "XDG_STATE_HOME", 40 << 30)
DENIED = "bwrap: setting up uid map: Permission denied"

Expected = tuple[str, str, str]
"""Status, a part of the message, a part of the fix."""


def seen(found: Finding, expected: Expected) -> None:
    """Compare; and whatever is not well has a fix, and what is well needs none."""
    status, message, fix = expected
    assert found.status == status, found
    assert message in found.message
    assert fix in found.fix
    assert bool(found.fix) == (found.status != "ok")
    assert found.message.endswith((".", "on", "truecolor")), found.message


ACCELERATORS: dict[str, tuple[Acceleration, Expected]] = {
    "works": (Acceleration(), ("ok", "Guests run under KVM", "")),
    "there, but does not work": (
        Acceleration(works=False, why=WHY),
        ("warn", f"Guests are emulated (TCG) and therefore slow, because {WHY}.", "cloche doctor"),
    ),
    "no permission": (
        Acceleration(usable=False, works=False, why="/dev/kvm cannot be used by you"),
        ("warn", "cannot be used by you", "sudo usermod -aG kvm $USER"),
    ),
    "kept from the jail": (
        Acceleration(withheld=True, works=False, why="/dev/kvm is root's alone"),
        ("warn", "root's alone", "sudo groupadd -f kvm && sudo chgrp kvm /dev/kvm"),
    ),
    "no module": (
        Acceleration(device=False, usable=False, works=False, why="this host has no /dev/kvm"),
        ("warn", "this host has no /dev/kvm", "sudo modprobe kvm_intel"),
    ),
    "no module on AMD": (
        Acceleration(device=False, works=False, virtualisation="svm", why="none"),
        ("warn", "because none", "sudo modprobe kvm_amd"),
    ),
    "no virtualisation": (
        Acceleration(device=False, works=False, virtualisation="", why="none"),
        ("warn", "because none", "nested virtualisation"),
    ),
    "not tried": (
        Acceleration(works=False, untried=NO_IMAGE),
        ("warn", "was not tried. The image base", "Run: cloche image build base"),
    ),
    "wished against all odds": (
        Acceleration(works=False, why=WHY, wish="kvm", chosen_by="variable"),
        ("fail", f"CLOCHE_ACCEL asks for KVM, but {WHY}.", "unset CLOCHE_ACCEL"),
    ),
    "configured against all odds": (
        Acceleration(works=False, why=WHY, wish="kvm", chosen_by="config"),
        ("fail", "The configuration (accel) asks for KVM, but", "accel: auto"),
    ),
    "wished": (Acceleration(wish="kvm", chosen_by="config"), ("ok", "asks for KVM.", "")),
    "wished and not tried": (
        Acceleration(works=False, untried=NO_IMAGE, wish="kvm", chosen_by="variable"),
        ("ok", "CLOCHE_ACCEL asks for KVM.", ""),
    ),
    "slow by wish": (
        Acceleration(wish="tcg", chosen_by="variable"),
        ("warn", "KVM works here", "unset CLOCHE_ACCEL"),
    ),
    "slow by wish and need": (
        Acceleration(works=False, why=WHY, wish="tcg", chosen_by="config"),
        ("ok", "asks for emulation (TCG).", ""),
    ),
}


@pytest.mark.parametrize("name", ACCELERATORS)
def test_accelerators(name: str) -> None:
    host, expected = ACCELERATORS[name]
    seen(machine_checks.accelerator(host), expected)


def test_programs_read_the_accelerator_from_its_facts() -> None:
    found = machine_checks.accelerator(Acceleration(works=False, why=WHY))
    assert found.as_json()["facts"] == {
        "accelerator": "tcg",
        "chosen_by": "probe",
        "kvm_device": True,
        "kvm_usable": True,
        "kvm_works": False,
        "why": WHY,
    }
    untried = machine_checks.accelerator(Acceleration(works=False, untried=NO_IMAGE))
    assert (untried.facts["accelerator"], untried.facts["kvm_works"]) == ("tcg", None)


def test_qemu() -> None:
    seen(machine_checks.qemu((7, 2, 22)), ("ok", "QEMU 7.2.22 is installed", ""))
    seen(machine_checks.qemu((10, 0, 13)), ("ok", "QEMU 10.0.13 is installed", ""))
    seen(machine_checks.qemu((11, 0, 0)), ("ok", "newer than any that Cloche was tried with", ""))
    fault = Fault("QEMU 6.2 is too old.", "Upgrade")
    seen(machine_checks.qemu(fault), ("fail", "too old", "Upgrade"))


SPACES: dict[str, tuple[Space, Expected]] = {
    "plenty": (ROOM, ("ok", "40 GiB are free for sessions at /s", "")),
    "little": (replace(ROOM, free=3 << 30), ("warn", "Only 3 GiB", "export XDG_STATE_HOME=")),
    "none": (replace(ROOM, free=100 << 20), ("fail", "Only 100 MiB", "export XDG_STATE_HOME=")),
    "no files": (replace(ROOM, files=0), ("fail", "No more files", "Free some space at /s")),
    "uncounted files": (replace(ROOM, files=-1), ("ok", "40 GiB", "")),
}


@pytest.mark.parametrize("name", SPACES)
def test_room(name: str) -> None:
    host, expected = SPACES[name]
    seen(host_checks.space(host), expected)


@pytest.mark.parametrize(
    ("able", "words"), [(True, "can share"), (False, "cannot share"), (None, "could not be tried")]
)
def test_reflink_is_told_and_no_trouble(able: bool | None, words: str) -> None:
    found = host_checks.reflink(replace(ROOM, reflink=able))
    seen(found, ("ok", words, ""))
    assert found.facts["reflink"] is able


def test_memory() -> None:
    seen(host_checks.memory(8 << 30, 2 << 30), ("ok", "8192 MiB of memory are available", ""))
    seen(host_checks.memory(1 << 30, 2 << 30), ("warn", "Only 1024 MiB", "config.yaml"))
    seen(host_checks.memory(0, 2 << 30), ("ok", "does not tell", ""))


NAMESPACES: dict[str, tuple[Namespaces, Expected]] = {
    "works": (Namespaces(), ("ok", "user namespaces work", "")),
    "works in spite of AppArmor": (Namespaces(apparmor=1), ("ok", "work", "")),
    "missing": (Namespaces(bwrap=""), ("warn", "missing", "apt-get install bubblewrap")),
    "turned off": (
        Namespaces(most=0, trial=DENIED),
        ("warn", "turned off", "user.max_user_namespaces=15000 | sudo tee"),
    ),
    "hardened Debian": (
        Namespaces(debian=0, trial=DENIED),
        ("warn", "to root", "kernel.unprivileged_userns_clone=1 | sudo tee"),
    ),
    "Ubuntu": (
        Namespaces(apparmor=1, trial=DENIED),
        ("warn", "AppArmor", "sudo apparmor_parser -r /etc/apparmor.d/bwrap"),
    ),
    "unknown": (Namespaces(trial=DENIED), ("warn", f"{DENIED}.", "bwrap --ro-bind / /")),
}


@pytest.mark.parametrize("name", NAMESPACES)
def test_user_namespaces(name: str) -> None:
    host, expected = NAMESPACES[name]
    found = host_checks.namespaces(host)
    seen(found, expected)
    assert found.facts["works"] == (found.status == "ok")


def test_jail() -> None:
    seen(host_checks.jail(Jail()), ("ok", "QEMU runs in a jail.", ""))
    seen(host_checks.jail(Jail("on")), ("ok", "QEMU runs in a jail.", ""))
    seen(host_checks.jail(Jail("off")), ("warn", "as it was asked for", "jail: auto"))
    missing = Jail("auto", "bubblewrap is not installed", "sudo apt-get install bubblewrap")
    expected = ("warn", "because bubblewrap is not installed", "sudo apt-get install bubblewrap")
    seen(host_checks.jail(missing), expected)
    expected = ("fail", "and `jail: on` demands it", "sudo apt-get install bubblewrap")
    seen(host_checks.jail(replace(missing, wish="on")), expected)


def test_panes() -> None:
    seen(host_checks.panes(Panes(landlock=5)), ("ok", "seccomp and Landlock 5", ""))
    seen(host_checks.panes(Panes(landlock=0)), ("warn", "seccomp alone", "lsm="))
    seen(host_checks.panes(Panes(seccomp=False)), ("fail", "no seccomp", "CONFIG_SECCOMP"))
    seen(host_checks.panes(Panes(filter=False)), ("fail", "processor", "x86-64"))


def test_clock() -> None:
    seen(host_checks.clock(Clock()), ("ok", "is synchronised (clock source tsc)", ""))
    seen(host_checks.clock(Clock(synchronised=False)), ("ok", "not synchronised by this host", ""))
    seen(host_checks.clock(Clock(now=0.0)), ("warn", "years behind", "timedatectl set-ntp true"))
    seen(host_checks.clock(Clock(source="hpet")), ("warn", "slow to read", "dmesg"))
    seen(host_checks.clock(Clock(source="")), ("ok", "The host's time is synchronised.", ""))


TERMINALS: dict[str, tuple[Terminal, str, Expected]] = {
    "colours": (Terminal(), "colours", ("ok", "24-bit colours", "")),
    "no depth told": (Terminal(colorterm=""), "colours", ("ok", "COLORTERM=truecolor", "")),
    "sixteen": (Terminal(term="xterm", colorterm=""), "colours", ("warn", "sixteen", "TERM=")),
    "dumb": (Terminal(term="dumb"), "colours", ("warn", "nothing can be drawn", "TERM=")),
    "no colour": (Terminal(no_colour=True), "colours", ("ok", "NO_COLOR is set", "")),
    "large": (Terminal(), "size", ("ok", "120 columns and 40 rows", "")),
    "small": (Terminal(columns=79), "size", ("warn", "tight", "80x24")),
    "low": (Terminal(rows=23), "size", ("warn", "tight", "80x24")),
    "unicode": (Terminal(encoding="utf8"), "unicode", ("ok", "UTF-8", "")),
    "C": (Terminal(encoding="ANSI_X3.4-1968"), "unicode", ("warn", "plain signs", "LC_ALL=")),
    "kitty": (Terminal(program="kitty"), "keys", ("ok", "has kitty's keyboard", "")),
    "xterm": (Terminal(), "keys", ("ok", "may merge some keys", "")),
    "tmux": (Terminal(program="kitty", multiplexer="tmux"), "keys", ("ok", "extended-keys", "")),
    "screen": (Terminal(multiplexer="screen"), "keys", ("ok", "screen merges", "")),
    "copies": (Terminal(program="foot"), "clipboard", ("ok", "reach your clipboard (OSC", "")),
    "maybe": (Terminal(), "clipboard", ("ok", "if the terminal", "")),
    "in tmux": (Terminal(multiplexer="tmux"), "clipboard", ("ok", "set-clipboard on", "")),
    "in screen": (Terminal(multiplexer="screen"), "clipboard", ("warn", "screen", "tmux")),
    "refused": (Terminal(program="apple_terminal"), "clipboard", ("warn", "OSC 52", "kitty")),
}


@pytest.mark.parametrize("name", TERMINALS)
def test_terminals(name: str) -> None:
    host, subject, expected = TERMINALS[name]
    (found,) = [one for one in terminal_checks.terminal(host) if one.id == subject]
    seen(found, expected)


def test_every_terminal_has_the_same_findings() -> None:
    for host in (Terminal(), Terminal(there=False), Terminal(term="", columns=0, encoding="")):
        assert tuple(one.id for one in terminal_checks.terminal(host)) == terminal_checks.IDS


def test_terminals_are_known_by_their_environment() -> None:
    assert name_of({"TERM": "xterm-kitty"}) == "kitty"
    assert name_of({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}) == "wezterm"
    assert name_of({"TERM": "xterm-256color", "VTE_VERSION": "7002"}) == "vte"
    assert name_of({"TERM": "tmux-256color", "TERM_PROGRAM": "tmux"}) == ""
    assert name_of({}) == ""


def test_programs() -> None:
    wanted = doctor.Program("mksquashfs", "squashfs-tools", "fail", "it makes snapshots")
    seen(doctor.program(wanted, "/usr/bin/mksquashfs"), ("ok", "is /usr/bin/mksquashfs", ""))
    expected = ("fail", "missing: it makes", "sudo apt-get install squashfs-tools")
    seen(doctor.program(wanted, None), expected)


def test_the_worst_counts() -> None:
    ok, warn, fail = (Finding("x", status, "") for status in ("ok", "warn", "fail"))
    assert worst([]) == "ok"
    assert worst([ok, warn, ok]) == "warn"
    assert worst([warn, fail, ok]) == "fail"
