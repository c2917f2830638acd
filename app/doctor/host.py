"""A host as plain data: what was seen, and nothing about what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Chooser = Literal["probe", "config", "variable"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why something could not be found out, and what helps."""

    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Acceleration:
    """What is known about KVM, and who decides.

    `works` and `why` are the probe's verdict; with `untried` there is none. `wish` is what
    `CLOCHE_ACCEL` or the configuration says, empty when the probe decides.
    """

    device: bool = True
    usable: bool = True
    withheld: bool = False
    """Usable by us, but not by QEMU's own user in its jail."""
    virtualisation: str = "vmx"
    """The processor's flag: vmx (Intel), svm (AMD), or empty."""
    works: bool = True
    why: str = ""
    untried: Fault | None = None
    wish: str = ""
    chosen_by: Chooser = "probe"


@dataclass(frozen=True, slots=True)
class Space:
    """Room in one of our folders; `holds` says what it is for, `variable` moves it."""

    id: str
    holds: str
    folder: str
    variable: str
    free: int
    """Bytes."""
    files: int = 1 << 20
    """Files that can still be made; 0 means none, negative that the system does not count."""
    reflink: bool | None = None
    """Whether two files can share their blocks; None where it could not be tried."""


@dataclass(frozen=True, slots=True)
class Namespaces:
    """What the kernel's settings say about user namespaces, and what bubblewrap said.

    A setting is None where this kernel does not have it.
    """

    most: int | None = 15000
    """user.max_user_namespaces."""
    debian: int | None = None
    """kernel.unprivileged_userns_clone."""
    apparmor: int | None = None
    """kernel.apparmor_restrict_unprivileged_userns."""
    bwrap: str = "/usr/bin/bwrap"
    """Where the program is, empty without."""
    trial: str = ""
    """What bubblewrap complained of when it was tried, empty when it worked."""


@dataclass(frozen=True, slots=True)
class Jail:
    """Whether QEMU is locked up when a machine starts, and what the user wants of it."""

    wish: Literal["auto", "on", "off"] = "auto"
    why: str = ""
    """Half a sentence on why it cannot be, empty when it can."""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Terminal:
    """The terminal that this command runs in, as its environment describes it."""

    there: bool = True
    term: str = "xterm-256color"
    colorterm: str = "truecolor"
    no_colour: bool = False
    columns: int = 120
    rows: int = 40
    encoding: str = "UTF-8"
    program: str = ""
    """The terminal's own name in lower case, empty when it does not say."""
    multiplexer: Literal["", "tmux", "screen"] = ""
    remote: bool = False


@dataclass(frozen=True, slots=True)
class Panes:
    """What confines the programs that show an agent's terminal."""

    filter: bool = True
    """Whether we have a seccomp filter for this processor."""
    seccomp: bool = True
    """Whether the kernel has seccomp."""
    landlock: int = 1
    """The kernel's version of Landlock, 0 without."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The host's time."""

    now: float = 1.8e9
    """Unix seconds."""
    source: str = "tsc"
    """The kernel's clock source, empty when unknown."""
    synchronised: bool | None = True
    tsc_khz: int = 0
    """Rate of the time stamp counter, 0 when unknown."""
