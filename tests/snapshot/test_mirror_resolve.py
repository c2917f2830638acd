from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.changes import Change, ChangeSet, compare
from snapshot.errors import ListingRefused
from snapshot.ignore import GitRules, IgnoreRules, UserRules
from snapshot.manifest import Entry, Manifest
from snapshot.mirror import FileKey, Limits, in_git, plan_fetches, resolve
from tests.snapshot.overlay_model import Upper

A, B, C = ("aa" * 32, "bb" * 32, "cc" * 32)
DIR = Entry("dir", 0o755)


def file(digest: str = A, mode: int = 0o644, size: int = 10) -> Entry:
    return Entry("file", mode, size, 0, digest)


def tree(**entries: Entry) -> Manifest:
    """Make a manifest; `__` in a keyword is a slash, folders are made as needed."""
    found = {name.replace("__", "/").encode(): entry for name, entry in entries.items()}
    for path in list(found):
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            found.setdefault(path, DIR)
    return Manifest(found.items())


def folder(path: str, **more: object) -> Upper:
    return Upper(path.encode(), "dir", mode=0o40755, **more)  # type: ignore[arg-type]  # fields of any type


def upper(path: str, inode: int = 1, size: int = 10, **more: object) -> Upper:
    made = {"allocated": 4096, **more}
    return Upper(path.encode(), "file", inode=inode, size=size, **made)  # type: ignore[arg-type]  # fields of any type


def key(entry: Upper) -> FileKey:
    return FileKey(entry.inode, entry.size, entry.mtime_ns, entry.ctime_ns)


def changes(base: Manifest, *listing: Upper, contents: dict[int, str] | None = None) -> ChangeSet:
    """Compare, with the contents given by inode."""
    known = {key(e): (contents or {}).get(e.inode, "") for e in listing if e.kind == "file"}
    agent = resolve(base, listing, {k: digest for k, digest in known.items() if digest})
    return compare(base, agent)


HOSTILE = [
    [Upper(b"", "file")],
    [Upper(b"/etc/passwd", "file")],
    [Upper(b"..", "dir")],
    [folder("a"), Upper(b"a/../x", "file")],
    [folder("a"), Upper(b"a/.", "file")],
    [folder("a"), Upper(b"a//x", "file")],
    [folder("a"), Upper(b"a/", "file")],
    [Upper(b"a\0b", "file")],
    [Upper(b"n" * 256, "file")],
    [Upper(b"a/" * 40_000 + b"x", "file")],
    [Upper(b"a/x", "file")],
    [Upper(b"a", "file"), Upper(b"a/x", "file")],
    [Upper(b"a", "whiteout"), Upper(b"a/x", "file")],
    [Upper(b"a", "file"), Upper(b"a", "file")],
    [folder("a"), folder("a")],
    [Upper(b"a", "pipe")],
    [Upper(b"a", "file", size=-1)],
    [Upper(b"a", "link", target=b"")],
    [Upper(b"a", "link", target=b"x\0y")],
    *([folder("a", redirect=text)] for text in (b"/", b"..", b"a/b", b"/a/../b", b"//a", b"a\0")),
    [folder("a", redirect=b"/" + b"n" * 256)],
]


@pytest.mark.parametrize("listing", HOSTILE)
def test_a_listing_that_cannot_be_is_refused(listing: list[Upper]) -> None:
    base = tree(a__b=file())

    for call in (resolve, plan_fetches):
        with pytest.raises(ListingRefused) as caught:
            call(base, listing, {})
        assert caught.value.hint


def test_too_many_entries_are_refused() -> None:
    listing = [upper(f"f{n}", n) for n in range(11)]

    resolve(tree(), listing, {}, Limits(entries=11))
    with pytest.raises(ListingRefused, match="more than 10"):
        resolve(tree(), listing, {}, Limits(entries=10))


def test_forged_redirects_cannot_multiply_the_base() -> None:
    base = Manifest([(b"d", DIR), *((b"d/f%d" % n, file()) for n in range(100))])
    listing = [folder(f"copy{n}", redirect=b"/d") for n in range(50)]

    with pytest.raises(ListingRefused, match="bring along"):
        resolve(base, listing, {}, Limits(entries=1000))


@given(
    st.lists(
        st.builds(
            Upper,
            path=st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=4).map(
                b"/".join
            ),
            kind=st.sampled_from(["file", "dir", "link", "whiteout", "special"]),
            opaque=st.booleans(),
            redirect=st.sampled_from([b"", b"a", b"/a", b"/b/c", b"/a/b", b"/nowhere"]),
            mode=st.integers(0, 0o177777),
            target=st.just(b"t"),
        ),
        max_size=12,
    )
)
def test_any_listing_is_resolved_or_refused(listing: list[Upper]) -> None:
    base = tree(a__b__c=file(), b__c__a=file(B), c=file(C))
    try:
        agent = resolve(base, listing, {})
    except ListingRefused:
        return
    seen = dict(agent.items())
    for path in seen:
        above = path.rpartition(b"/")[0]
        assert not above or seen[above].entry.kind == "dir"
    assert not agent.gone & set(seen)
    compare(base, agent)


