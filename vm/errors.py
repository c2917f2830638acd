"""What a machine or its parts could not do.

VMError
├─ HostLacks     a program, device or permission that this host does not have (exit 5)
├─ ImageMissing  kernel, initramfs or base image is not built (exit 5)
├─ BootFailed    the guest did not answer in time; carries the last lines of its console
├─ LinkLost      the connection to the guest broke or was refused
├─ GuestProtocol the guest sent something that the protocol does not allow
└─ NotStopped    a machine that could not be ended; blocks everything that follows
"""

from __future__ import annotations


class VMError(Exception):
    """Something that `vm` could not do.

    `code` is stable and machine readable, `message` one sentence, `hint` the exact next step.
    """

    code = "vm"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class HostLacks(VMError):
    """A program, device or permission that this host does not have."""

    code = "host-lacks"


class ImageMissing(VMError):
    """Kernel, initramfs or base image is not built yet."""

    code = "image-missing"


class BootFailed(VMError):
    """The guest did not answer within its deadline; `console` holds its last lines."""

    code = "boot-failed"

    def __init__(self, message: str, hint: str = "", console: str = "") -> None:
        super().__init__(message, hint)
        self.console = console


class LinkLost(VMError):
    """The connection to the guest broke, timed out or was refused."""

    code = "link-lost"


class GuestProtocol(VMError):
    """The guest sent something that the protocol does not allow."""

    code = "guest-protocol"


class NotStopped(VMError):
    """A machine that could not be ended."""

    code = "not-stopped"
