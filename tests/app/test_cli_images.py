"""What `image list` says of the store, and what `image rm` takes out of it and what it does not."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from app import main
from app.agents import shell
from app.paths import Paths
from app.records import IMAGE_DIGEST, SessionRecord, StateRecord, write_record
from tests.doubles.images import put_image
from vm.image import build, staleness, store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Said = Callable[..., tuple[int, dict[str, Any]]]

FIRST, SECOND = "0123456789", "1123456789"
DAY_NS = 86_400 * 10**9


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*words: str) -> tuple[int, dict[str, Any]]:
        status = main.run([*words, "--json"])
        return status, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def images() -> Path:
    folder = Paths.from_environment().store / "images"
    folder.mkdir(parents=True)
    return folder


def put_session(session: str, digest: str = "", image: str = "base") -> Path:
    folder = Paths.from_environment().session(session)
    folder.mkdir(parents=True)
    record = SessionRecord(session, session, shell(), "/w", 0.0, image, "key")
    write_record(folder / "session.json", record)
    write_record(folder / "state.json", StateRecord(state="stopped"))
    if digest:
        (folder / IMAGE_DIGEST).write_text(f"{digest}\n")
    return folder


def built(images: Path) -> set[str]:
    return {path.name for path in (images / store.BUILT).iterdir()}


def fresh(images: Path, content: str = "fresh") -> str:
    """An image as today's sources would make it."""
    toolkit, base = build.toolkit_source(), build.base_source()
    return put_image(images, content, toolkit_source=toolkit, base_source=base)


