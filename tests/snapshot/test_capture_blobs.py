from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from blake3 import blake3

from snapshot.blobs import BlobStore, QuotaExceeded
from snapshot.errors import StoreDamaged

if TYPE_CHECKING:
    from pathlib import Path


def test_gives_back_what_was_put(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")

    digest = store.put(b"content")

    assert digest == blake3(b"content").hexdigest()
    assert store.read(digest) == b"content"
    assert store.read(digest, limit=7) == b"content"
    assert store.read(digest, limit=6) is None
    assert (store.has(digest), store.size(digest), store.used) == (True, 7, 7)
    assert store.path(digest) == tmp_path / "blobs" / digest[:2] / digest
    assert stat.S_IMODE(store.path(digest).stat().st_mode) == 0o600


def test_knows_what_it_lacks(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    digest = blake3(b"other").hexdigest()

    assert (store.has(digest), store.size(digest), store.read(digest)) == (False, None, None)


@pytest.mark.parametrize("name", ["", "..", "a" * 63, "A" * 64, "../" + "a" * 61, "a" * 64 + "\n"])
def test_a_name_is_a_digest(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no blake3 name"):
        BlobStore(tmp_path / "blobs").path(name)


def test_a_writer_without_commit_leaves_nothing(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")

    with store.writer() as writer:
        writer.write(b"half")

    assert list((tmp_path / "blobs").iterdir()) == []
    assert store.used == 0


def test_pieces_make_one_content(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")

    with store.writer() as writer:
        writer.write(b"one ")
        writer.write(b"two")
        digest = writer.commit()

    assert store.read(digest) == b"one two"


def test_equal_contents_count_once(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs", quota=10)
    store.put(b"12345678")

    store.put(b"12345678")

    assert store.used == 8


def test_the_quota_holds_before_the_bytes_are_written(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs", quota=10)
    store.put(b"12345678")

    with store.writer() as writer:
        writer.write(b"12")
        with pytest.raises(QuotaExceeded) as caught:
            writer.write(b"3")

    assert caught.value.hint
    assert store.used == 8


def test_damage_is_seen(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    digest = store.put(b"content")
    store.path(digest).write_bytes(b"c0ntent")

    with pytest.raises(StoreDamaged):
        store.read(digest)


def test_a_new_store_counts_and_cleans(tmp_path: Path) -> None:
    root = tmp_path / "blobs"
    BlobStore(root).put(b"content")
    (root / ".blob-left").write_bytes(b"of a killed writer")

    store = BlobStore(root)

    assert store.used == 7
    assert not (root / ".blob-left").exists()
    assert len(os.listdir(root)) == 1


def test_pruning_keeps_what_is_needed_and_gives_the_room_back(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs", quota=10)
    kept, gone = store.put(b"12345"), store.put(b"abcde")

    assert store.prune({kept, "f" * 64}) == 5

    assert (store.has(kept), store.has(gone)) == (True, False)
    assert (store.used, store.count) == (5, 1)
    assert store.put(b"ABCDE")
    assert BlobStore(tmp_path / "blobs").used == 10