def test_a_redirect_to_what_is_not_there_brings_nothing() -> None:
    base = tree(a=file())

    for target in (b"/none", b"/a", b"none"):
        agent = resolve(base, [folder("x", redirect=target)], {})
        assert set(dict(agent.items())) == {b"a", b"x"}


def test_setuid_bits_are_not_taken_over() -> None:
    agent = resolve(tree(), [upper("a", mode=0o104755)], {})

    assert agent.present[b"a"].entry.mode == 0o755


def test_plan_fetches_one_content_an_inode_and_small_ones_first() -> None:
    listing = [
        upper("big", 1, 500),
        upper("hard", 1, 500),
        upper("small", 2, 5),
        upper("had", 3, 9),
    ]

    plan = plan_fetches(tree(), listing, {key(listing[3]): A})

    assert [(item.path, item.inode, item.size) for item in plan] == [
        (b"small", 2, 5),
        (b"big", 1, 500),
    ]
    assert plan[0].key == key(listing[2])


def test_plan_leaves_out_what_is_never_fetched() -> None:
    limits = Limits(file_bytes=10 << 20)
    listing = [
        upper("large", 1, (10 << 20) + 1, allocated=20 << 20),
        upper("sparse", 2, 8 << 20, allocated=4096),
        upper("small_sparse", 3, 4096, allocated=0),
        Upper(b"fifo", "special"),
        Upper(b"link", "link", target=b"x"),
        folder(".git"),
        upper(".git/index", 4),
        folder("sub"),
        folder("sub/.git"),
        upper("sub/.git/HEAD", 5),
        upper("x.log", 6),
    ]
    rules = GitRules()
    rules.add(b"", ["*.log"])
    ignore = IgnoreRules(UserRules(()), rules)

    plan = plan_fetches(tree(), listing, {}, limits, ignore)
    notes = {path: item.note for path, item in resolve(tree(), listing, {}, limits).present.items()}

    assert [item.path for item in plan] == [b"small_sparse"]
    assert "larger" in notes[b"large"]
    assert notes[b"sparse"] == "sparse file"
    assert notes[b"fifo"] == "special file"
    assert "not fetched" in notes[b"small_sparse"]
    assert notes[b"link"] == ""


def test_plan_holds_the_quota() -> None:
    listing = [upper(f"f{n}", n, 40) for n in range(5)]
    known = {key(listing[0]): A}

    plan = plan_fetches(tree(), listing, known, Limits(total_bytes=125))

    assert [item.inode for item in plan] == [1, 2]


def test_kinds_of_change() -> None:
    base = tree(
        same=file(), edit=file(), mode=file(), both=file(), gone=file(B), kind=file(C), at=file(A)
    )
    found = changes(
        base,
        Upper(b"gone", "whiteout"),
        upper("at", 1),
        upper("both", 2, mode=0o100755),
        upper("edit", 3, 11),
        Upper(b"kind", "link", target=b"elsewhere"),
        upper("mode", 4, mode=0o100755),
        upper("new", 5),
        contents={1: A, 2: B, 3: C, 4: A, 5: "dd" * 32},
    )

    assert {change.path: change.kind for change in found.changes} == {
        b"both": "modified",
        b"edit": "modified",
        b"gone": "deleted",
        b"kind": "type",
        b"mode": "mode",
        b"new": "added",
    }
    assert [change.path for change in found.changes] == sorted(c.path for c in found.changes)


def test_only_the_executable_bit_is_a_mode() -> None:
    base = tree(a=file(mode=0o664))

    assert changes(base, upper("a", mode=0o100600), contents={1: A}).changes == ()


def test_a_file_that_was_not_fetched_is_a_change_with_a_note() -> None:
    found = changes(tree(a=file()), upper("a"), upper("b", 2))

    assert [(c.path, c.kind, bool(c.note)) for c in found.changes] == [
        (b"a", "modified", True),
        (b"b", "added", True),
    ]


def test_folders_are_listed_only_where_nothing_else_shows_them() -> None:
    base = tree(full__x=file(), hollow=DIR, swap=file(B), dir__x=file(C))
    found = changes(
        base,
        Upper(b"full", "whiteout"),
        Upper(b"hollow", "whiteout"),
        folder("new"),
        folder("new/inner"),
        upper("dir", 5),
        folder("swap"),
        upper("swap/in", 6),
        contents={5: A, 6: "ee" * 32},
    )

    kinds = {(c.path, c.kind) for c in found.changes}
    assert kinds == {
        (b"full/x", "deleted"),
        (b"hollow", "deleted"),
        (b"new/inner", "added"),
        (b"dir", "type"),
        (b"dir/x", "deleted"),
        (b"swap", "type"),
        (b"swap/in", "added"),
    }


