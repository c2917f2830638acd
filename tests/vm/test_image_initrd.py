"""What a session's initramfs holds, how it is written, and what it refuses."""

from __future__ import annotations

import gzip
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from vm.errors import HostLacks, VMError
from vm.image import cpio, scratch, session_cpio, tools, write_initrd
from vm.image.store import ImageSet

if TYPE_CHECKING:
    from pathlib import Path

GOOD: dict[str, Any] = {
    "token": "0123456789abcdef" * 2,
    "hostname": "calm-otter",
    "host_key": b"-----BEGIN OPENSSH PRIVATE KEY-----\n",
    "authorized_keys": b"ssh-ed25519 AAAA\n",
    "now": 1_800_000_000,
}
needs_cpio = pytest.mark.skipif(shutil.which("cpio") is None, reason="the oracle is not installed")


def _with(field: str, value: object) -> dict[str, Any]:
    return GOOD | {field: value}


def _content(data: bytes, name: str) -> bytes:
    return subprocess.run(
        ["cpio", "--quiet", "-i", "--to-stdout", name],
        input=data, capture_output=True, check=True, timeout=30,
    ).stdout  # fmt: skip


@needs_cpio
def test_the_session_is_four_lines_and_two_keys() -> None:
    data = session_cpio(**GOOD)
    head = b"token=0123456789abcdef0123456789abcdef\nhostname=calm-otter\ntime=1800000000\n"
    assert _content(data, "session/config") == head + b"guest=standard\n"
    strict = session_cpio(**GOOD, profile="strict")
    assert _content(strict, "session/config") == head + b"guest=strict\n"
    assert _content(data, "session/host_key") == GOOD["host_key"]
    assert _content(data, "session/authorized_keys") == GOOD["authorized_keys"]
    assert b"calm-otter" in _content(data, "session/hosts")
    assert _content(data, "session/net") == b""


@needs_cpio
def test_a_session_with_a_network_card_is_told_its_address() -> None:
    data = session_cpio(**GOOD, network=True)
    assert _content(data, "session/ca.pem") == b""
    assert _content(session_cpio(**GOOD, authorities=b"PEM"), "session/ca.pem") == b"PEM"
    assert _content(data, "session/net") == b"198.19.255.2 255.255.255.252 198.19.255.1\n"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("token", "short"),
        ("token", "G" * 32),
        ("token", "0123456789abcdef0123456789abcde\n"),
        ("hostname", ""),
        ("hostname", "a\ntoken=x"),
        ("hostname", "Upper"),
        ("hostname", "-a"),
        ("hostname", "a" * 64),
        ("now", -1),
        ("profile", "lax"),
        ("profile", ""),
    ],
)
def test_what_could_not_be_one_line_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        session_cpio(**_with(field, value))


def _image(folder: Path, toolkit: bytes) -> ImageSet:
    path = folder / "toolkit.cpio.gz"
    path.write_bytes(toolkit)
    return ImageSet("base", path, path, path, path, "0" * 64, "6.1")


@pytest.mark.parametrize("padding", range(5))
def test_the_secrets_follow_the_toolkit_at_a_multiple_of_four(tmp_path: Path, padding: int) -> None:
    toolkit = gzip.compress(cpio.archive([cpio.file("init", b"x")]), mtime=0) + b"\0" * padding
    dest = tmp_path / "initrd"
    dest.write_bytes(b"an older one")
    dest.chmod(0o644)
    write_initrd(_image(tmp_path, toolkit), dest, **GOOD)
    data = dest.read_bytes()
    secrets = session_cpio(**GOOD)
    assert data.startswith(toolkit)
    assert data.endswith(secrets)
    assert (len(data) - len(secrets)) % 4 == 0
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["initrd", "toolkit.cpio.gz"]


def test_a_refused_session_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="token"):
        write_initrd(_image(tmp_path, b""), tmp_path / "initrd", **_with("token", ""))
    assert not (tmp_path / "initrd").exists()


def test_a_scratch_disk_is_made_once_sparse_and_read_only(tmp_path: Path) -> None:
    path = scratch.scratch_template(tmp_path, 3)
    found = path.stat()
    assert found.st_size == 3 << 30
    assert found.st_blocks * 512 < 64 << 20
    assert stat.S_IMODE(found.st_mode) == 0o444
    with path.open("rb") as disk:
        disk.seek(1024 + 0x38)
        assert disk.read(2) == b"\x53\xef"
    assert scratch.scratch_template(tmp_path, 3).stat().st_mtime_ns == found.st_mtime_ns
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("size", [0, -1, 5000])
def test_an_absurd_scratch_size_is_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(VMError, match="not possible"):
        scratch.scratch_template(tmp_path, size)


def _nowhere(_program: str) -> None:
    return None


def test_without_mkfs_the_hint_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find", _nowhere)
    with pytest.raises(HostLacks) as caught:
        scratch.scratch_template(tmp_path)
    assert caught.value.hint == "sudo apt-get install e2fsprogs"
