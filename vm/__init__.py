"""Machines and bytes: guest image, QEMU, SSH over virtio-serial, terminal engine. No screen, no workspace."""
