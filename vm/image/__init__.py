"""What a guest boots from: kernel, toolkit initramfs, base image, and the store that keeps them.

What a session needs is re-exported here (what makes images is in `vm.image.build` and `imports`,
which load much more):

* `find_image`, `find_built`, `list_images` and `ImageSet`: images in the store;
* `write_initrd`, `session_cpio`: the toolkit initramfs plus the secrets of one session;
* `scratch_template`: the empty ext4 disk that every session's qcow2 grows from;
* `Q35`, `MICROVM`: the kernel command lines.
"""

from __future__ import annotations

from vm.image.cmdline import MICROVM, Q35
from vm.image.initrd import session_cpio, write_initrd
from vm.image.scratch import scratch_template
from vm.image.store import ImageSet, find_built, find_image, list_images

__all__ = [
    "MICROVM",
    "Q35",
    "ImageSet",
    "find_built",
    "find_image",
    "list_images",
    "scratch_template",
    "session_cpio",
    "write_initrd",
]