class TestList:
    def test_an_empty_store(self, said: Said) -> None:
        assert said("image", "list") == (0, {"ok": True, "images": [], "versions": []})
        assert not Paths.from_environment().store.exists()

    def test_a_fresh_one(self, images: Path, said: Said) -> None:
        digest = fresh(images)
        _, found = said("image", "list")
        (one,) = found["images"]
        assert (one["name"], one["digest"], one["stale"]) == ("base", digest, False)
        assert (one["reasons"], one["packages_days"]) == ([], 0)
        assert one["base"] == str((images / "base").resolve() / "base.squashfs")

    @pytest.mark.parametrize(
        ("toolkit", "base", "code"),
        [
            ("other", build.base_source(), "toolkit"),
            (build.toolkit_source(), "other", "recipe"),
        ],
    )
    def test_other_sources(
        self, images: Path, said: Said, toolkit: str, base: str, code: str
    ) -> None:
        put_image(images, toolkit_source=toolkit, base_source=base)
        (one,) = said("image", "list")[1]["images"]
        assert one["stale"]
        assert [reason["code"] for reason in one["reasons"]] == [code]
        assert one["reasons"][0]["command"] == "cloche image build base"

    def test_old_packages_count_from_the_day_of_the_base_system(
        self, images: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fresh(images)
        base = (images / "base" / store.BASE).stat().st_mtime_ns
        now = [(base + staleness.PACKAGES_DAYS * DAY_NS + DAY_NS - 1) / 10**9 - 1]
        monkeypatch.setattr("time.time", lambda: now[0])
        assert main.run(["image", "list"]) == 0
        assert "stale" not in capsys.readouterr().out
        now[0] += 10
        assert main.run(["image", "list"]) == 0
        out = capsys.readouterr().out
        assert "base is stale: its packages are 31 days old.\n" in out
        assert "  cloche image build --force base\n" in out

    def test_a_damaged_one_is_told(self, images: Path, said: Said) -> None:
        put_image(images)
        (images / "base" / store.KERNEL).unlink()
        (images / "gone").symlink_to(f"{store.BUILT}/{'0' * 64}")
        one, other = said("image", "list")[1]["images"]
        assert one["reasons"] == [
            {
                "code": "damaged",
                "text": "it is damaged (vmlinuz)",
                "command": "cloche image build base",
            }
        ]
        assert (other["name"], other["reasons"][0]["text"]) == ("gone", "it is not built")

    def test_earlier_versions_and_who_uses_them(
        self, images: Path, said: Said, capsys: pytest.CaptureFixture[str]
    ) -> None:
        old = put_image(images, "old", built="2026-01-01T00:00:00+00:00")
        older = put_image(images, "older", built="2025-01-01T00:00:00+00:00")
        new = put_image(images, "new", built="2026-02-02T00:00:00+00:00")
        put_session(FIRST, old)
        versions = said("image", "list")[1]["versions"]
        assert [one["digest"] for one in versions] == [new, old, older]
        assert [one["sessions"] for one in versions] == [[], [FIRST], []]
        assert [one["images"] for one in versions] == [["base"], [], []]
        assert all(one["frees"] > 0 for one in versions)
        main.run(["image", "list"])
        out = capsys.readouterr().out
        assert f"{old[:12]}  base  2026-01-01T00:00  used by {FIRST}" in out
        assert f"{older[:12]}  base  2025-01-01T00:00  unused" in out
        assert "cloche image rm --unused" in out


class TestRemove:
    def test_a_name_takes_its_version_along(self, images: Path, said: Said) -> None:
        digest = put_image(images)
        status, found = said("image", "rm", "base")
        assert (status, found["images"], found["versions"]) == (0, ["base"], [digest])
        assert found["freed"] > 0
        assert {path.name for path in images.iterdir()} == {store.BUILT, ".lock"}
        assert built(images) == set()

    def test_a_dry_run_says_the_same_and_removes_nothing(self, images: Path, said: Said) -> None:
        digest = put_image(images)
        _, dry = said("image", "rm", "base", "--dry-run")
        assert built(images) == {digest}
        assert (images / "base").is_symlink()
        _, real = said("image", "rm", "base")
        assert real == {**dry, "dry_run": False}

    def test_what_a_session_was_made_on_stays(self, images: Path, said: Said) -> None:
        old = put_image(images, "old")
        put_session(FIRST, old)
        put_session(SECOND, old)
        new = put_image(images, "new")
        status, found = said("image", "rm", old[:8])
        assert (status, found["error"]["code"]) == (1, "in-use")
        assert found["error"]["message"] == (
            f"The version {old[:12]} is needed by the sessions {FIRST}, {SECOND}."
        )
        assert f"cloche rm {FIRST} && cloche rm {SECOND}" in found["error"]["hint"]
        assert said("image", "rm", "--unused")[1]["versions"] == []
        assert said("image", "rm", "base")[1]["versions"] == [new]
        assert built(images) == {old}

    def test_the_version_that_a_name_means_goes_by_the_name(self, images: Path, said: Said) -> None:
        digest = put_image(images)
        status, found = said("image", "rm", digest)
        assert (status, found["error"]["hint"]) == (1, "Remove the image: cloche image rm base")

    def test_a_session_that_is_not_made_yet_keeps_every_version(
        self, images: Path, said: Said
    ) -> None:
        old, new = put_image(images, "old"), put_image(images, "new")
        put_session(FIRST)
        for words in (["base"], [old]):
            assert said("image", "rm", *words)[1]["error"]["code"] == "in-use"
        said("image", "rm", "--unused")
        assert built(images) == {old, new}

    def test_a_version_that_another_image_means_stays(self, images: Path, said: Said) -> None:
        digest = put_image(images)
        (images / "other").symlink_to(f"{store.BUILT}/{digest}")
        assert said("image", "rm", "other")[1]["versions"] == []
        assert built(images) == {digest}
        assert said("image", "list")[1]["images"][0]["name"] == "base"

    def test_unused_ones(self, images: Path, said: Said) -> None:
        used, old = put_image(images, "used"), put_image(images, "old")
        new = put_image(images, "new")
        put_session(FIRST, used)
        (images / store.BUILT / old / store.RECORD).write_text("no record")
        assert said("image", "rm", "--unused", "--dry-run")[1]["versions"] == [old]
        assert said("image", "rm", "--unused")[1]["versions"] == [old]
        assert built(images) == {used, new}
        assert said("image", "rm", "--unused")[1]["freed"] == 0

    def test_shared_files_count_only_when_the_last_of_them_goes(
        self, images: Path, said: Said
    ) -> None:
        old, new = put_image(images, "old"), put_image(images, "new")
        home = images / store.BUILT
        base = home / old / store.BASE
        base.write_bytes(b"x" * (1 << 20))
        (home / new / store.BASE).unlink()
        (home / new / store.BASE).hardlink_to(base)
        assert said("image", "rm", old)[1]["freed"] < 1 << 20
        assert said("image", "rm", "base")[1]["freed"] > 1 << 20

    def test_leftovers_of_a_kill_are_cleared_away(
        self, images: Path, said: Said, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put_image(images, "old")
        new = put_image(images, "new")

        def killed(path: Path) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", killed)
            assert main.run(["image", "rm", "--unused"]) == 130
        assert built(images) == {new}
        assert len(list(images.glob(f"{store.REMOVED}*"))) == 1
        assert len(said("image", "list")[1]["versions"]) == 1
        said("image", "rm", "--unused")
        assert list(images.glob(f"{store.REMOVED}*")) == []

    def test_nothing_is_removed_while_an_image_is_built(self, images: Path, said: Said) -> None:
        digest = put_image(images)
        with (images / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            status, found = said("image", "rm", "base")
        assert status == 1
        assert found["error"]["message"] == "An image is being built."
        assert built(images) == {digest}

    @pytest.mark.parametrize("target", ["nothing", "0", "../x", ".built", "%"])
    def test_what_is_none(self, images: Path, said: Said, target: str) -> None:
        digest = put_image(images)
        status, found = said("image", "rm", target)
        assert status == 4
        assert found["error"]["hint"] == "See them: cloche image list"
        assert built(images) == {digest}

    def test_an_ambiguous_digest(self, images: Path, said: Said) -> None:
        digest = put_image(images)
        put_image(images, "new")
        twin = images / store.BUILT / (digest[:63] + ("0" if digest[63] != "0" else "1"))
        shutil.copytree(images / store.BUILT / digest, twin)
        assert "means 2 versions" in said("image", "rm", digest[:8])[1]["error"]["message"]

    def test_both_or_nothing_is_no_wish(self, images: Path, said: Said) -> None:
        put_image(images)
        assert said("image", "rm", "base", "--unused")[0] == 2

    def test_a_session_that_cannot_be_read_stops_a_removal(
        self, images: Path, said: Said, tmp_path: Path
    ) -> None:
        digest = put_image(images)
        folder = put_session(FIRST)
        os.symlink(tmp_path, folder / IMAGE_DIGEST)
        assert said("image", "rm", "base")[1]["error"]["code"] == "unreadable"
        assert built(images) == {digest}
