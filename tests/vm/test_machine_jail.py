"""The jail's command line, the names of the files in it, and whose they become."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.errors import HostLacks
from vm.machine import argv, jail, jail_start
from vm.machine.spec import Backing, Disk, MachineSpec

USER = jail.Jail("/usr/bin/bwrap")
ROOT = jail.Jail("/usr/bin/bwrap", "/usr/bin/setpriv")
HELD = [jail.File(Path(path), Path(path)) for path in ("/usr/bin/qemu", "/usr/lib")]
LINKS = [("/lib", "usr/lib")]

SPEC = MachineSpec(
    name="s",
    accelerator="tcg",
    kernel=Path("/home/me/store/vmlinux"),
    initrd=Path("/home/me/s/initrd"),
    disks=(
        Disk("base", Path("/home/me/store/base")),
        Disk(
            "scratch",
            Path("/home/me/s/scratch"),
            "qcow2",
            read_only=False,
            backing=Backing(
                Path("/home/me/s/older"), "qcow2", Backing(Path("/home/me/store/e"), "raw")
            ),
        ),
    ),
    runtime=Path("/run/me/c/vm"),
    console=Path("/home/me/s/console.log"),
    log=Path("/home/me/s/qemu.log"),
)


def test_the_whole_command_of_an_ordinary_user() -> None:
    words = jail.command(USER, ["/usr/bin/qemu", "-x"], [*HELD, *jail.files(SPEC)], links=LINKS)
    assert " ".join(words) == (
        "/usr/bin/bwrap --unshare-user --uid 65534 --gid 65534 --cap-drop ALL "
        "--unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try "
        "--as-pid-1 --new-session --hostname cloche --chdir / --clearenv --setenv LC_ALL C "
        "--info-fd 3 --dir /dev --dir /usr --dir /usr/bin --dir /vm "
        "--ro-bind /usr/bin/qemu /usr/bin/qemu --ro-bind /usr/lib /usr/lib "
        "--ro-bind /home/me/store/vmlinux /vm/kernel --ro-bind /home/me/s/initrd /vm/initrd "
        "--ro-bind /home/me/store/base /vm/base --bind /home/me/s/scratch /vm/scratch "
        "--ro-bind /home/me/s/older /vm/scratch-1 --ro-bind /home/me/store/e /vm/scratch-2 "
        "--bind /home/me/s/console.log /vm/console --bind /run/me/c/vm /vm/run "
        "--symlink usr/lib /lib --dev-bind /dev/null /dev/null "
        "--dev-bind /dev/urandom /dev/urandom --perms 1777 --size 16777216 --tmpfs /tmp "
        "--remount-ro / -- /usr/bin/qemu -x"
    )


def test_root_gives_up_all_that_root_has() -> None:
    tenant = jail.Lodger(61200, groups=(36,))
    words = " ".join(jail.command(ROOT, ["/usr/bin/qemu"], HELD, tenant=tenant))
    assert "--unshare-user" not in words
    assert "--cap-drop ALL --cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SETPCAP" in words
    assert words.endswith(
        "-- /usr/bin/setpriv --reuid 61200 --regid 61184 --groups 36 --inh-caps=-all "
        "--ambient-caps=-all --bounding-set=-all /usr/bin/qemu"
    )
    assert "--ro-bind /usr/bin/setpriv /usr/bin/setpriv" in words
    assert "--clear-groups" in jail.command(ROOT, ["q"], HELD, tenant=jail.Lodger(61200))


def test_no_machine_dies_with_its_keeper() -> None:
    for tenant in (None, jail.Lodger(61200)):
        assert "--die-with-parent" not in jail.command(ROOT, ["q"], HELD, tenant=tenant)


def test_kvm_is_there_only_where_it_is_used() -> None:
    assert all(file.access != "device" for file in jail.files(SPEC))
    kvm = jail.files(replace(SPEC, accelerator="kvm"))
    assert jail.File(Path("/dev/kvm"), Path("/dev/kvm"), "device") in kvm
    words = " ".join(jail.command(USER, ["q"], kvm))
    assert "--dev-bind /dev/kvm /dev/kvm" in words


def test_qemu_is_told_only_names_of_the_jail() -> None:
    told = " ".join(argv.build(jail.inside(SPEC)))
    assert "/home" not in told
    assert "/run/me" not in told
    held = {str(file.target) for file in jail.files(SPEC)}
    for name in ("kernel", "initrd", "base", "scratch", "scratch-1", "scratch-2", "console"):
        assert f"/vm/{name}" in told
        assert f"/vm/{name}" in held


def test_what_lies_in_a_folder_that_is_there_is_not_named_again() -> None:
    inner = jail.File(Path("/usr/lib/qemu/q"), Path("/usr/lib/qemu/q"))
    words = jail.command(USER, ["q"], [inner, *HELD])
    assert str(inner.target) not in words


paths = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).map(
    lambda name: Path("/", name.replace("/", "_"))
)


@given(st.lists(paths, min_size=4, max_size=4, unique=True), st.booleans())
def test_only_scratch_console_and_sockets_can_be_written(found: list[Path], kvm: bool) -> None:
    kernel, disk, console, runtime = found
    spec = replace(
        SPEC,
        accelerator="kvm" if kvm else "tcg",
        kernel=kernel,
        disks=(Disk("base", disk), *SPEC.disks[1:]),
        console=console,
        runtime=runtime,
    )
    words = jail.command(USER, ["q"], jail.files(spec))
    writable = [words[i + 1] for i, word in enumerate(words) if word == "--bind"]
    assert writable == [str(SPEC.disks[1].path), str(console), str(runtime)]
    assert words.index("--remount-ro") > max(i for i, w in enumerate(words) if w == "--ro-bind")


@given(paths)
def test_root_machines_have_a_user_that_nobody_else_is(runtime: Path) -> None:
    spec = replace(SPEC, runtime=runtime)
    tenant = jail.lodger(spec)
    assert tenant == jail.lodger(spec)
    assert tenant.uid in jail.IDS
    assert tenant.uid != tenant.gid == jail.GROUP


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_hands_over_what_is_written_and_opens_what_is_read(tmp_path: Path) -> None:
    tenant = jail.Lodger(61200)
    for name, mode in (("w", 0o600), ("closed", 0o400), ("open", 0o444)):
        (tmp_path / name).write_bytes(b"x")
        (tmp_path / name).chmod(mode)
    own = [
        jail.File(tmp_path / "w", Path("/vm/w"), "write"),
        jail.File(tmp_path / "closed", Path("/vm/closed")),
        jail.File(tmp_path / "open", Path("/vm/open")),
        jail.File(Path("/dev/null"), Path("/dev/null"), "device"),
    ]
    assert jail_start.hand_over(own, tenant, tmp_path) == tuple(own)
    facts = {
        name: (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))
        for name in ("w", "closed", "open")
        for found in [(tmp_path / name).stat()]
    }
    assert facts == {
        "w": (61200, jail.GROUP, 0o600),
        "closed": (0, jail.GROUP, 0o440),
        "open": (0, 0, 0o444),
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_root_makes_a_device_again_that_is_closed_to_all_others(tmp_path: Path) -> None:
    tenant = jail.Lodger(61200)
    closed = tmp_path / "closed"
    os.mknod(closed, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    for _ in range(2):  # at every start
        (made,) = jail_start.hand_over([jail.File(closed, jail.KVM, "device")], tenant, tmp_path)
        assert made == jail.File(tmp_path / "kvm", jail.KVM, "device")
        found = made.source.stat()
        assert (found.st_uid, found.st_mode & 0o777) == (61200, 0o600)
        assert found.st_rdev == os.makedev(1, 3)
    closed.chmod(0o660)
    os.chown(closed, 0, 36)
    tenant = jail.Lodger(61200, groups=(36,))
    own = (jail.File(closed, jail.KVM, "device"),)
    assert jail_start.hand_over(own, tenant, tmp_path) == own


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_that_cannot_be_made_again_is_withheld(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, closed = jail.Jail("bwrap", "setpriv"), tmp_path / "kvm"
    os.mknod(closed, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    assert jail_start.withheld(place, closed, tmp_path) == ""
    assert [*tmp_path.iterdir()] == [closed]

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "mknod", refused)
    why = jail_start.withheld(place, closed, tmp_path)
    assert why == (
        f"{closed} is root's alone and cannot be passed on to QEMU's own user "
        "(operation not permitted)"
    )
    for free in (None, jail.Jail("bwrap")):
        assert jail_start.withheld(free, closed, tmp_path) == ""
    for mode, group, shown in ((0o660, 36, ""), (0o660, 0, why), (0o666, 0, "")):
        closed.chmod(mode)
        os.chown(closed, 0, group)
        assert jail_start.withheld(place, closed, tmp_path) == shown


def test_a_file_that_cannot_be_handed_over_is_named(tmp_path: Path) -> None:
    gone = jail.File(tmp_path / "gone", Path("/vm/gone"), "write")
    with pytest.raises(HostLacks, match="gone cannot be given to QEMU's own user"):
        jail_start.hand_over([gone], jail.Lodger(61200), tmp_path)
