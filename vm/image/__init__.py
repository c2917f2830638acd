"""What a guest boots from: kernel, toolkit initramfs, base image, and the store that keeps them.

The public functions and types are re-exported here:

* `build_image`, `refresh_image`, `find_image`, `find_built`, `list_images` and `ImageSet`: images
  in the store;
* `write_initrd`, `session_cpio`: the toolkit initramfs plus the secrets of one session;
* `scratch_template`: the empty ext4 disk that every session's qcow2 grows from;
* `Q35`, `MICROVM`: the kernel command lines.
"""

from __future__ import annotations

from vm.image.build import build_image, refresh_image
from vm.image.cmdline import MICROVM, Q35
from vm.image.initrd import session_cpio, write_initrd
from vm.image.scratch import scratch_template
from vm.image.store import ImageSet, find_built, find_image, list_images

__all__ = [
    "MICROVM",
    "Q35",
    "ImageSet",
    "build_image",
    "find_built",
    "find_image",
    "list_images",
    "refresh_image",
    "scratch_template",
    "session_cpio",
    "write_initrd",
]
