"""Machines and bytes: guest image, QEMU, links, terminal engine. No screen, no workspace."""
