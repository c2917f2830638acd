"""Layers become one tree: by the specification, and whatever their maker had in mind."""

from __future__ import annotations

import gzip
import io
import itertools
import struct
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.vm.oci_help import Entry, folder, hard, layer, link, merge, names, put_layers, tree_of
from vm.errors import ImageRefused
from vm.image.oci import tarread
from vm.image.oci.limits import Budget
from vm.image.oci.packing import archive
from vm.image.oci.stream import unpacked

if TYPE_CHECKING:
    from pathlib import Path


def refused(place: Path, *layers: bytes, match: str, budget: Budget | None = None) -> None:
    with pytest.raises(ImageRefused, match=match):
        merge(place, *layers, budget=budget)


class TestWhiteouts:
    def test_a_whiteout_takes_a_lower_file_and_leaves_no_trace(self, tmp_path: Path) -> None:
        low = layer(Entry("a/x", b"x"), Entry("a/y", b"y"))
        assert names(merge(tmp_path, low, layer(Entry("a/.wh.x")))) == {"a", "a/y"}

    def test_a_whiteout_takes_a_whole_folder(self, tmp_path: Path) -> None:
        low = layer(Entry("a/b/c", b"x"), Entry("d", b""))
        assert names(merge(tmp_path, low, layer(Entry(".wh.a")))) == {"d"}

    @pytest.mark.parametrize("order", [0, 1])
    def test_an_opaque_folder_hides_only_lower_layers(self, tmp_path: Path, order: int) -> None:
        """Whichever comes first within the layer."""
        low = layer(Entry("a/old", b"x"), Entry("a/deep/old", b"x"))
        entries = [Entry("a/new", b"n"), Entry("a/.wh..wh..opq")]
        high = layer(*(entries if order else reversed(entries)))
        assert names(merge(tmp_path, low, high)) == {"a", "a/new"}

    @pytest.mark.parametrize("order", [0, 1])
    def test_a_whiteout_beside_the_same_name_replaces_it(self, tmp_path: Path, order: int) -> None:
        entries = [Entry("a", b"new"), Entry(".wh.a")]
        found = merge(
            tmp_path, layer(Entry("a", b"old")), layer(*(entries if order else reversed(entries)))
        )
        assert found["a"].content == b"new"

    def test_what_storage_drivers_keep_for_themselves_is_dropped(self, tmp_path: Path) -> None:
        assert names(merge(tmp_path, layer(Entry(".wh..wh.plnk/1", b""), Entry("a")))) <= {
            "a",
            ".wh..wh.plnk",
            ".wh..wh.plnk/1",
        }
        assert names(merge(tmp_path, layer(Entry(".wh..wh.aufs"), Entry("a")))) == {"a"}

    @pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh..."])
    def test_a_whiteout_of_no_name_is_refused(self, tmp_path: Path, name: str) -> None:
        refused(tmp_path, layer(Entry(name)), match="whiteout")

    def test_of_what_is_not_there_nothing_happens(self, tmp_path: Path) -> None:
        assert merge(tmp_path, layer(Entry("no/.wh.x"), Entry(".wh.y"))) == {}


