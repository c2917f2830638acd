"""One virtual machine: QEMU argv, QMP, disks, the links over virtio-serial."""
