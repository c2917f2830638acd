"""Images with a folder more: what a guest's tar may hold, and what becomes of it."""

from __future__ import annotations

import io
import subprocess
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.doubles.images import put_image
from vm.errors import ImageRefused, VMError
from vm.image import added, build, store
from vm.image.recipes import Recipe

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = Recipe("tool", "a tool", (), "base", "install-it --into {prefix}")


Entry = tuple[str, dict[str, Any], bytes]
"""A member of a tar: name, facts of its header, content."""


def archive(place: Path, *members: Entry) -> Path:
    """Write a tar."""
    with tarfile.open(place, "w") as tar:
        for name, facts, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in facts.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content))
    return place


def folder(name: str) -> Entry:
    return name, {"type": tarfile.DIRTYPE, "mode": 0o755}, b""


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Entry:
    return name, {"type": kind, "linkname": target}, b""


GOOD = (
    folder("programs"),
    folder("programs/bin"),
    ("programs/lib/tool.js", {"mode": 0o6755, "uid": 0}, b"run"),
    ("programs/lib/data", {"mode": 0o600}, b"data"),
    link("programs/bin/tool", "../lib/tool.js"),
    link("programs/lib/again", "programs/lib/data", tarfile.LNKTYPE),
)


def test_the_folder_lies_over_the_image_below(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/own").write_text("own")
    made = tmp_path / "made"
    words = ["-noappend", "-quiet", "-no-progress", "-comp", "zstd", "-root-mode", "755"]
    subprocess.run(["mksquashfs", root, made, *words], check=True, stdout=subprocess.PIPE)
    put_image(
        tmp_path / "images", base=made.read_bytes(), toolkit_source=build.toolkit_source()
    )  # fmt: skip
    below = store.find_image(tmp_path)
    steps: list[str] = []
    tar = archive(tmp_path / "t.tar", *GOOD)
    found = added.add(tmp_path, RECIPE, below, tar, lambda what, _: steps.append(what))
    assert found.name == "tool"
    assert found.env["PATH"].startswith("/programs/bin:/usr/local/sbin:")
    assert "PATH" not in below.env
    assert "packing the programs" in steps
    record = build.older_record(store.image_folder(tmp_path, "tool"))
    assert record is not None
    assert record.base_source == build.base_source(RECIPE)
    said = subprocess.check_output(["unsquashfs", "-lln", found.base], text=True)
    lines = [line for line in said.splitlines() if "squashfs-root" in line]
    rows = {line.split("squashfs-root")[1]: line.split()[:2] for line in lines}
    assert rows[""] == ["drwxr-xr-x", "0/0"]
    assert rows["/usr/bin/own"][0].startswith("-")
    assert rows["/programs/lib/tool.js"] == ["-rwxr-xr-x", "0/0"]  # without its privileges
    assert rows["/programs/lib/data"] == ["-rw-r--r--", "0/0"]
    assert rows["/programs/bin/tool -> ../lib/tool.js"][1] == "0/0"
    cat = ["unsquashfs", "-cat", str(found.base), "programs/lib/again"]
    assert subprocess.check_output(cat) == b"data"


REFUSED: tuple[tuple[Entry, ...], ...] = (
    (),
    (folder("programs"), folder("etc")),
    (folder("programs"), ("etc/passwd", {}, b"x")),
    (link("programs", "/etc"),),
    (folder("programs"), link("programs/up", "/"), ("programs/up/etc/cron", {}, b"x")),
    (folder("programs"), ("programs/../etc/cron", {}, b"x")),
    (folder("programs"), link("programs/hard", "etc/shadow", tarfile.LNKTYPE)),
)


@pytest.mark.parametrize("members", REFUSED)
def test_what_is_not_in_the_folder_alone_is_refused(tmp_path: Path, members: Any) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(ImageRefused):
        added.unpack(archive(tmp_path / "t.tar", *members), target)
    assert not (tmp_path / "etc").exists()


def test_no_link_is_followed_while_files_are_written(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    within: tuple[Entry, ...] = (
        folder("programs"),
        link("programs/lib", str(outside)),
        ("programs/lib", {}, b"a file in the link's place"),
        ("programs/null", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}, b""),
    )
    added.unpack(archive(tmp_path / "t.tar", *within), target)
    assert (target / "programs/lib").read_bytes() == b"a file in the link's place"
    assert not (target / "programs/null").exists()
    assert list(outside.iterdir()) == []


def test_an_archive_that_ends_early_is_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path / "t.tar", folder("programs"), ("programs/a", {}, b"x" * 5000))
    (tmp_path / "half.tar").write_bytes(whole.read_bytes()[:3000])
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(ImageRefused):
        added.unpack(tmp_path / "half.tar", target)


@pytest.mark.parametrize(
    "facts",
    [
        {"below": "base"},
        {"install": "x {prefix}"},
        {"below": "base", "install": "npm install -g x"},
        {"below": "base", "install": "x {prefix}", "packages": ("git",)},
    ],
)
def test_a_recipe_is_of_one_kind(facts: Any) -> None:
    with pytest.raises(VMError):
        Recipe("tool", "", **facts)
