from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.errors import StoreDamaged
from snapshot.manifest import Entry, Manifest

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = "ab" * 32

NAMES = st.binary(min_size=1, max_size=6).filter(
    lambda name: b"/" not in name and b"\0" not in name
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
ENTRIES = st.builds(
    Entry,
    kind=st.just("file"),
    mode=st.integers(0, 0o777),
    size=st.integers(0, 2**50),
    mtime_ns=st.integers(-(2**62), 2**62),
    digest=st.binary(min_size=32, max_size=32).map(bytes.hex),
    target=st.just(b""),
    tracked=st.booleans(),
) | st.builds(
    Entry,
    kind=st.just("link"),
    mode=st.just(0o777),
    size=st.just(0),
    mtime_ns=st.integers(0, 2**62),
    digest=st.just(""),
    target=st.binary(min_size=1, max_size=20),
    tracked=st.booleans(),
)
TREES = st.dictionaries(PATHS, ENTRIES, max_size=30)


@given(TREES)
def test_holds_what_was_put_in(tree: dict[bytes, Entry]) -> None:
    manifest = Manifest(tree.items())

    assert len(manifest) == len(tree)
    assert list(manifest) == sorted(tree)
    assert dict(manifest.items()) == tree
    assert all(manifest[path] == entry for path, entry in tree.items())
    assert manifest.get(b"no/such/path") == tree.get(b"no/such/path")


@given(tree=TREES)
def test_survives_the_file(
    tree: dict[bytes, Entry], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("manifest") / "manifest.json"
    manifest = Manifest(tree.items())

    manifest.save(path)

    assert Manifest.load(path) == manifest
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in path.parent.iterdir()] == ["manifest.json"]


@given(TREES, PATHS)
def test_finds_what_is_under_a_folder(tree: dict[bytes, Entry], folder: bytes) -> None:
    manifest = Manifest(tree.items())
    below = {path for path in tree if path.startswith(folder + b"/")}

    assert {path for path, _ in manifest.under(folder)} == below
    names = {path[len(folder) + 1 :] for path in below}
    assert set(manifest.children(folder)) == {name for name in names if b"/" not in name}


def test_children_skips_whole_subtrees() -> None:
    folder = Entry("dir", 0o755)
    paths = [b"a", b"a-b", b"a/x", b"a/x/y", b"a/x.z", b"a/x0", b"a0", b"b"]
    manifest = Manifest((path, folder) for path in paths)

    assert list(manifest.children(b"a")) == [b"x", b"x.z", b"x0"]
    assert list(manifest.children(b"")) == [b"a", b"a-b", b"a0", b"b"]


def test_finds_a_path_by_its_content() -> None:
    other = "cd" * 32
    manifest = Manifest([(b"a", Entry("dir", 0o755)), (b"b", Entry("file", 0o644, 1, 0, DIGEST))])

    assert manifest.path_of(DIGEST) == b"b"
    assert manifest.path_of(other) is None
    assert manifest.path_of("00" * 32) is None


def test_refuses_a_path_twice() -> None:
    entry = Entry("dir", 0o755)
    with pytest.raises(ValueError, match="twice"):
        Manifest([(b"a", entry), (b"a", entry)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]\n",
        '{"manifest":2,"count":0}\n',
        '{"manifest":1,"count":1}\n',
        '{"manifest":1,"count":1}\n["a","pipe",0,0,0,"",0]\n',
        '{"manifest":1,"count":1}\n["a","file"]\n',
        '{"manifest":1,"count":1}\n[1,"file",0,0,0,"",0]\n',
        '{"manifest":1,"count":1}\n["a","file",0,-1,0,"",0]\n',
        '{"manifest":1,"count":1}\n["a","file",0,1,0,"zz",0]\n',
        '{"manifest":1,"count":2}\n["a","dir",0,0,0,"",0]\n["a","dir",0,0,0,"",0]\n',
        '{"manifest":1,"count":2}\n["b","dir",0,0,0,"",0]\n["a","dir",0,0,0,"",0]\n',
        '{"manifest":1,"count":1}\n["a","file",0,1,0,"abcd",0]\n',
    ],
)
def test_refuses_another_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text)

    with pytest.raises(StoreDamaged) as caught:
        Manifest.load(path)

    assert caught.value.hint


def test_git_modes() -> None:
    assert Entry("file", 0o600).git_mode == "100644"
    assert Entry("file", 0o744).git_mode == "100755"
    assert Entry("file", 0o611).git_mode == "100644"
    assert Entry("link", 0o777).git_mode == "120000"
    assert Entry("dir", 0o755).git_mode == "040000"
    assert Entry("special", 0o644).git_mode == ""


def test_stays_light() -> None:
    count = 50_000
    manifest = Manifest(
        (
            b"package%d/module%d/file_%d.py" % (n % 40, n % 1000, n),
            Entry("file", 0o644, n, n, DIGEST),
        )
        for n in range(count)
    )
    columns = (getattr(manifest, name) for name in ("_names", "_ends", "_kinds", "_modes"))
    more = (getattr(manifest, name) for name in ("_sizes", "_mtimes", "_digests"))

    total = sum(len(column) * getattr(column, "itemsize", 1) for column in (*columns, *more))

    assert total < 120 * count