class TestPlaces:
    @pytest.mark.parametrize("name", ["../x", "a/../../x", "a/..", ".."])
    def test_traversal_is_refused(self, tmp_path: Path, name: str) -> None:
        refused(tmp_path, layer(Entry(name)), match="leads out")

    def test_an_absolute_name_means_the_images_root(self, tmp_path: Path) -> None:
        assert names(merge(tmp_path, layer(Entry("/etc/x"), Entry("./etc//./y")))) == {
            "etc", "etc/x", "etc/y",
        }  # fmt: skip

    def test_files_land_where_links_lead_within_the_image(self, tmp_path: Path) -> None:
        low = layer(folder("usr/bin"), link("bin", "usr/bin"), link("abs", "/usr/bin"))
        high = layer(Entry("bin/a", b"1"), Entry("abs/b", b"2"), Entry("usr/bin/.wh.none"))
        found = merge(tmp_path, low, high)
        assert found["usr/bin/a"].content == b"1"
        assert found["usr/bin/b"].content == b"2"
        assert found["bin"].content == b"usr/bin"

    def test_no_link_leads_out_of_the_root(self, tmp_path: Path) -> None:
        low = layer(link("up", "../../../../etc"), link("host", "/etc"))
        found = merge(tmp_path, low, layer(Entry("up/a"), Entry("host/b")))
        assert {"etc/a", "etc/b"} <= names(found)
        assert not any(name.startswith(("..", "/")) for name in found)

    def test_a_whiteout_follows_links_too(self, tmp_path: Path) -> None:
        low = layer(Entry("usr/bin/a"), link("bin", "usr/bin"))
        assert "usr/bin/a" not in merge(tmp_path, low, layer(Entry("bin/.wh.a")))

    def test_a_dangling_link_gets_its_folder(self, tmp_path: Path) -> None:
        found = merge(tmp_path, layer(link("a", "gone/deep"), Entry("a/x", b"x")))
        assert found["gone/deep/x"].content == b"x"

    def test_links_in_a_circle_are_refused(self, tmp_path: Path) -> None:
        refused(tmp_path, layer(link("a", "b"), link("b", "a"), Entry("a/x")), match="circle")

    def test_a_file_within_a_file_is_refused(self, tmp_path: Path) -> None:
        refused(tmp_path, layer(Entry("a", b"x"), Entry("a/b", b"y")), match="no folder")

    def test_a_folder_in_the_place_of_a_link_replaces_it(self, tmp_path: Path) -> None:
        low = layer(folder("real"), Entry("real/x"), link("a", "real"))
        found = merge(tmp_path, low, layer(folder("a", 0o700), Entry("a/y")))
        assert found["a"].kind == "folder"
        assert {"a/y", "real/x"} <= names(found)

    def test_a_folder_that_comes_again_keeps_what_is_in_it(self, tmp_path: Path) -> None:
        found = merge(tmp_path, layer(Entry("a/x")), layer(folder("a", 0o700, uid=5)))
        assert (found["a"].mode, found["a"].owner, "a/x" in found) == (0o700, (5, 0), True)

    def test_a_name_that_stands_twice_means_the_last(self, tmp_path: Path) -> None:
        found = merge(tmp_path, layer(Entry("a", b"1"), Entry("./a", b"22"), Entry("/a", b"333")))
        assert found["a"].content == b"333"

    def test_a_file_in_the_place_of_a_folder_takes_it_away(self, tmp_path: Path) -> None:
        assert names(merge(tmp_path, layer(Entry("a/b/c")), layer(Entry("a", b"x")))) == {"a"}

    @pytest.mark.parametrize("name", ["x" * 256, "d/" * 300 + "x"])
    def test_names_that_no_system_takes_are_refused(self, tmp_path: Path, name: str) -> None:
        refused(tmp_path, layer(Entry(name)), match="too long|too deep")

    def test_a_path_that_links_make_too_long_is_refused(self, tmp_path: Path) -> None:
        parts = ["/".join("n" * 250 for _ in range(10))]
        links = [folder(parts[0]), link("l", parts[0])]
        high = [Entry("l/" + "/".join(["m" * 250] * 10), b"x")]
        refused(tmp_path, layer(*links), layer(*high), match="too long")

    def test_the_root_keeps_our_mode_and_is_a_folder(self, tmp_path: Path) -> None:
        assert merge(tmp_path, layer(folder("./", 0o777), Entry("a"))).keys() == {"a"}
        refused(tmp_path, layer(Entry(".", b"x")), match="root")


class TestHardLinks:
    def test_to_an_earlier_layer_even_when_the_first_name_goes(self, tmp_path: Path) -> None:
        low, middle = layer(Entry("a", b"data", mode=0o640)), layer(hard("b", "a"), hard("c", "b"))
        found = merge(tmp_path, low, middle, layer(Entry(".wh.a")))
        assert names(found) == {"b", "c"}
        assert found["b"].content == found["c"].content == b"data"
        assert found["b"].twin == found["c"].twin

    def test_a_new_file_under_one_name_leaves_the_others(self, tmp_path: Path) -> None:
        low = layer(Entry("a", b"old"), hard("b", "a"))
        found = merge(tmp_path, low, layer(Entry("a", b"new")))
        assert (found["a"].content, found["b"].content) == (b"new", b"old")

    def test_through_a_link(self, tmp_path: Path) -> None:
        low = layer(Entry("usr/a", b"1"), link("l", "usr"))
        assert merge(tmp_path, low, layer(hard("b", "l/a")))["b"].content == b"1"

    def test_to_a_symbolic_link_is_the_link_itself(self, tmp_path: Path) -> None:
        assert merge(tmp_path, layer(link("l", "/etc"), hard("b", "l")))["b"].kind == "link"

    @pytest.mark.parametrize("target", ["nothing", "d", "../x", "/", "d/../../etc/passwd"])
    def test_to_what_is_no_file_is_refused(self, tmp_path: Path, target: str) -> None:
        refused(tmp_path, layer(folder("d"), hard("b", target)), match="leads")


