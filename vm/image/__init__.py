"""What a guest boots from: kernel, toolkit initramfs, base image, and the store that keeps them."""
