"""ELF facts against `readelf`, kernels out of bzImages, and the order of modules."""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from vm.errors import BuildFailed, HostLacks, VMError
from vm.image import elf, tools
from vm.image.modules import module_closure
from vm.image.vmlinux import extract_vmlinux

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = b"\x7fELF" + bytes(range(256)) * 400


@pytest.mark.skipif(shutil.which("readelf") is None, reason="the oracle is not installed")
@pytest.mark.parametrize("program", ["sh", "git", "cc"])
def test_needed_libraries_and_loader_are_what_readelf_says(program: str) -> None:
    path = shutil.which(program)
    assert path, program
    said = subprocess.run(
        ["readelf", "-dlW", path], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    with open(path, "rb") as file:
        data = file.read()
    assert elf.needed(data) == re.findall(r"\(NEEDED\).*\[(.*)\]", said)
    assert [elf.interpreter(data)] == re.findall(r"interpreter: (.*)\]", said)


def test_what_is_no_elf_file_is_told() -> None:
    with pytest.raises(VMError, match="not a 64-bit ELF"):
        elf.needed(b"#!/bin/sh\n" * 20)


def _bzimage(payload: bytes) -> bytes:
    head = bytearray(512 * 5)
    head[0x1F1] = 4
    head[0x202:0x206] = b"HdrS"
    offset = 64
    struct.pack_into("<II", head, 0x248, offset, len(payload))
    return bytes(head) + bytes(offset) + payload + b"rest"


def _program(name: str, data: bytes) -> bytes:
    argv = [name, "-qc"]
    return subprocess.run(argv, input=data, capture_output=True, check=True, timeout=30).stdout


@pytest.mark.parametrize("kind", ["plain", "gzip", "xz", "zstd", "lz4"])
def test_a_kernel_comes_out_of_every_compression(kind: str) -> None:
    if kind in ("zstd", "lz4") and shutil.which(kind) is None:
        pytest.skip(f"{kind} is not installed")
    size = struct.pack("<I", len(KERNEL))
    if kind == "plain":
        payload = KERNEL
    elif kind == "gzip":
        payload = gzip.compress(KERNEL) + size
    elif kind == "xz":
        payload = lzma.compress(KERNEL) + size
    elif kind == "zstd":
        payload = _program("zstd", KERNEL) + size
    else:  # the kernel's build makes the legacy frame
        payload = subprocess.run(
            ["lz4", "-l", "-qc"], input=KERNEL, capture_output=True, check=True, timeout=30
        ).stdout
    assert extract_vmlinux(_bzimage(payload)) == KERNEL


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (b"x" * 4096, "not a bzImage"),
        (b"", "not a bzImage"),
        (_bzimage(b"unknown" * 10), "not known"),
        (_bzimage(gzip.compress(b"no kernel")), "did not unpack"),
    ],
)
def test_other_files_are_refused(image: bytes, why: str) -> None:
    with pytest.raises(VMError, match=why):
        extract_vmlinux(image)


def _module(folder: Path, name: str, *facts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(
        f'static const char f{number}[] __attribute__((section(".modinfo"), used)) = "{fact}";\n'
        for number, fact in enumerate(facts)
    )
    target = folder / f"{name}.ko"
    subprocess.run(
        ["cc", "-c", "-x", "c", "-o", str(target), "-"],
        input=text.encode(), check=True, timeout=30,
    )  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    drivers = tmp_path / "kernel" / "drivers"
    _module(drivers, "ring", "depends=", "license=GPL")
    _module(drivers, "virtio", "depends=ring")
    _module(drivers, "virtio-pci", "depends=virtio,ring", "name=virtio_pci")
    _module(drivers, "mmio", "depends=virtio")
    _module(drivers, "crc", "depends=")
    _module(drivers, "fs", "depends=", "softdep=pre: crc post: later")
    (tmp_path / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\n")
    return tmp_path


def test_modules_come_after_what_they_need(tree: Path) -> None:
    chosen = module_closure(tree, (("pci", "virtio_pci"), ("-", "fs"), ("-", "ext4")))
    assert [module.name for module in chosen] == ["ring", "virtio", "virtio_pci", "crc", "fs"]
    assert all(module.data.startswith(b"\x7fELF") for module in chosen)


def test_what_two_conditions_need_is_always_loaded(tree: Path) -> None:
    chosen = module_closure(tree, (("pci", "virtio-pci"), ("mmio", "mmio")))
    found = {module.name: module.when for module in chosen}
    assert found == {"ring": "-", "virtio": "-", "virtio_pci": "pci", "mmio": "mmio"}


@pytest.mark.parametrize("suffix", ["xz", "gz"])
def test_compressed_modules_are_unpacked(tree: Path, suffix: str) -> None:
    path = tree / "kernel" / "drivers" / "crc.ko"
    data = path.read_bytes()
    packed = lzma.compress(data) if suffix == "xz" else gzip.compress(data)
    path.with_name(f"crc.ko.{suffix}").write_bytes(packed)
    path.unlink()
    (module,) = module_closure(tree, (("-", "crc"),))
    assert module.data == data


def test_a_missing_module_is_named(tree: Path) -> None:
    with pytest.raises(VMError, match="no module nothing"):
        module_closure(tree, (("-", "nothing"),))


def test_a_decompressor_that_is_missing_or_fails_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / "zstd"
    failing.write_text("#!/bin/sh\ncat > /dev/null; echo broken >&2; exit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(tools, "find", {"zstd": str(failing)}.get)
    with pytest.raises(BuildFailed, match="broken") as caught:
        tools.unpacked(["zstd", "-dcq"], b"x")
    assert "cloche image build" in caught.value.hint
    assert tools.unpacked(["zstd", "-dcq"], b"x", (0, 1)) == b""
    with pytest.raises(HostLacks) as lacking:
        tools.unpacked(["lz4", "-dcq"], b"x")
    assert lacking.value.hint == "sudo apt-get install lz4"