class TestKinds:
    def test_setuid_and_setgid_of_programs_are_cleared_and_counted(self, tmp_path: Path) -> None:
        data = layer(
            Entry("su", b"x", mode=0o4755), folder("mail", 0o2775), Entry("n", mode=0o1644)
        )
        paths = put_layers(tmp_path, [data])
        tree = tree_of(paths)
        assert tree.dropped.privileged == [b"su"]
        found = merge(tmp_path, data)
        assert (found["su"].mode, found["mail"].mode, found["n"].mode) == (0o755, 0o2775, 0o1644)

    def test_devices_are_left_out_and_one_that_could_be_a_whiteout_too(
        self, tmp_path: Path
    ) -> None:
        entries = [Entry("a", type=tarfile.CHRTYPE), Entry("b", type=tarfile.BLKTYPE)]
        paths = put_layers(tmp_path, [layer(*entries, Entry("c", type=tarfile.FIFOTYPE))])
        tree = tree_of(paths)
        assert (set(tree.root.children), tree.dropped.devices) == ({b"c"}, 2)

    def test_attributes_are_no_business_of_the_image(self, tmp_path: Path) -> None:
        pax = (("SCHILY.xattr.trusted.overlay.redirect", "/etc"),)
        paths = put_layers(tmp_path, [layer(folder("a", pax=pax))])
        assert b"trusted" not in b"".join(archive(tree_of(paths), paths, Budget()))

    def test_an_unknown_kind_is_refused(self, tmp_path: Path) -> None:
        refused(tmp_path, layer(Entry("a", type=b"Z")), match="unknown kind")

    def test_an_empty_link_is_refused(self, tmp_path: Path) -> None:
        refused(tmp_path, layer(link("a", "")), match="empty link")

    @pytest.mark.parametrize(
        ("time", "kept"), [(-5.0, 0), (1e300, 2**32 - 1), (12.9, 12), (2.0**33, 2**32 - 1)]
    )
    def test_times_fit_into_squashfs(self, tmp_path: Path, time: float, kept: int) -> None:
        data = layer(Entry("a", pax=(("mtime", str(time)),)))
        assert merge(tmp_path, data)["a"].mtime == kept

    @pytest.mark.parametrize("text", ["nan", "inf", "-inf", "x" * 500, ""])
    def test_times_that_are_none(self, tmp_path: Path, text: str) -> None:
        assert "a" in merge(tmp_path, layer(Entry("a", pax=(("mtime", text),))))

    @pytest.mark.parametrize("uid", ["-1", "4294967295", "99999999999999999999"])
    def test_owners_that_are_none_are_refused(self, tmp_path: Path, uid: str) -> None:
        refused(tmp_path, layer(Entry("a", pax=(("uid", uid),))), match="owner")


