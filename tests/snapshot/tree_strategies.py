"""Small trees for hypothesis: every sort of entry, folders within folders, nothing below a file."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.snapshot.merge_help import FOLDER, Node, Nodes, link, text

PATHS = [b"a", b"a/b", b"a/b/c", b"a/d", b"e", b"e/f", b"g"]
NODES: list[Node] = [
    text("1\n2\n3\n"),
    text("1\nTWO\n3\n"),
    text("1\n2\n3\n4", "100755"),
    text(""),
    text(b"\0\1"),
    link("g"),
    FOLDER,
]


@st.composite
def trees(draw: st.DrawFn) -> Nodes:
    """Return a tree in which nothing lies below a file."""
    nodes: Nodes = {}
    for path in PATHS:
        above = [path.rsplit(b"/", count)[0] for count in range(1, path.count(b"/") + 1)]
        blocked = any(up in nodes and nodes[up] != FOLDER for up in above)
        if draw(st.booleans()) and not blocked:
            nodes[path] = draw(st.sampled_from(NODES))
    return nodes


def folders_of(nodes: Nodes) -> set[bytes]:
    """Return every folder of a tree, also those that are only on the way to a file."""
    found = {path for path, node in nodes.items() if node == FOLDER}
    for path in nodes:
        parts = path.split(b"/")
        found |= {b"/".join(parts[:depth]) for depth in range(1, len(parts))}
    return found


def without_full_folders(nodes: Nodes) -> Nodes:
    """Leave out folders that hold something: they are no entries of a change set."""
    full = {path for path in nodes if any(other.startswith(path + b"/") for other in nodes)}
    return {path: node for path, node in nodes.items() if path not in full}
