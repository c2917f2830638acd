"""What a machine or its parts could not do.

VMError
├─ HostLacks     a program, device or permission that this host does not have (exit 5)
├─ ImageMissing  kernel, initramfs or base image is not built (exit 5)
├─ BuildFailed   an image could not be built from the distribution's packages
├─ FetchFailed   an image did not come from where it lies (a registry, an archive)
├─ ImageRefused  an image that is damaged, for another machine, or made to do harm
├─ BootFailed    the guest did not come up; carries the last lines of its console
│  └─ GuestSilent  the machine runs, and nothing in it answered in time
├─ BrokerRefused  the credential broker could not hold what it promises, so it does not start
├─ LinkLost      the connection to the guest broke or was refused
│  └─ NoAnswer   nothing at its other end answered in time
├─ GuestProtocol the guest sent something that the protocol does not allow
└─ NotStopped    a machine that could not be ended; blocks everything that follows
"""

from __future__ import annotations


class VMError(Exception):
    """Something that `vm` could not do.

    `code` is stable and machine readable, `message` one sentence, `hint` the exact next step:
    whoever raises it says a better one, or it is the class's `way_out`.
    """

    code = "vm"
    way_out = "Run: cloche doctor"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.way_out


class HostLacks(VMError):
    """A program, device or permission that this host does not have."""

    code = "host-lacks"


class ImageMissing(VMError):
    """Kernel, initramfs or base image is not built yet."""

    code = "image-missing"
    way_out = "Run: cloche image build base"


class BuildFailed(VMError):
    """An image could not be built from the distribution's packages."""

    code = "build-failed"
    way_out = "Run: sudo apt-get update && cloche image build base"


class FetchFailed(VMError):
    """An image did not come from where it lies: a registry, an OCI layout or an archive."""

    code = "fetch-failed"
    way_out = "Look whether it is there: skopeo inspect docker://HOST/NAME:TAG"


class ImageRefused(VMError):
    """An image that Cloche does not take: damaged, for another machine, or made to do harm."""

    code = "image-refused"
    way_out = "Import another image, or have this one built again: cloche image import REF"


class BootFailed(VMError):
    """The guest did not come up; `console` holds its last lines."""

    code = "boot-failed"
    way_out = "Read: cloche logs ID"

    def __init__(self, message: str, hint: str = "", console: str = "") -> None:
        super().__init__(message, hint)
        self.console = console


class GuestSilent(BootFailed):
    """The machine runs, and nothing in it answered within the deadline."""


class BrokerRefused(VMError):
    """The credential broker could not hold what it promises, so it does not start."""

    code = "broker-refused"
    way_out = "Read: docs/guide/broker.md"


class LinkLost(VMError):
    """The connection to the guest broke, timed out or was refused."""

    code = "link-lost"
    way_out = "Try again; when the guest stays silent: cloche stop ID && cloche resume ID"


class NoAnswer(LinkLost):
    """Nothing at the other end of a link answered in time; the machine itself still runs."""


class CutOff(LinkLost):
    """The machine runs, but the sockets by which it is reached were removed."""


class GuestProtocol(VMError):
    """The guest sent something that the protocol does not allow."""

    code = "guest-protocol"
    way_out = "The guest is damaged or forged; end it: cloche stop ID"


class NotStopped(VMError):
    """A machine that could not be ended."""

    code = "not-stopped"
    way_out = "Look for it: ps -C qemu-system-x86_64 -o pid,stat,args"