class TestHeaders:
    @pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
    def test_long_names_and_targets(self, tmp_path: Path, form: int) -> None:
        name, target = "d/" * 100 + "é" * 100, "t/" * 120 + "x"
        found = merge(tmp_path, layer(Entry(name, b"x"), link("l", target), form=form))
        assert found[name].content == b"x"
        assert found["l"].content == target.encode()

    def test_names_of_any_bytes(self, tmp_path: Path) -> None:
        name = b"caf\xe9\n\x1b[31m".decode("utf-8", "surrogateescape")
        raw = layer(Entry("placeholder1", b"x"))
        assert name.encode("utf-8", "surrogateescape") == b"caf\xe9\n\x1b[31m"
        info = tarfile.TarInfo(name)
        raw = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + bytes(1024)
        assert names(merge(tmp_path, raw)) == {name}

    def test_headers_for_all_that_follow_are_not_obeyed(self, tmp_path: Path) -> None:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", pax_headers={"path": "evil", "uid": "7"}) as tar:
            tar.addfile(tarfile.TarInfo("a"))
        found = merge(tmp_path, out.getvalue())
        assert (names(found), found["a"].owner) == ({"a"}, (0, 0))

    @pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
    def test_a_header_of_gigabytes_is_never_read(self, tmp_path: Path, kind: bytes) -> None:
        info = tarfile.TarInfo("x")
        info.type, info.size = kind, 6 << 30
        raw = info.tobuf(tarfile.GNU_FORMAT) + bytes(4 << 20)
        refused(tmp_path, raw, match="header is too long")

    @pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
    def test_a_chain_of_headers_ends(self, tmp_path: Path, kind: bytes) -> None:
        info = tarfile.TarInfo("x")
        info.type, info.size = kind, 512
        refused(tmp_path, (info.tobuf(tarfile.GNU_FORMAT) + bytes(512)) * 5000, match="archive")

    def test_a_broken_header_is_not_the_end(self, tmp_path: Path) -> None:
        good = layer(Entry("a", b"x"), Entry("b", b"y"))
        broken = good[:1024] + b"\xff" * 512 + good[1536:]
        refused(tmp_path, broken, match="header is broken")

    @pytest.mark.parametrize("length", [100, 512, 700, 1024, 1200])
    def test_a_layer_that_ends_in_the_middle_is_refused(self, tmp_path: Path, length: int) -> None:
        whole = layer(Entry("a", b"x" * 2000), form=tarfile.USTAR_FORMAT)
        refused(tmp_path, whole[:length], match="archive")

    def test_no_bytes_and_no_entries_are_an_empty_layer(self, tmp_path: Path) -> None:
        assert merge(tmp_path, b"", layer(), bytes(512)) == {}

    @pytest.mark.parametrize("noise", [b"\x01" * 5000, b"GIF89a" * 500, bytes(range(256)) * 8])
    def test_what_is_no_archive_is_refused(self, tmp_path: Path, noise: bytes) -> None:
        refused(tmp_path, noise, match="archive")

    def test_a_size_that_leads_backwards_is_refused(self, tmp_path: Path) -> None:
        data = layer(Entry("a", b"x" * 600, pax=(("size", "-512"),)), Entry("b"))
        refused(tmp_path, data, match="size|archive")

    def test_any_damage_is_refused_or_harmless(self, tmp_path: Path) -> None:
        """Each byte of the headers in turn is changed: nothing but our refusal may come of it."""
        whole = layer(Entry("d/a", b"x" * 10), link("l", "d"), hard("h", "d/a"))
        for place, value in itertools.product(range(0, 1600, 3), (0, 0x35, 0xFF)):
            data = bytearray(whole)
            data[place] = value
            try:
                merge(tmp_path, bytes(data))
            except ImageRefused:
                continue


