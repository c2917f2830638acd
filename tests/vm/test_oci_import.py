"""From a reference to an image in the store: names, platforms, proofs by digest, what is kept."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.doubles.images import put_image
from tests.vm.oci_help import (
    ELF,
    SHELL,
    Entry,
    Found,
    Layout,
    digest,
    folder,
    layer,
    link,
    put_layers,
    read_back,
    tree_of,
)
from vm.errors import FetchFailed, ImageMissing, ImageRefused, VMError
from vm.image import build, imports, staleness, store
from vm.image.oci import furnish, layout, packing, skopeo
from vm.image.oci.documents import Platform
from vm.image.oci.limits import MAX_DOCUMENT, Budget
from vm.image.oci.packing import archive
from vm.image.oci.provenance import MAX_ENV, MAX_ENV_BYTES, environment
from vm.image.oci.reference import BadReference, parse

if TYPE_CHECKING:
    from pathlib import Path

HOST = Platform("linux", "amd64")
DIGEST = f"sha256:{'a' * 64}"


def join_archives(target: Path, *parts: Path) -> None:
    """Make what `docker save A B` writes out of archives of one image each."""
    rows: list[object] = []
    seen: set[str] = set()
    with tarfile.open(target, "w") as whole:
        for part in parts:
            with tarfile.open(part) as source:
                for member in source:
                    file = source.extractfile(member) if member.isreg() else None
                    if member.name == "manifest.json" and file is not None:
                        rows += json.load(file)
                    elif member.name not in {*seen, "repositories"}:
                        whole.addfile(member, file)
                    seen.add(member.name)
        raw = json.dumps(rows).encode()
        info = tarfile.TarInfo("manifest.json")
        info.size = len(raw)
        whole.addfile(info, io.BytesIO(raw))


def quiet(_text: str, _share: float) -> None:
    return


class TestReference:
    @pytest.mark.parametrize(
        ("text", "whole", "name"),
        [
            ("reg.example/a/alpine", "docker://reg.example/a/alpine:latest", "alpine"),
            ("docker://reg.example:5000/n:3.20", "docker://reg.example:5000/n:3.20", "n-3.20"),
            ("localhost/n:T_x", "docker://localhost/n:T_x", "n-t_x"),
            (f"r.example/n@{DIGEST}", f"docker://r.example/n@{DIGEST}", "n-aaaaaaaaaaaa"),
            (f"r.example/n:1@{DIGEST}", f"docker://r.example/n@{DIGEST}", "n-aaaaaaaaaaaa"),
            ("oci:/x/lay:1", "oci:/x/lay:1", "lay-1"),
            ("oci:/x/lay", "oci:/x/lay", "lay"),
            ("docker-archive:/x/My App.tar.gz", "docker-archive:/x/My App.tar.gz", "my-app"),
            ("[::1]:5000/n:1", "docker://[::1]:5000/n:1", "n-1"),
        ],
    )
    def test_forms(self, text: str, whole: str, name: str) -> None:
        found = parse(text)
        assert (str(found), found.name()) == (whole, name)
        assert parse(str(found)) == found

    @pytest.mark.parametrize(
        ("more", "tag", "name"),
        [
            ("", "", "b"), (":team/app:1", "team/app:1", "app-1"), (":@1", "@1", "b-1"),
            (":r.example:5000/app:1", "r.example:5000/app:1", "app-1"), (":app", "app", "app"),
        ],
    )  # fmt: skip
    def test_one_of_several_in_an_archive(
        self, tmp_path: Path, more: str, tag: str, name: str
    ) -> None:
        (tmp_path / "a:b.tar").touch()
        found = parse(f"docker-archive:{tmp_path}/a:b.tar{more}")
        assert (found.place, found.tag) == (str(tmp_path / "a:b.tar"), tag)
        assert found.name() == (name if tag and tag[0] != "@" else f"a-{name}")
        assert parse(str(found)) == found

    @pytest.mark.parametrize("tag", ["-rf", "@x", "a b", "../up", "@12345", "x" * 300])
    def test_what_names_none_in_an_archive(self, tmp_path: Path, tag: str) -> None:
        (tmp_path / "b.tar").touch()
        with pytest.raises(BadReference, match="no name of an image in an archive"):
            parse(f"docker-archive:{tmp_path}/b.tar:{tag}")

    @pytest.mark.parametrize(
        "text",
        ["", "alpine", "docker://alpine:3", "lib/alpine", "r.example/", "r.example/UP:1",
         "r.example/n:", "r.example/n@sha256:abc", "r.example/n@md5:" + "a" * 64, "oci:",
         "docker-archive:", "http://r.example/n", "r.example/../n", "r.example/n\n", "r.example/-n",
         "-rf.example/n --authfile=x", "r.example/" + "n" * 5000, "containers-storage:x/y"],
    )  # fmt: skip
    def test_what_names_no_image(self, text: str) -> None:
        with pytest.raises(BadReference) as caught:
            parse(text)
        assert caught.value.code == "usage"


class TestLayout:
    def test_the_hosts_image_is_taken_out_of_an_index(self, tmp_path: Path) -> None:
        made = Layout(tmp_path)
        odd = {**made.image(layer(), arch="s390x"), "platform": platform("s390x")}
        note = {**made.document({}, "manifest"), "platform": platform("unknown", "unknown")}
        mine = {**made.image(layer(*SHELL)), "platform": platform("amd64")}
        top = made.index(note, odd, mine)
        made.tag(top)
        found = layout.open_layout(tmp_path, "latest", HOST)
        assert (found.digest, found.manifest_digest) == (top["digest"], mine["digest"])

    def test_other_platforms_are_refused_and_named(self, tmp_path: Path) -> None:
        made = Layout(tmp_path)
        odd = {**made.image(layer(), arch="arm64"), "platform": platform("arm64")}
        made.tag(made.index(odd), "index").tag(made.image(layer(), arch="arm64"), "one")
        made.tag(made.image(layer(), system="windows"), "win")
        for tag in ("index", "one"):
            with pytest.raises(ImageRefused, match=r"for linux/arm64; this host runs linux/amd64"):
                layout.open_layout(tmp_path, tag, HOST)
        with pytest.raises(ImageRefused, match="windows/amd64"):
            layout.open_layout(tmp_path, "win", HOST)

    @pytest.mark.parametrize("which", ["manifest", "config", "layer"])
    def test_changed_bytes_are_noticed(self, tmp_path: Path, which: str) -> None:
        made = Layout(tmp_path)
        entry = made.image(layer(*SHELL))
        made.tag(entry)
        manifest = json.loads((made.blobs / entry["digest"][7:]).read_text())
        place = {"manifest": entry, "config": manifest["config"], "layer": manifest["layers"][0]}
        path = made.blobs / place[which]["digest"][7:]
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))
        with pytest.raises(ImageRefused, match="does not match its digest"):
            layout.check_blobs(layout.open_layout(tmp_path, "", HOST))

    def test_a_layer_that_is_not_what_the_config_says(self, tmp_path: Path) -> None:
        rootfs = {"type": "layers", "diff_ids": [digest(b"other")]}
        Layout(tmp_path).tag(Layout(tmp_path / "n").image(layer()))
        made = Layout(tmp_path / "x")
        made.tag(made.image(layer(), rootfs=rootfs))
        image = layout.open_layout(tmp_path / "x", "", HOST)
        with pytest.raises(ImageRefused, match="not what its config says"):
            list(layout.read_layers(image, Budget()))

    @pytest.mark.parametrize(
        "change",
        [
            {"config": {"digest": "md5:1", "size": 1, "mediaType": "x"}},
            {"layers": []},
            {"layers": [{"digest": "sha256:../../../etc/passwd", "size": 1}]},
            {"schemaVersion": 1},
            {"mediaType": "application/vnd.example.chart"},
            {"layers": "no"},
        ],
    )
    def test_manifests_that_are_none(self, tmp_path: Path, change: dict[str, Any]) -> None:
        made = Layout(tmp_path)
        entry = made.image(layer())
        manifest = json.loads((made.blobs / entry["digest"][7:]).read_text())
        made.tag(made.document({**manifest, **change}, "manifest"))
        with pytest.raises(ImageRefused):
            layout.open_layout(tmp_path, "", HOST)

    def test_documents_are_short_and_not_deep(self, tmp_path: Path) -> None:
        for data in (b" " * (MAX_DOCUMENT + 1), b"[" * 100_000, b'{"a":' * 100_000, b"\xff{"):
            made = Layout(tmp_path / hashlib.sha256(data).hexdigest())
            made.tag(made.blob(data, "application/vnd.oci.image.manifest.v1+json"))
            with pytest.raises(ImageRefused):
                layout.open_layout(made.place, "", HOST)

    def test_blobs_that_are_missing_links_or_of_another_size(self, tmp_path: Path) -> None:
        made = Layout(tmp_path)
        entry = made.image(layer())
        made.tag(entry)
        path = made.blobs / entry["digest"][7:]
        whole = path.read_bytes()
        for what in ("missing", "size", "link"):
            path.unlink(missing_ok=True)
            if what == "size":
                path.write_bytes(whole + b" ")
            elif what == "link":
                (tmp_path / "real").write_bytes(whole)
                path.symlink_to(tmp_path / "real")
            with pytest.raises(ImageRefused, match=r"missing|size"):
                layout.open_layout(tmp_path, "", HOST)

    def test_which_one_is_meant_must_be_clear(self, tmp_path: Path) -> None:
        made = Layout(tmp_path)
        made.tag(made.image(layer()), "one").tag(made.image(layer(Entry("x"))), "two")
        for tag, count in (("", 2), ("three", 0)):
            with pytest.raises(FetchFailed, match=f"has {count} images") as caught:
                layout.open_layout(tmp_path, tag, HOST)
            assert "one, two" in caught.value.hint
        with pytest.raises(FetchFailed, match="no OCI layout"):
            layout.open_layout(tmp_path / "none", "", HOST)


def platform(arch: str, system: str = "linux") -> dict[str, str]:
    return {"os": system, "architecture": arch}


def furnished(place: Path, *entries: Entry) -> tuple[dict[str, Found], furnish.Furnished]:
    paths = put_layers(place, [layer(*entries)])
    tree = tree_of(paths)
    facts = furnish.furnish(tree, paths, "amd64", Budget())
    return read_back(b"".join(archive(tree, paths, Budget()))), facts


class TestFurnish:
    def test_what_the_guest_mounts_over_is_never_a_link(self, tmp_path: Path) -> None:
        places = ("workspace", "run", "tmp", "dev", "proc", "sys", "home", "root")
        links = [link(name, "/bin") for name in places]
        etc = [link("etc/hosts", "/bin/sh"), link("etc/hostname", "../bin/sh")]
        found, _ = furnished(tmp_path, *SHELL, *links, *etc)
        assert {found[name].kind for name in (*places, "etc", "home/agent")} == {"folder"}
        assert {found[f"etc/{name}"].kind for name in ("hosts", "hostname")} == {"file"}
        assert found["tmp"].mode == 0o1777
        assert found["workspace"].owner == found["home/agent"].owner == (1000, 1000)
        assert found["root"].mode == 0o700

    def test_what_is_covered_is_left_out(self, tmp_path: Path) -> None:
        found, _ = furnished(tmp_path, *SHELL, Entry("proc/x"), Entry("tmp/y"), Entry("run/z"))
        assert not {"proc/x", "tmp/y", "run/z"} & set(found)

    def test_the_agent_is_who_its_number_means(self, tmp_path: Path) -> None:
        table = b"root:x:0:0::/r:/bin/sh\nnode:x:1000:1000::/n:/bin/sh\nagent:x:7:7::/:/x\n"
        found, _ = furnished(tmp_path, *SHELL, Entry("etc/passwd", table))
        lines = found["etc/passwd"].content.decode().splitlines()
        assert [line.split(":")[0] for line in lines] == ["root", "agent", "node"]
        assert "agent:x:1000:1000:agent:/home/agent:/bin/sh" in lines
        assert found["etc/group"].content == b"root:x:0:\nagent:x:1000:\n"

    def test_a_table_behind_a_link_stays_in_the_image(self, tmp_path: Path) -> None:
        entries = [Entry("usr/p", b"me:x:5:5::/:/x\n"), link("etc/passwd", "/usr/p")]
        found, _ = furnished(tmp_path, *SHELL, *entries)
        assert b"me:x:5" in found["etc/passwd"].content
        assert found["etc/passwd"].kind == "file"
        assert found["usr/p"].content == b"me:x:5:5::/:/x\n"

    def test_bash_is_the_shell_where_there_is_one(self, tmp_path: Path) -> None:
        found, facts = furnished(tmp_path, *SHELL, Entry("bin/bash", ELF, mode=0o755))
        assert facts.shell == "/bin/bash"
        assert found["etc/passwd"].content.endswith(b":/bin/bash\n")

    @pytest.mark.parametrize(
        ("entries", "why"),
        [
            ([Entry("a")], "has no /bin/sh"),
            ([Entry("bin/sh", ELF, mode=0o644)], "has no /bin/sh"),
            ([link("bin/sh", "/nothing")], "has no /bin/sh"),
            ([link("bin/sh", "sh")], "circle"),
            ([Entry("bin/sh", b"#!/bin/x", mode=0o755)], "no program for amd64"),
            ([Entry("bin/sh", ELF[:18] + b"\xb7" + ELF[19:], mode=0o755)], "no program for amd64"),
        ],
    )
    def test_without_a_shell_of_this_machine_nothing_could_start(
        self, tmp_path: Path, entries: list[Entry], why: str
    ) -> None:
        with pytest.raises(ImageRefused, match=why):
            furnished(tmp_path, *entries)

    def test_a_table_of_users_that_fills_the_memory_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ImageRefused, match="too long"):
            furnished(tmp_path, *SHELL, Entry("etc/passwd", bytes((1 << 20) + 1)))

    def test_what_was_changed_is_told(self, tmp_path: Path) -> None:
        _, facts = furnished(tmp_path, *SHELL, Entry("su", mode=0o4755))
        assert facts.notes[0] == "1 program lost setuid or setgid"
        assert "certificate" in facts.notes[1]
        bundle = Entry("etc/ssl/certs/ca-certificates.crt", b"x")
        _, facts = furnished(tmp_path, *SHELL, bundle)
        assert facts.notes == []


def test_only_variables_that_make_sense_are_kept() -> None:
    entries = ["PATH=/x", "A=b=c", "HOME=/root", "TERM=x", "no", "=x", "1=2", "N=\0", "S=\ud800"]
    assert environment(entries) == ({"PATH": "/x", "A": "b=c"}, 5)
    many, odd = environment(f"V{n}=x" for n in range(MAX_ENV + 3))
    assert (len(many), odd) == (MAX_ENV, 3)
    assert environment(["A=" + "x" * MAX_ENV_BYTES])[1] == 1


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A store in which kernel and toolkit are there already."""
    put_image(
        tmp_path / "store" / "images",
        toolkit_source=build.toolkit_source(),
        base_source=build.base_source(),
    )
    return tmp_path / "store"


