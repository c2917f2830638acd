"""What a merge keeps: one archive, read by place or by tar, and folders of earlier versions."""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.writeback_images import ARCHIVE, Images, ImageWriter
from snapshot.writeback_journal import read_journal
from tests.snapshot.merge_help import Nodes, Scene, full, text, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.usefixtures("no_sync")

CONTENTS = st.dictionaries(
    st.from_regex(r"(pre|post)/[0-9]{1,6}(\.xattrs)?", fullmatch=True),
    st.lists(st.binary(max_size=2000), max_size=3),
)


def by_tar(archive: Path) -> dict[str, bytes]:
    """Return what the archive holds for somebody who has nothing but tar."""
    with tarfile.open(archive) as opened:
        files = {member.name: opened.extractfile(member) for member in opened}
        return {name: file.read() for name, file in files.items() if file is not None}


@given(CONTENTS)
def test_every_content_comes_back_by_its_place_and_by_tar(
    contents: Mapping[str, list[bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = ImageWriter(folder)
        for image, chunks in contents.items():
            writer.add(image, chunks)
        writer.close()
        whole = {image: b"".join(chunks) for image, chunks in contents.items()}
        images = Images(folder, writer.index)
        assert {image: images.read(image) for image in whole} == whole
        assert {image: images.put_out(image).read_bytes() for image in whole} == whole
        if whole:
            assert by_tar(folder / ARCHIVE) == whole


def test_a_content_that_failed_half_way_leaves_the_others_whole(tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield b"x" * 5000
        raise OSError

    writer = ImageWriter(tmp_path)
    writer.add("pre/0", [b"one"])
    with pytest.raises(OSError):  # noqa: PT011 - it is the one raised above
        writer.add("pre/1", failing())
    writer.add("pre/2", [b"two"])
    writer.close()
    assert [writer.read(name) for name in writer.index] == [b"one", b"two"]
    with pytest.raises(FileNotFoundError):
        writer.read("pre/1")


def test_a_merge_keeps_two_files_however_many_it_writes(memory_path: Path) -> None:
    base: Nodes = {b"d/f%d" % n: text(f"{n}\n") for n in range(60)}
    agent: Nodes = {path: text(content + b"more\n") for path, (_, content) in base.items()}
    made = Scene(memory_path / "ws", memory_path / "merges", base, agent)
    kept = made.merges / made.merge().merge
    assert {path.name for path in kept.rglob("*")} == {"journal.jsonl", ARCHIVE}
    found = by_tar(kept / ARCHIVE)
    assert {found[f"pre/{n}"] for n in range(60)} == {content for _, content in base.values()}


def test_a_merge_of_an_earlier_version_is_taken_back(memory_path: Path) -> None:
    """That one had a file for each content, and no places in its journal."""
    made = full(memory_path)
    before = tree_of(made.root)
    merge = made.merge().merge
    folder = made.merges / merge
    record = read_journal(folder)
    assert record is not None
    for name in by_tar(folder / ARCHIVE):
        record.images.put_out(name)
    (folder / ARCHIVE).unlink()
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]
    for line in lines:
        line.pop("images", None)
    lines[0]["v"] = 1
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert made.undo(merge).conflicts == ()
    assert tree_of(made.root) == before
