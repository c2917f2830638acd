"""A session's secrets: fresh, private on disk, refused when others can read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncssh
import pytest

from vm.machine import console
from vm.machine.identity import BadIdentity, Identity

if TYPE_CHECKING:
    from pathlib import Path


def test_every_identity_is_its_own() -> None:
    one, two = Identity.new(), Identity.new()
    assert len({one.token, two.token}) == 2
    assert len(one.token) == 32
    assert one.client_key != two.client_key
    assert one.client_key != one.host_key


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    identity = Identity.new()
    identity.save(path)
    identity.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Identity.load(path) == identity
    assert [found.name for found in tmp_path.iterdir()] == ["identity.json"]


def test_what_sshd_reads() -> None:
    identity = Identity.new()
    assert asyncssh.import_private_key(identity.host_key_file) == identity.host_key
    options, _, key = identity.authorized_keys.partition(b" ")
    assert options == b'restrict,pty,port-forwarding,permitopen="127.0.0.1:*"'
    assert asyncssh.import_public_key(key) == identity.client_key.convert_to_public()


def test_bad_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    with pytest.raises(BadIdentity):
        Identity.load(path)
    Identity.new().save(path)
    good = path.read_text()
    path.chmod(0o640)
    with pytest.raises(BadIdentity, match="open to others"):
        Identity.load(path)
    path.chmod(0o600)
    for bad in ("", "[]", "{}", good.replace("OPENSSH", "CLOSED"), good.replace('"token"', '"t"')):
        path.write_text(bad)
        with pytest.raises(BadIdentity):
            Identity.load(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    path.write_text(good)
    with pytest.raises(BadIdentity):
        Identity.load(link)


def test_a_console_is_shown_without_its_tricks(tmp_path: Path) -> None:
    path = tmp_path / "console"
    assert console.tail(path) == ""
    path.write_bytes(b"one\r\n\n\x1b]0;title\x07two\x1b[2J\x9b\xff\nthr\x08ee\n" + b"\x1b")
    assert console.tail(path, 2).splitlines()[-1] == "three"
    assert "\x1b" not in console.tail(path)
    assert "title" not in console.tail(path)
    path.write_bytes(b"line\n" * 100_000)
    assert console.tail(path, 3) == "line\nline\nline"


def test_a_file_that_grows_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "console"
    assert not console.trim(path)
    with path.open("ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        assert not console.trim(path, 100)
        assert console.trim(path, 99)
        assert console.tail(path) == "x" * 100
        writer.write(b"new")
    assert path.read_bytes() == b"new"
    assert console.tail(path) == "x" * 100 + "new"


def test_the_end_of_what_grew_is_kept_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "console"
    path.write_bytes(b"a" * console.MAX_FILE + b"\nlast words\n")
    assert console.trim(path)
    assert console.older(path).stat().st_size == console.KEPT
    assert console.tail(path, 1) == "last words"


def test_no_link_is_followed_by_what_empties_a_log(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "console"
    target.write_bytes(b"x" * 100)
    path.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        console.trim(path, 10)
    path.unlink()
    path.write_bytes(b"y" * 100)
    console.older(path).symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        console.trim(path, 10)
    assert target.read_bytes() == b"x" * 100
    assert path.read_bytes() == b""  # bounded all the same
