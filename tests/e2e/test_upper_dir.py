"""What the agent changed, as a real guest lists it and hands it out on the bulk port."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.e2e import vmlab
from vm.machine.bulk import BulkClient, GuestError

if TYPE_CHECKING:
    from vm.machine.entries import UpperEntry

pytestmark = pytest.mark.vm

LabVM = vmlab.LabVM

MAKE_CHANGES = r"""
cd /workspace
echo changed >> README.md
mv docs papers
rm -r src/deep && mkdir src/deep && echo new > src/deep/other.txt
rm src/main.py
ln -s /etc/passwd link
echo twice > one && ln one two
truncate -s 1G sparse && printf end | dd of=sparse bs=1 seek=1000000 conv=notrunc 2>/dev/null
mkfifo pipe
mkdir -p 'a/b'; printf hostile > "$(printf 'a/b/new\nline \377 "q" [x]')"
printf x > "$(printf 'n%.0s' $(seq 255))"
chmod 4755 one
"""


async def _entries(vm: LabVM) -> dict[bytes, UpperEntry]:
    listing = await (await vm.bulk()).list_upper("workspace", 1000, 1 << 20)
    assert not listing.truncated
    return {entry.path: entry for entry in listing.entries}


async def _content(vm: LabVM, entry: UpperEntry, cap: int = 1 << 20) -> bytes:
    data = bytearray()
    done = await (await vm.bulk()).fetch("workspace", entry.path, entry.inode, cap, data.extend)
    assert (done.size, done.received, done.mtime_ns) == (len(data), len(data), entry.mtime_ns)
    return bytes(data)


async def test_every_kind_of_change_is_listed_and_fetched(forked_vm: LabVM) -> None:
    await forked_vm.sh(MAKE_CHANGES)
    found = await _entries(forked_vm)
    kinds = {path: entry.kind for path, entry in found.items()}
    hostile = b'a/b/new\nline \xff "q" [x]'
    assert kinds == {
        b"README.md": "file", b"docs": "whiteout", b"papers": "dir", b"src": "dir",
        b"src/deep": "dir", b"src/deep/other.txt": "file", b"src/main.py": "whiteout",
        b"link": "link", b"one": "file", b"two": "file", b"sparse": "file", b"pipe": "special",
        b"a": "dir", b"a/b": "dir", hostile: "file", b"n" * 255: "file",
    }  # fmt: skip
    assert found[b"papers"].redirect.strip(b"/") == b"docs"
    assert found[b"src/deep"].opaque
    assert not found[b"src"].opaque
    assert found[b"link"].target == b"/etc/passwd"
    assert found[b"one"].inode == found[b"two"].inode
    assert found[b"one"].nlink == 2
    assert found[b"one"].mode == 0o104755
    assert found[b"sparse"].size == 1 << 30
    assert found[b"sparse"].allocated < 1 << 20
    assert {entry.uid for entry in found.values() if entry.kind == "file"} == {1000}
    assert await _content(forked_vm, found[hostile]) == b"hostile"
    assert await _content(forked_vm, found[b"src/deep/other.txt"]) == b"new\n"
    assert (await _content(forked_vm, found[b"README.md"])).endswith(b"changed\n")


async def test_what_cannot_be_fetched_is_refused_and_the_link_goes_on(forked_vm: LabVM) -> None:
    await forked_vm.sh("cd /workspace; echo a > f; mkdir d; ln -s f l; mkfifo p; echo x > big")
    found, bulk = await _entries(forked_vm), await forked_vm.bulk()
    got: list[bytes] = []
    for path, inode, cap in (
        (b"f", found[b"f"].inode + 1, 100),
        (b"gone", 1, 100),
        (b"l", found[b"l"].inode, 100),
        (b"p", found[b"p"].inode, 100),
        (b"d", found[b"d"].inode, 100),
        (b"big", found[b"big"].inode, 1),
        (b"../../run/agent.sock", 1, 100),
        (b"/etc/passwd", 1, 100),
    ):
        with pytest.raises(GuestError):
            await bulk.fetch("workspace", path, inode, cap, got.append)
    assert got == []
    await bulk.ping()


async def test_a_large_file_and_the_caps_of_a_list(forked_vm: LabVM) -> None:
    await forked_vm.sh("cd /workspace; head -c 20000000 /dev/urandom > big; sha256sum big > sum")
    await forked_vm.sh("mkdir many; cd many; for n in $(seq 300); do : > $n; done")
    bulk = await forked_vm.bulk()
    listing = await bulk.list_upper("workspace", 50, 1 << 20)
    assert (len(listing.entries), listing.truncated) == (50, True)
    assert (await bulk.list_upper("workspace", 1000, 2000)).truncated
    big = (await _entries(forked_vm))[b"big"]
    assert len(await _content(forked_vm, big, 20_000_000)) == 20_000_000


async def test_bulk_links_that_are_cut_in_the_middle(forked_vm: LabVM) -> None:
    """Cut while a list or a file is on its way: the next link begins clean."""
    await forked_vm.sh("cd /workspace; head -c 3000000 /dev/zero > big; mkdir m")
    await forked_vm.sh("cd /workspace/m; touch $(seq 500)")
    big = (await _entries(forked_vm))[b"big"]
    await (await forked_vm.bulk()).close()
    path, token = forked_vm.spec.bulk_socket, forked_vm.identity.token

    def hang_up(_: bytes) -> None:
        raise InterruptedError

    for number in range(30):
        client = await BulkClient.connect(path, token, 20.0)
        if number % 3 == 0:
            assert len((await client.list_upper("workspace", 1000, 1 << 20)).entries) == 502
        elif number % 3 == 1:
            with pytest.raises(InterruptedError):
                await client.fetch("workspace", big.path, big.inode, 3_000_000, hang_up)
        else:
            asking = asyncio.create_task(client.list_upper("workspace", 1000, 1 << 20))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        await client.close()


async def test_the_root_tree_is_listed_too(forked_vm: LabVM) -> None:
    await forked_vm.sh("echo x > /opt/tool", root=True)
    listing = await (await forked_vm.bulk()).list_upper("root", 10_000, 1 << 22)
    assert b"opt/tool" in {entry.path for entry in listing.entries}