class TestSparse:
    def test_all_four_forms(self, tmp_path: Path) -> None:
        source = tmp_path / "holes"
        with source.open("wb") as file:
            file.write(b"begin")
            file.seek(1 << 20)
            file.write(b"middle")
            file.truncate(3 << 20)
        for form in ("--format=gnu", "--sparse-version=0.0", "--sparse-version=0.1",
                     "--sparse-version=1.0"):  # fmt: skip
            words = ["tar", "-C", str(tmp_path), "-cSf", "-", form]
            words += [] if "gnu" in form else ["--format=pax"]
            done = subprocess.run([*words, "holes"], capture_output=True, check=True, timeout=60)
            assert len(done.stdout) < 1 << 20
            found = merge(tmp_path, done.stdout, layer(Entry("after", b"z")))
            assert found["holes"].content == source.read_bytes()
            assert found["after"].content == b"z"

    def test_a_file_of_holes_that_is_too_large_is_refused(self, tmp_path: Path) -> None:
        pax = (("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"),
               ("GNU.sparse.realsize", str(1 << 60)))  # fmt: skip
        refused(tmp_path, layer(Entry("a", b"0\n" + bytes(510), pax=pax)), match="bytes")

    @pytest.mark.parametrize(
        "where", ["2\n5\n3\n0\n2\n", "1\n-1\n3\n", "1\n90\n30\n", "1\n0\n-3\n"]
    )
    def test_a_map_that_lies_is_refused(self, tmp_path: Path, where: str) -> None:
        pax = (("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "100"))
        data = where.encode().ljust(512, b"\0") + b"abcdef"
        refused(tmp_path, layer(Entry("a", data, pax=pax)), match="archive")


class TestBombs:
    def test_more_bytes_than_allowed(self, tmp_path: Path) -> None:
        bomb = gzip.compress(layer(Entry("a", bytes(8 << 20))))
        assert len(bomb) < 64 << 10
        refused(tmp_path, bomb, match="unpacks to more", budget=Budget(total=1 << 20))

    def test_bytes_after_the_end_of_the_archive_count_too(self, tmp_path: Path) -> None:
        bomb = gzip.compress(layer(Entry("a")) + bytes(8 << 20))
        refused(tmp_path, bomb, match="unpacks to more", budget=Budget(total=1 << 20))

    def test_one_file_that_is_too_large(self, tmp_path: Path) -> None:
        data = layer(Entry("a", bytes(3000)))
        refused(tmp_path, data, match="3000 bytes", budget=Budget(entry=2999))

    def test_a_size_that_is_only_said_is_refused_before_it_is_read(self, tmp_path: Path) -> None:
        info = tarfile.TarInfo("a")
        info.size = 1 << 50
        refused(tmp_path, info.tobuf(tarfile.GNU_FORMAT), match="bytes")

    def test_more_entries_than_allowed_those_that_are_implied_too(self, tmp_path: Path) -> None:
        many = layer(*(Entry(f"f{number}") for number in range(20)))
        refused(tmp_path, many, match="more entries", budget=Budget(entries=19))
        deep = layer(Entry("a/b/c/d/e/f"))
        refused(tmp_path, deep, match="more entries", budget=Budget(entries=5))

    def test_names_that_fill_the_memory(self, tmp_path: Path) -> None:
        long = layer(*(Entry(f"{'n' * 200}/{number}") for number in range(50)))
        refused(tmp_path, long, match="names are longer", budget=Budget(text=5000))

    def test_links_that_fill_the_time(self, tmp_path: Path) -> None:
        low = layer(folder("d"), link("l", "./" * 10 + "d/" + "../d/" * 200))
        high = layer(*(Entry(f"l/{number}") for number in range(50)))
        refused(tmp_path, low, high, match="links lead further", budget=Budget(steps=5000))


class TestPacked:
    def test_gzip_in_pieces_with_padding(self, tmp_path: Path) -> None:
        data = layer(Entry("a", b"x" * 5000))
        packed = gzip.compress(data[:700]) + gzip.compress(data[700:]) + bytes(1000)
        assert merge(tmp_path, packed)["a"].content == b"x" * 5000

    def test_zstd(self, tmp_path: Path) -> None:
        data = layer(Entry("a", b"x" * 500_000))
        words = ["zstd", "-qc"]
        packed = subprocess.run(words, input=data, capture_output=True, check=True, timeout=60)
        assert merge(tmp_path, packed.stdout)["a"].content == b"x" * 500_000
        refused(tmp_path, packed.stdout[:-3], match="damaged|middle")

    @pytest.mark.parametrize("cut", [5, 20, 60])
    def test_gzip_that_is_cut_or_damaged(self, tmp_path: Path, cut: int) -> None:
        packed = gzip.compress(layer(Entry("a", bytes(range(256)) * 20)))
        refused(tmp_path, packed[:-cut], match="middle|damaged")
        hurt = bytearray(packed)
        hurt[len(hurt) // 2] ^= 0x55
        refused(tmp_path, bytes(hurt), match="damaged|archive|middle")

    def test_rubbish_after_gzip_is_refused(self, tmp_path: Path) -> None:
        refused(tmp_path, gzip.compress(layer(Entry("a"))) + b"rubbish", match="damaged")

    def test_a_layer_that_changes_meanwhile_is_noticed(self, tmp_path: Path) -> None:
        paths = put_layers(tmp_path, [layer(Entry("a", b"xx"), Entry("b", b"y"))])
        tree = tree_of(paths)
        paths[0].write_bytes(layer(Entry("a", b"xxx")))
        with pytest.raises(ImageRefused, match="changed"):
            list(archive(tree, paths, Budget()))


def test_nothing_of_a_layer_is_held_in_memory(tmp_path: Path) -> None:
    """The parser gets few bytes at a time, whatever it asks for."""
    asked: list[int] = []

    class Counted:
        def __init__(self, data: bytes) -> None:
            self._file = io.BytesIO(data)

        def read(self, size: int, /) -> bytes:
            asked.append(size)
            return self._file.read(size)

    data = layer(Entry("a", bytes(3 << 20)), Entry("b", bytes(100)))
    reader = tarread.LayerReader(Counted(data), Budget())
    assert [member.size for member in reader.members()] == [3 << 20, 100]
    assert max(asked) <= 256 << 10


def test_a_stream_gives_at_most_what_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "l"
    path.write_bytes(gzip.compress(struct.pack("<Q", 7) * 100_000))
    with unpacked(path, Budget()) as stream:
        assert len(stream.read(10)) <= 10
        assert len(stream.read(1 << 30)) <= 256 << 10