def made(place: Path, env: str = "A=1") -> str:
    image = Layout(place)
    image.tag(image.image(layer(*SHELL), config={"Env": [env], "User": "me", "Cmd": ["x\x1b"]}))
    return f"oci:{place}"


class TestImport:
    def test_into_the_store_and_once_only(self, own: Path, tmp_path: Path) -> None:
        wanted = imports.wish(made(tmp_path / "lay"))
        found = imports.import_image(own, wanted, quiet)
        assert found.name == "lay"
        assert found.env == {"A": "1", "SHELL": "/bin/sh"}
        assert found.kernel.read_bytes() == (own / "images/base" / store.KERNEL).read_bytes()
        record = store.read_record(own / "images/lay")
        assert record.imported is not None
        assert (record.imported.user, record.imported.cmd) == ("me", ["x"])
        assert imports.import_image(own, wanted, quiet) == found
        listing = subprocess.run(
            ["unsquashfs", "-l", found.base], capture_output=True, check=True, timeout=60, text=True
        )
        assert "squashfs-root/bin/sh\n" in listing.stdout

    def test_what_moved_on_is_stale_and_fetched_anew(self, own: Path, tmp_path: Path) -> None:
        wanted = imports.wish(made(tmp_path / "lay"))
        first = imports.import_image(own, wanted, quiet)
        record = store.read_record(own / "images/lay")
        assert staleness.stale(record, 0.0) == ()
        assert staleness.moved(record, imports.meaning(wanted.reference, wanted.way)) == ()
        image = Layout(tmp_path / "new")
        image.tag(image.image(layer(*SHELL, Entry("more"))))
        (tmp_path / "lay").rename(tmp_path / "old")
        (tmp_path / "new").rename(tmp_path / "lay")
        (reason,) = staleness.moved(record, imports.meaning(wanted.reference, wanted.way))
        assert reason.code == "moved"
        assert reason.command == f"cloche image import oci:{tmp_path / 'lay'} --name lay"
        assert imports.import_image(own, wanted, quiet).digest != first.digest
        assert first.base.is_file()  # what a session began with stays

    def test_the_same_bytes_from_two_places_are_two_images(
        self, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def same(_tree: object, _layers: object, target: Path, _budget: object) -> None:
            target.write_bytes(b"the same squashfs")

        monkeypatch.setattr(packing, "pack", same)
        places = {name: made(tmp_path / name) for name in ("one", "two")}
        places["three"] = places["two"]
        wishes = [imports.wish(reference, name) for name, reference in places.items()]
        found = [imports.import_image(own, wanted, quiet) for wanted in wishes]
        assert len({image.digest for image in found}) == 3
        for name, reference in places.items():
            record = store.read_record(own / "images" / name)
            assert record.imported is not None
            assert (record.name, record.imported.reference) == (name, reference)

    def test_another_toolkit_makes_it_stale_and_keeps_its_base(
        self, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = imports.import_image(own, imports.wish(made(tmp_path / "lay")), quiet)
        monkeypatch.setattr(build, "toolkit_source", lambda: "newer")
        record = store.read_record(own / "images/lay")
        (reason,) = staleness.stale(record, 0.0)
        assert (reason.code, reason.command) == ("toolkit", "cloche image build lay")
        put_image(own / "images", "newer", toolkit_source="newer", base_source="b")
        again = build.refresh_image(own, "lay", quiet)
        assert again.base.samefile(found.base)
        assert again.kernel.read_text() == "vmlinuz newer"
        assert again.env == found.env

    def test_other_ways_of_importing_make_it_stale(
        self, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        imports.import_image(own, imports.wish(made(tmp_path / "lay")), quiet)
        monkeypatch.setattr(furnish, "VERSION", furnish.VERSION + 1)
        (reason,) = staleness.stale(store.read_record(own / "images/lay"), 0.0)
        assert reason.code == "recipe"

    def test_names_that_are_taken(self, own: Path, tmp_path: Path) -> None:
        reference = made(tmp_path / "lay")
        with pytest.raises(VMError, match="belongs to an image that is built here"):
            imports.wish(reference, "base")
        imports.import_image(own, imports.wish(reference), quiet)
        other = imports.wish(made(tmp_path / "b"), "lay")
        with pytest.raises(VMError, match="already, from oci:"):
            imports.import_image(own, other, quiet)

    def test_a_refused_image_leaves_nothing(self, own: Path, tmp_path: Path) -> None:
        image = Layout(tmp_path / "bad")
        image.tag(image.image(layer(Entry("../x"))))
        before = sorted(path.name for path in (own / "images").iterdir())
        with pytest.raises(ImageRefused):
            imports.import_image(own, imports.wish(f"oci:{tmp_path / 'bad'}"), quiet)
        after = sorted(path.name for path in (own / "images").iterdir())
        assert [name for name in after if name != ".lock"] == before

    def test_an_image_that_is_not_there_is_not_fetched(self, own: Path) -> None:
        wanted = imports.wish("reg.example/n:1")
        assert imports.present(own, wanted) is None
        with pytest.raises(ImageMissing, match="shall not be fetched"):
            imports.if_present(own, wanted)

    def test_what_docker_save_writes(self, own: Path, tmp_path: Path) -> None:
        made(tmp_path / "lay")
        archive = tmp_path / "my: app.tar"  # skopeo itself would take the colon for a tag
        plain = tmp_path / "plain.tar"
        words = ["skopeo", "copy", "-q", f"oci:{tmp_path / 'lay'}:latest"]
        subprocess.run([*words, f"docker-archive:{plain}:x:1"], check=True, timeout=120)
        plain.rename(archive)
        several = tmp_path / "several.tar"
        for name in ("x:1", "y:2"):
            subprocess.run(
                [*words, f"docker-archive:{tmp_path / name[0]}.tar:{name}"], check=True, timeout=120
            )
        join_archives(several, tmp_path / "x.tar", tmp_path / "y.tar")
        for which in ("", ":z:3", ":@7"):
            with pytest.raises(FetchFailed) as caught:
                imports.import_image(own, imports.wish(f"docker-archive:{several}{which}"), quiet)
            assert f"docker-archive:{several}:NAME:TAG" in caught.value.hint
            assert f"tar -xOf {several} manifest.json" in caught.value.hint
        second = imports.wish(f"docker-archive:{several}:y:2")
        assert imports.import_image(own, second, quiet).name == "y-2"
        wanted = imports.wish(f"docker-archive:{archive}", "app")
        assert imports.import_image(own, wanted, quiet).env["A"] == "1"
        with pytest.raises(FetchFailed, match="was not fetched"):
            imports.import_image(own, imports.wish(f"docker-archive:{tmp_path / 'no'}"), quiet)


@pytest.mark.parametrize(
    ("said", "way_out"),
    [
        ("http: server gave HTTP response to HTTPS client", "--plain-http docker://r.example/n:1"),
        ("unauthorized: authentication required", "skopeo login r.example"),
        ("x509: certificate signed by unknown authority", "~/.config/containers/certs.d/r.example"),
        ("manifest unknown", "skopeo list-tags docker://r.example/n"),
        ("no such host", "cloche image import docker://r.example/n:1"),
    ],
)
def test_what_mends_a_failed_fetch_is_told(said: str, way_out: str) -> None:
    line = f'time="now" level=fatal msg="reading \\"x\\": \x1b[31m{said}"'
    error = skopeo.failure(parse("r.example/n:1"), [line])
    assert way_out in error.hint
    assert "\x1b" not in error.message


def test_skopeo_gets_no_more_of_the_environment_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is found by PATH, so that a stand-in can tell what it was given."""
    program = tmp_path / "bin/skopeo"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nenv > "$HOME/env"\nprintf %s "$*" > "$HOME/words"\necho "{}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REGISTRY_AUTH_FILE", "/auth.json")
    monkeypatch.setenv("AWS_SECRET", "canary")
    assert skopeo.manifest(parse("r.example/n:1"), skopeo.DIRECT) == b"{}\n"
    given = (tmp_path / "env").read_text()
    assert "REGISTRY_AUTH_FILE=/auth.json" in given
    assert "canary" not in given
    assert "--tls-verify=true" in (tmp_path / "words").read_text()


def test_a_registry_that_answers_with_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other(*_: object) -> bytes:
        return b"{}"

    monkeypatch.setattr(skopeo, "manifest", other)
    with pytest.raises(ImageRefused, match="not what was asked for"):
        imports.for_platform(parse(f"r.example/n@{DIGEST}"), skopeo.DIRECT, HOST)


def test_folders_of_the_image_stay_as_they_are(tmp_path: Path) -> None:
    found, _ = furnished(tmp_path, *SHELL, folder("srv", 0o2775, uid=33))
    assert (found["srv"].mode, found["srv"].owner) == (0o2775, (33, 0))
