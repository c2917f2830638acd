"""Findings about what runs machines: QEMU and its accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.doctor.findings import Finding
from app.doctor.host import Fault

if TYPE_CHECKING:
    from app.doctor.findings import Facts
    from app.doctor.host import Acceleration

NEWEST_TRIED: Final = 10
"""Major version of the newest QEMU that machines were booted with."""

AFTER: Final = "then ask again: cloche doctor"


def qemu(version: tuple[int, int, int] | Fault) -> Finding:
    """Say whether QEMU is there and new enough."""
    if isinstance(version, Fault):
        return Finding("qemu", "fail", version.message, version.hint)
    text = ".".join(map(str, version))
    message = f"QEMU {text} is installed."
    if version[0] > NEWEST_TRIED:
        message = f"QEMU {text} is newer than any that Cloche was tried with ({NEWEST_TRIED})."
    return Finding("qemu", "ok", message, facts={"version": text})


def accelerator(seen: Acceleration) -> Finding:
    """Say which accelerator machines get, and why it is not KVM."""
    chosen = seen.wish or ("kvm" if seen.works and seen.untried is None else "tcg")
    facts: Facts = {
        "accelerator": chosen,
        "chosen_by": seen.chosen_by,
        "kvm_device": seen.device,
        "kvm_usable": seen.usable,
        "kvm_works": None if seen.untried else seen.works,
        "why": seen.why,
    }
    if seen.wish:
        return _as_wished(seen, facts)
    if seen.untried is not None:
        message = f"Whether guests run under KVM was not tried. {seen.untried.message}"
        return Finding("accelerator", "warn", message, seen.untried.hint, facts)
    if seen.works:
        return Finding("accelerator", "ok", "Guests run under KVM.", facts=facts)
    message = f"Guests are emulated (TCG) and therefore slow, because {seen.why}."
    return Finding("accelerator", "warn", message, _mend(seen), facts)


def _as_wished(seen: Acceleration, facts: Facts) -> Finding:
    who, undo = "The configuration (accel)", "Set accel: auto in config.yaml"
    if seen.chosen_by == "variable":
        who, undo = "CLOCHE_ACCEL", "unset CLOCHE_ACCEL"
    if seen.wish == "kvm":
        if seen.untried is not None or seen.works:
            return Finding("accelerator", "ok", f"{who} asks for KVM.", facts=facts)
        message = f"{who} asks for KVM, but {seen.why}."
        return Finding("accelerator", "fail", message, undo, facts)
    if seen.untried is None and seen.works:
        message = f"{who} asks for emulation (TCG), which is slow; KVM works here."
        return Finding("accelerator", "warn", message, undo, facts)
    return Finding("accelerator", "ok", f"{who} asks for emulation (TCG).", facts=facts)


def _mend(seen: Acceleration) -> str:
    if seen.device and not seen.usable:
        return f"sudo usermod -aG kvm $USER, log in anew, {AFTER}"
    if seen.withheld:
        return (
            f"sudo groupadd -f kvm && sudo chgrp kvm /dev/kvm && sudo chmod 660 /dev/kvm, {AFTER}"
        )
    if seen.device:
        return f"Use a host on which KVM runs guests, or repair it (sudo dmesg | tail), {AFTER}"
    if not seen.virtualisation:
        return f"Use a bare host, or a virtual one with nested virtualisation turned on, {AFTER}"
    module = "kvm_intel" if seen.virtualisation == "vmx" else "kvm_amd"
    return f"Turn virtualisation on in the firmware, run sudo modprobe {module}, {AFTER}"
