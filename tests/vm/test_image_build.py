"""Building and finding images without a mirror: locks, leftovers, damage, missing programs."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from vm.errors import HostLacks, ImageMissing, VMError
from vm.image import (
    build,
    find_image,
    guest,
    list_images,
    packages,
    recipes,
    store,
    tools,
)
from vm.image.build import build_image
from vm.image.progress import stages

if TYPE_CHECKING:
    from pathlib import Path

    from vm.image.progress import Progress


def _nothing(text: str, share: float) -> None:
    assert text
    assert 0 <= share <= 1


class _Fake:
    """Takes the place of the real build: writes four small files and the record."""

    runs = 0
    taken = 0

    def __init__(self, base: build.BaseSystem, scratch: Path, progress: Progress) -> None:
        self._name = base.name
        self._out = scratch / "image"
        self._out.mkdir()

    def take_machine(self, store_folder: Path) -> None:
        pass

    def take_base(self, folder: Path, record: store.ImageRecord) -> None:
        type(self).taken += 1
        assert (folder / store.BASE).is_file()
        assert record.name == self._name

    def run(self, store_folder: Path) -> Path:
        type(self).runs += 1
        for name in store.FILES:
            (self._out / name).write_text(f"{name} {type(self).runs}")
        files = store.record_files(self._out)
        record = store.ImageRecord(
            format=store.FORMAT, name=self._name, digest=store.set_digest(files),
            kernel_release="6.1", files=files, toolkit_source=build.toolkit_source(),
            base_source=build.base_source(), suite="s", built="now", tools={},
            toolkit_packages=[], base_packages=[],
        )  # fmt: skip
        (self._out / store.RECORD).write_bytes(msgspec.json.encode(record))
        return self._out


def _init(_store: Path) -> bytes:
    return b"init"


def _without_m(program: str) -> str | None:
    return None if program[0] == "m" else program


def _apt_prints(monkeypatch: pytest.MonkeyPatch, rows: list[str]) -> None:
    def printed(_argv: list[str]) -> list[str]:
        return rows

    monkeypatch.setattr(packages, "_printed", printed)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[_Fake]:
    _Fake.runs = _Fake.taken = 0
    monkeypatch.setattr(build, "_Build", _Fake)
    monkeypatch.setattr(guest, "guest_init", _init)
    return _Fake


def test_an_image_is_built_once_and_then_found(tmp_path: Path, fake: type[_Fake]) -> None:
    first = build_image(tmp_path, progress=_nothing)
    assert build_image(tmp_path, progress=_nothing) == first == find_image(tmp_path)
    assert fake.runs == 1
    again = build_image(tmp_path, progress=_nothing, force=True)
    assert fake.runs == 2
    assert again.digest != first.digest
    assert sorted(os.listdir(tmp_path / "images")) == [".built", ".lock", "base"]
    assert first.base.read_text() == "base.squashfs 1"  # what a session began with stays
    assert again.base.read_text() == "base.squashfs 2"


def test_listing_passes_over_what_is_no_image(tmp_path: Path, fake: type[_Fake]) -> None:
    assert list_images(tmp_path) == []
    built = build_image(tmp_path, progress=_nothing)
    (tmp_path / "images" / "half").mkdir()
    (tmp_path / "images" / "No Name").mkdir()
    assert list_images(tmp_path) == [built]


def test_other_sources_of_ours_make_another_image(
    tmp_path: Path, fake: type[_Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    build_image(tmp_path, progress=_nothing)
    monkeypatch.setattr(build, "toolkit_source", lambda: "changed")
    build_image(tmp_path, progress=_nothing)
    assert (fake.runs, fake.taken) == (2, 1)  # the base system is the same
    monkeypatch.setattr(build, "toolkit_source", lambda: "again")
    monkeypatch.setattr(build, "base_source", _changed)
    build_image(tmp_path, progress=_nothing)
    assert (fake.runs, fake.taken) == (3, 1)


def _changed(_recipe: recipes.Recipe | None = None) -> str:
    return "changed"


def test_what_a_killed_build_left_is_cleared_and_never_found(
    tmp_path: Path, fake: type[_Fake]
) -> None:
    left = tmp_path / "images" / ".building-x" / "image"
    left.mkdir(parents=True)
    (left / store.RECORD).write_text("{}")
    with pytest.raises(ImageMissing):
        find_image(tmp_path)
    build_image(tmp_path, progress=_nothing)
    assert sorted(os.listdir(tmp_path / "images")) == [".built", ".lock", "base"]


def test_a_failed_build_keeps_the_older_image(
    tmp_path: Path, fake: type[_Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_image(tmp_path, progress=_nothing)

    def full(_self: _Fake, _store: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device", "somewhere")

    monkeypatch.setattr(_Fake, "run", full)
    with pytest.raises(VMError, match="disk is full") as caught:
        build_image(tmp_path, progress=_nothing, force=True)
    assert "Free about" in caught.value.hint
    assert find_image(tmp_path) == first
    assert sorted(os.listdir(tmp_path / "images")) == [".built", ".lock", "base"]


def test_a_second_builder_waits_and_then_finds_the_image(
    tmp_path: Path, fake: type[_Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = threading.Event()
    finished: list[store.ImageSet] = []
    real = _Fake.run

    def progress(text: str, _share: float) -> None:
        if text.startswith("waiting"):
            waiting.set()

    def second() -> None:
        finished.append(build_image(tmp_path, progress=progress))

    other = threading.Thread(target=second)

    def slow(self: _Fake, folder: Path) -> Path:
        other.start()
        assert waiting.wait(20)
        return real(self, folder)

    monkeypatch.setattr(_Fake, "run", slow)
    first = build_image(tmp_path, progress=_nothing)
    other.join(20)
    assert finished == [first]
    assert fake.runs == 1


def test_damage_is_noticed_and_named(tmp_path: Path, fake: type[_Fake]) -> None:
    folder = build_image(tmp_path, progress=_nothing).base.parent
    (folder / store.BASE).write_text("longer than it was")
    with pytest.raises(ImageMissing, match=r"damaged \(base.squashfs\)") as caught:
        find_image(tmp_path)
    assert caught.value.hint == "cloche image build base"
    (folder / store.RECORD).write_text("{")
    with pytest.raises(ImageMissing, match="damaged record"):
        find_image(tmp_path)


def test_a_copied_store_has_other_times_and_is_still_good(
    tmp_path: Path, fake: type[_Fake]
) -> None:
    image = build_image(tmp_path / "one", progress=_nothing)
    shutil.copytree(
        tmp_path / "one", tmp_path / "two", symlinks=True, copy_function=shutil.copyfile
    )
    assert find_image(tmp_path / "two").digest == image.digest
    kernel = tmp_path / "two" / "images" / "base" / store.KERNEL
    kernel.write_bytes(kernel.read_bytes()[::-1])
    with pytest.raises(ImageMissing, match="vmlinuz"):
        find_image(tmp_path / "two")


@pytest.mark.parametrize("name", ["", "../x", "a/b", "UPPER", ".hidden", "a" * 80])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(VMError, match="no name"):
        find_image(tmp_path, name)


def test_missing_programs_are_named_with_the_command_that_brings_them(
    tmp_path: Path, fake: type[_Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "find", _without_m)
    with pytest.raises(HostLacks) as caught:
        build_image(tmp_path, progress=_nothing)
    assert "mmdebstrap, mksquashfs are not installed" in caught.value.message
    assert caught.value.hint == "sudo apt-get install mmdebstrap squashfs-tools"


TARGETS: str = """\
Debian trixie scheme://one/debian trixie main
Debian trixie-updates scheme://one/debian trixie-updates main
Debian trixie-security scheme://two/debian trixie-security main
Debian trixie-backports scheme://one/debian trixie-backports main
NodeSource nodistro scheme://three nodistro main
"""


def test_sources_are_the_hosts_own_debian_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    _apt_prints(monkeypatch, list[str](TARGETS.splitlines()))
    found = packages.host_sources()
    assert found.suite == "trixie"
    assert [line.split()[-2:] for line in found.lines] == [
        ["trixie", "main"],
        ["trixie-security", "main"],
        ["trixie-updates", "main"],
    ]


def test_a_host_of_another_distribution_gets_debian_stable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = ["Ubuntu noble scheme://one/ubuntu noble main"]
    _apt_prints(monkeypatch, rows)
    assert packages.host_sources() == packages.Sources("stable", ())


def test_debian_is_verified_where_apt_does_not_know_it() -> None:
    """Ubuntu's apt trusts other keys, and mmdebstrap alone would look for Debian's with gpg."""
    argv = packages._command(["--variant=apt"], packages.Sources("stable", ()))  # pyright: ignore[reportPrivateUsage]
    assert "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg" in argv
    assert argv[-3:] == ["--variant=apt", "stable", "-"]
    own = packages.Sources("trixie", ("deb [signed-by=/key] scheme://one trixie main",))
    argv = packages._command([], own)  # pyright: ignore[reportPrivateUsage]
    assert argv[-3:] == ["trixie", "-", *own.lines]
    assert not any(part.startswith("--keyring") for part in argv)


def test_missing_keys_of_debian_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_KEYRING", tmp_path / "absent.gpg")
    with pytest.raises(HostLacks, match=r"keys of Debian.*absent\.gpg") as caught:
        packages.require_bootstrap()
    assert caught.value.hint == "sudo apt-get install debian-archive-keyring"


def test_of_many_words_the_errors_are_told() -> None:
    script = "echo 'E: not signed' >&2; for i in 1 2 3 4; do echo I: bye $i >&2; done; exit 25"
    with pytest.raises(VMError, match=r"It said: E: not signed$"):
        tools.run(["sh", "-c", script], what="It", seconds=20)


def test_an_ordinary_user_needs_a_range_of_user_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", _ordinary)
    monkeypatch.setattr(tools, "find", str)
    monkeypatch.setattr(packages, "_SUBORDINATE", tmp_path / "subuid")
    for text in (None, "somebody:1:65536\n"):
        if text:
            (tmp_path / "subuid").write_text(text)
        with pytest.raises(HostLacks, match="range of user ids") as caught:
            packages.require_bootstrap()
        assert caught.value.hint.startswith("sudo usermod --add-subuids")
    (tmp_path / "subuid").write_text("4242:100000:65536\n")
    packages.require_bootstrap()


def _ordinary() -> int:
    return 4242


def test_only_the_network_settings_of_apt_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ['Acquire::http::Proxy "scheme://proxy";', 'APT::Install-Recommends "1";',
            'Acquire::https::CAInfo "/ca";', 'DPkg::Post-Invoke:: "rm -rf /";']  # fmt: skip
    _apt_prints(monkeypatch, rows)
    assert packages.network_options().splitlines() == [rows[0], rows[2]]


def test_a_failing_program_is_told_with_its_last_words() -> None:
    with pytest.raises(VMError, match=r"It \(status 3\)|failed \(status 3\).*went wrong"):
        tools.run(["sh", "-c", "echo went wrong >&2; exit 3"], what="It", seconds=20)


@pytest.mark.parametrize(
    ("said", "way_out"),
    [
        ("E: unable to pick chroot mode automatically", "cloche doctor"),
        ("E: write: No space left on device", "Free about 2 GiB"),
        ("E: Unable to locate package git", "apt-get update"),
    ],
)
def test_what_mends_a_failed_build_is_told(said: str, way_out: str) -> None:
    with pytest.raises(VMError) as caught:
        tools.run(["sh", "-c", 'echo "$1" >&2; exit 25', "sh", said], what="It", seconds=20)
    assert way_out in caught.value.hint


def test_a_hanging_program_is_ended_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
    with pytest.raises(VMError, match="took too long"):
        tools.run(["sh", "-c", script], what="It", seconds=0.5)
    child = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 20
    while _alive(child):
        assert time.monotonic() < end


def _alive(pid: int) -> bool:
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")


def test_the_guest_compiles_without_a_warning_and_is_static(tmp_path: Path) -> None:
    guest.compile_init(tmp_path / "cache" / "init")
    data = (tmp_path / "cache" / "init").read_bytes()
    assert data.startswith(b"\x7fELF")
    from vm.image import elf

    assert elf.interpreter(data) == ""
    assert os.listdir(tmp_path / "cache") == ["init"]


def test_a_compiled_guest_is_kept_by_the_hash_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Path] = []

    def compile_(target: Path) -> None:
        compiled.append(target)
        target.parent.mkdir(parents=True)
        target.write_bytes(b"init")

    monkeypatch.setattr(guest, "compile_init", compile_)
    assert guest.guest_init(tmp_path) == guest.guest_init(tmp_path) == b"init"
    assert len(compiled) == 1
    assert guest.source_hash()[:32] in compiled[0].name


def test_a_shipped_guest_is_taken_before_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest, "SOURCES", tmp_path)
    monkeypatch.setattr(guest, "compile_init", pytest.fail)
    assert guest.find_init(tmp_path / "store") is None
    (tmp_path / "prebuilt").mkdir()
    shipped = tmp_path / "prebuilt" / f"init-{guest.source_hash()[:32]}"
    shipped.write_bytes(b"shipped")
    assert guest.find_init(tmp_path / "store") == shipped
    assert guest.guest_init(tmp_path / "store") == b"shipped"


def test_a_compiler_without_an_assembler_is_told_before_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 13 installs musl-gcc without binutils, and gcc's own words name no package."""

    def find(program: str) -> str | None:
        return None if program == "as" else program

    monkeypatch.setattr(tools, "find", find)
    with pytest.raises(HostLacks, match="as is not installed") as caught:
        guest.compile_init(tmp_path / "init")
    assert caught.value.hint == "sudo apt-get install binutils"


def test_progress_tells_stages_and_no_chatter() -> None:
    told: list[tuple[str, float]] = []
    said = stages(lambda text, share: told.append((text, share)), 0.0, 1.0, 2)
    for text in ("automatically chosen mode: root", "running apt-get update", "extracting archives",
                 "done", "removing tempdir x", "success in 1.0 seconds"):  # fmt: skip
        said(text)
    assert told == [("running apt-get update", 0.5), ("extracting archives", 1.0)]


def test_the_image_package_loads_no_screen() -> None:
    code = "import sys, vm.image; sys.exit(any(n.startswith('textual') for n in sys.modules))"
    root = guest.SOURCES.parent.parent
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=60)