def test_git_is_never_listed() -> None:
    base = tree(**{".git__HEAD": file(), ".git__index": file(), "sub__.git__HEAD": file()})

    index = changes(base, folder(".git"), upper(".git/index", 1))
    commit = changes(base, folder(".git"), upper(".git/HEAD", 2), upper("a", 3))
    nested = changes(base, folder("sub"), Upper(b"sub/.git", "whiteout"))

    assert (index.changes, index.git_changed) == ((), False)
    assert ([c.path for c in commit.changes], commit.git_changed) == ([b"a"], True)
    assert (nested.changes, nested.git_changed) == ((), True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b".git", True),
        (b".git/x", True),
        (b"a/.git", True),
        (b"a/.git/x", True),
        (b".gitignore", False),
        (b"a/.github/x", False),
        (b"x.git/y", False),
    ],
)
def test_what_is_inside_git(path: bytes, expected: bool) -> None:
    assert in_git(path) is expected


def test_ignored_changes_are_counted_and_withheld_ones_noted() -> None:
    rules = GitRules()
    rules.add(b"", ["*.log"])
    ignore = IgnoreRules(UserRules(()), rules, withheld=[b".env", b".aws"])
    listing = [
        upper(".env", 1),
        folder(".aws"),
        upper(".aws/config", 2),
        folder("node_modules"),
        upper("node_modules/x.js", 3),
        upper("a.log", 4),
        upper("b.py", 5),
    ]
    contents = {key(entry): A for entry in listing if entry.kind == "file"}
    base = tree(old__log=file())

    found = compare(base, resolve(base, listing, contents), ignore)

    assert found.ignored == 2
    assert [(c.path, bool(c.note)) for c in found.changes] == [
        (b".aws/config", True),
        (b".env", True),
        (b"b.py", False),
    ]


def renames(found: ChangeSet) -> dict[bytes, bytes]:
    return {c.path: c.old_path for c in found.changes if c.kind == "renamed"}


def test_equal_content_is_a_rename() -> None:
    base = tree(old=file(B), stay=file(A))
    found = changes(base, Upper(b"old", "whiteout"), upper("new", 1), contents={1: B})

    assert renames(found) == {b"new": b"old"}
    assert found.changes[0] == Change(b"new", "renamed", file(B), file(B), b"old")


def test_a_copy_is_no_rename() -> None:
    found = changes(tree(old=file(B)), upper("new", 1), contents={1: B})

    assert [(c.path, c.kind) for c in found.changes] == [(b"new", "added")]


def test_equal_contents_pair_by_name_and_folder() -> None:
    base = tree(p__one=file(B), p__two=file(B), p__only=file(C), q__one=file(B))
    found = changes(
        base,
        *(Upper(path, "whiteout") for path in (b"p", b"q")),
        folder("r"),
        upper("r/one", 1),
        upper("r/only", 2),
        upper("r/two", 3),
        folder("s"),
        upper("s/one", 4),
        contents={1: B, 2: C, 3: B, 4: B},
    )

    assert renames(found) == {
        b"r/one": b"p/one",
        b"r/two": b"p/two",
        b"r/only": b"p/only",
        b"s/one": b"q/one",
    }


def test_empty_files_pair_only_along_their_folder() -> None:
    empty = file(A, size=0)
    base = tree(p__init=empty, p__x=file(B), lone=empty)
    gone = [Upper(b"lone", "whiteout"), Upper(b"p", "whiteout")]
    found = changes(
        base,
        *gone,
        folder("r"),
        upper("r/init", 1, 0),
        upper("r/x", 2),
        upper("else", 3, 0),
        contents={1: A, 2: B, 3: A},
    )

    assert renames(found) == {b"r/init": b"p/init", b"r/x": b"p/x"}


def similar(old: bytes, new: bytes) -> ChangeSet:
    texts = {A: old, B: new}
    base = tree(old=file(A, size=len(old)))
    listing = [Upper(b"old", "whiteout"), upper("new", 1, len(new))]
    agent = resolve(base, listing, {key(listing[1]): B})
    return compare(base, agent, None, texts.get)


def test_half_of_the_lines_is_a_rename() -> None:
    old = b"".join(b"line %d\n" % n for n in range(20))
    edited = old.replace(b"line 3\n", b"other\n") + b"end\n"
    half_gone = b"".join(b"line %d\n" % n for n in range(6)) + b"x" * 100

    assert renames(similar(old, edited)) == {b"new": b"old"}
    assert renames(similar(old, half_gone)) == {}
    assert renames(similar(b"", b"")) == {}


def test_a_renamed_folder_keeps_edited_files_together() -> None:
    base = tree(a__x=file(A), a__y=file(B))
    found = changes(
        base,
        Upper(b"a", "whiteout"),
        folder("b", redirect=b"a"),
        upper("b/x", 1),
        contents={1: C},
    )

    assert renames(found) == {b"b/x": b"a/x", b"b/y": b"a/y"}


def test_many_files_stay_quick() -> None:
    old = {b"old/f%d" % n: file(f"{n:064x}") for n in range(3000)}
    base = Manifest([(b"old", DIR), *old.items()])
    listing = [Upper(b"old", "whiteout"), folder("new")]
    listing += [upper(f"new/f{n}", n) for n in range(3000)]
    contents = {key(entry): f"{entry.inode:064x}" for entry in listing[2:]}

    found = compare(base, resolve(base, listing, contents), None, lambda digest: b"x\n" * 5)

    assert len(renames(found)) == 3000
