"""Which kernel modules go into the toolkit, and in which order PID 1 loads them."""

from __future__ import annotations

import lzma
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vm.errors import BuildFailed
from vm.image.elf import module_facts
from vm.image.tools import unpacked

if TYPE_CHECKING:
    from pathlib import Path

WANTED: tuple[tuple[str, str], ...] = (
    ("pci", "virtio_pci"),
    ("mmio", "virtio_mmio"),
    ("-", "virtio_blk"),
    ("-", "virtio_console"),
    ("-", "squashfs"),
    ("-", "overlay"),
    ("-", "ext4"),
    ("0x0004", "virtio_rng"),
    ("0x0001", "virtio_net"),
    ("0x0005", "virtio_balloon"),
)
"""`(when, module)`: always (`-`), with a bus, or with a virtio device of that type."""


@dataclass(frozen=True, slots=True)
class Module:
    """One module as it lies in the toolkit: plain `.ko` bytes, loaded when `when` holds."""

    when: str
    name: str
    data: bytes


def module_closure(
    folder: Path, wanted: tuple[tuple[str, str], ...] = WANTED
) -> tuple[Module, ...]:
    """Return `wanted` with all that they need, each after its dependencies.

    `folder` is `lib/modules/<release>`. What the kernel has built in is left out. Raises
    BuildFailed for a module that is neither there nor built in.
    """
    chosen: dict[str, Module] = {}
    closure = _Closure(folder, chosen)
    for when, name in wanted:
        closure.add(when, name)
    return tuple(chosen.values())


class _Closure:
    def __init__(self, folder: Path, chosen: dict[str, Module]) -> None:
        self._files = {_module_name(path): path for path in sorted(folder.rglob("*.ko*"))}
        listed = (folder / "modules.builtin").read_text().split()
        self._builtin = {_module_name(folder / line) for line in listed}
        self._chosen = chosen

    def add(self, when: str, name: str) -> None:
        """Add `name` after its dependencies; one already there is kept, or widened to always."""
        name = name.replace("-", "_")
        if name in self._builtin:
            return
        known = self._chosen.get(name)
        if known and known.when in ("-", when):
            return
        data = known.data if known else self._read(name)
        facts = module_facts(data)
        for needed in ",".join(facts.get("depends", [])).split(","):
            if needed:
                self.add(when, needed)
        for soft in _soft_before(facts):
            if soft in self._files:
                self.add(when, soft)
        # a module that two conditions want is loaded always, at its first place
        self._chosen[name] = Module("-" if known else when, name, data)

    def _read(self, name: str) -> bytes:
        path = self._files.get(name)
        if path is None:
            raise BuildFailed(f"The distribution's kernel has no module {name}.")
        return _plain(path)


def _module_name(path: Path) -> str:
    return path.name.partition(".ko")[0].replace("-", "_")


def _soft_before(facts: dict[str, list[str]]) -> list[str]:
    found: list[str] = []
    for line in facts.get("softdep", []):
        before = line.partition("post:")[0].replace("pre:", " ")
        found += [word.replace("-", "_") for word in before.split()]
    return found


def _plain(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return zlib.decompress(data, 31)
    if path.suffix == ".zst":
        return unpacked(["zstd", "-dcq"], data)
    return data
