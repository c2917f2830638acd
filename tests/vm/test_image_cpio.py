"""The archive writer against the `cpio` program."""

from __future__ import annotations

import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vm.image import cpio

NAMES = st.from_regex(r"[a-z0-9_.-]{1,12}(/[a-z0-9_-]{1,12}){0,3}", fullmatch=True).filter(
    lambda name: not set(name.split("/")) & {".", ".."}
)
needs_cpio = pytest.mark.skipif(shutil.which("cpio") is None, reason="the oracle is not installed")


def _cpio(data: bytes, *options: str) -> bytes:
    done = subprocess.run(
        ["cpio", "--quiet", *options], input=data, capture_output=True, check=True, timeout=30
    )
    assert done.stderr == b""
    return done.stdout


@needs_cpio
def test_every_kind_of_member_is_listed_as_it_is() -> None:
    data = cpio.archive(
        [
            cpio.file("init", b"#!", 0o755),
            cpio.folder("tmp", 0o1777),
            cpio.link("bin/sh", "busybox"),
            cpio.node("dev/null", 1, 3, 0o666),
        ]
    )
    rows = [line.split(None, 8) for line in _cpio(data, "-itv").decode().splitlines()]
    found = {row[-1]: row[0] for row in rows}
    assert found["init"] == "-rwxr-xr-x"
    assert found["tmp"] == "drwxrwxrwt"
    assert found["bin"] == "drwxr-xr-x"  # nobody named it
    assert found["bin/sh -> busybox"] == "lrwxrwxrwx"
    assert any(name.endswith("dev/null") and mode == "crw-rw-rw-" for name, mode in found.items())


@needs_cpio
@settings(max_examples=10, deadline=None)
@given(st.dictionaries(NAMES, st.binary(max_size=200), min_size=1, max_size=6))
def test_contents_come_back(files: dict[str, bytes]) -> None:
    inner = {parent for name in files for parent in _parents(name)}
    files = {name: data for name, data in files.items() if name not in inner}
    data = cpio.archive(cpio.file(name, content) for name, content in files.items())
    assert len(data) % 512 == 0
    with tempfile.TemporaryDirectory() as folder:
        _cpio(data, "-idm", "--no-absolute-filenames", "-D", folder)
        for name, content in files.items():
            assert Path(folder, name).read_bytes() == content
    listed = _cpio(data, "-it").decode().splitlines()
    assert listed == sorted(listed)  # so a parent comes before what is in it
    assert set(files) <= set(listed)


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def test_equal_contents_give_equal_bytes_whatever_their_order() -> None:
    entries = [cpio.file("b", b"2"), cpio.file("a/c", b"1"), cpio.folder("a")]
    assert cpio.archive(entries) == cpio.archive(reversed(entries))


def test_the_last_entry_of_a_path_wins() -> None:
    data = cpio.archive([cpio.file("a", b"old"), cpio.file("a", b"new")])
    assert b"new" in data
    assert b"old" not in data


def test_modes_carry_their_type() -> None:
    assert stat.S_ISREG(cpio.file("a", b"").mode)
    assert stat.S_ISDIR(cpio.folder("a").mode)
    assert stat.S_ISLNK(cpio.link("a", "b").mode)
    assert stat.S_ISCHR(cpio.node("a", 1, 3).mode)
