"""`image build` by recipes of one's own, and `image import` by its rules of when to fetch."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from app import main
from app.client.checks import check_image
from app.errors import AppError
from app.paths import Paths
from app.services import image_look
from app.services.recipes import find_recipe, load_recipes
from tests.doubles.images import put_image
from vm.errors import FetchFailed, VMError
from vm.image import build, imports, packages, recipes, store
from vm.image.oci import skopeo
from vm.image.oci.documents import Platform
from vm.image.oci.reference import parse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vm.image.imports import Wish
    from vm.image.oci.reference import Reference

    Said = Callable[..., tuple[int, dict[str, Any]]]

REFERENCE = "docker://reg.example/tool:1"


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*words: str) -> tuple[int, dict[str, Any]]:
        status = main.run(["image", *words, "--json"])
        return status, json.loads(capsys.readouterr().out)

    return run


def put(name: str = "tool-1", reference: str = REFERENCE, **facts: Any) -> str:
    """Put an image into the store as if it had been imported."""
    digest = f"sha256:{'d' * 64}"
    config = f"sha256:{'c' * 64}"
    imported = store.Imported(reference, digest, digest, config, [], "linux/amd64", **facts)
    folder = Paths.from_environment().store
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return put_image(
        folder / "images", name, name, imported=imported, toolkit_source=build.toolkit_source(),
        base_source=imports.import_source(config),
    )  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Wish]:
    """Wishes that came as far as the network."""
    found: list[Wish] = []

    def fetch(folder: Path, wanted: Wish, _progress: object) -> store.ImageSet:
        found.append(wanted)
        if imports.present(folder, wanted) is None:
            put(wanted.name, str(wanted.reference))
        return store.find_image(folder, wanted.name)

    monkeypatch.setattr(imports, "import_image", fetch)
    return found


class TestPull:
    @pytest.mark.parametrize("pull", imports.PULLS)
    def test_what_is_not_there_is_fetched_unless_never(
        self, said: Said, asked: list[Wish], pull: str
    ) -> None:
        status, found = said("import", REFERENCE, "--pull", pull)
        assert len(asked) == (pull != "never")
        if pull == "never":
            assert (status, found["error"]["code"]) == (5, "image-missing")
        else:
            assert (status, found["imported"]["reference"]) == (0, REFERENCE)

    @pytest.mark.parametrize(
        ("pull", "times"), [("always", 1), ("if-not-present", 0), ("never", 0)]
    )
    def test_what_is_there(self, said: Said, asked: list[Wish], pull: str, times: int) -> None:
        put()
        assert said("import", REFERENCE, "--pull", pull)[0] == 0
        assert len(asked) == times

    def test_in_the_background_another_process_looks(
        self, said: Said, asked: list[Wish], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put()
        begun: list[list[str]] = []

        def start(words: list[str], **_: object) -> None:
            begun.append(words)

        monkeypatch.setattr("app.cli.image_make.subprocess.run", start)
        assert said("import", REFERENCE, "--pull", "background", "--plain-http")[0] == 0
        assert (asked, len(begun)) == ([], 1)
        assert begun[0][:2] == ["setsid", "--fork"]
        assert begun[0][5:] == [
            "image", "import", REFERENCE, "--name", "tool-1", "--pull", "always", "--plain-http",
        ]  # fmt: skip

    def test_an_odd_reference_writes_nothing(self, said: Said) -> None:
        for words in (["alpine"], [REFERENCE, "--name", "base"], [REFERENCE, "--name", "../x"]):
            status, found = said("import", *words)
            assert (status != 0, found["ok"]) == (True, False)
        assert not Paths.from_environment().store.exists()

    def test_the_way_is_passed_on(self, said: Said, asked: list[Wish]) -> None:
        said("import", REFERENCE, "--plain-http", "--force", "--name", "mine")
        (wanted,) = asked
        assert (wanted.way.plain_http, wanted.force, wanted.name) == (True, True, "mine")


class TestOfAgents:
    def test_an_agent_that_says_how_is_a_recipe(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").write_text(
            "agents:\n"
            "  mine: {command: [m], from: base, install: 'npm install -g --prefix {prefix} m'}\n"
            "  bare: {command: [m], from: base, install: 'echo it'}\n"
            "  codex: {image: other}\n"
        )
        known = load_recipes(tmp_path)
        assert known["mine"].below == "base"
        assert known["mine"].command == "npm install -g --prefix /programs m"
        assert known["claude-code"].below == "dev"
        assert not {"bare", "codex"} & set(known)

    def test_a_file_of_ones_own_comes_first(self, tmp_path: Path) -> None:
        (tmp_path / "images").mkdir()
        own = tmp_path / "images" / "claude-code.yaml"
        own.write_text("{from: base, install: 'mine {prefix}'}")
        assert find_recipe(tmp_path, "claude-code").install == "mine {prefix}"
        for text in ("{install: mine}", "{install: [a]}", "{install: 'a {prefix}', packages: [b]}"):
            own.write_text(text)
            with pytest.raises(AppError) as caught:
                find_recipe(tmp_path, "claude-code")
            assert caught.value.code == "bad-config"

    def test_a_session_without_the_image_is_told_the_one_command(self) -> None:
        with pytest.raises(VMError) as caught:
            check_image(Paths.from_environment(), "claude-code")
        assert caught.value.hint == "cloche image build claude-code"


class TestList:
    def test_what_moved_on_is_said_and_how_to_get_it(
        self, said: Said, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(plain_http=True)

        def moved(*_: object) -> str:
            return f"sha256:{'e' * 64}"

        monkeypatch.setattr(image_look, "meaning", moved)
        (one,) = said("list")[1]["images"]
        (reason,) = one["reasons"]
        assert reason["code"] == "moved"
        assert reason["command"] == f"cloche image import --plain-http {REFERENCE} --name tool-1"
        assert said("list", "--offline")[1]["images"][0]["stale"] is False

    def test_a_registry_that_does_not_answer_is_told(
        self, said: Said, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        put()

        def silent(*_: object) -> str:
            raise FetchFailed("It is away.")

        monkeypatch.setattr(image_look, "meaning", silent)
        (one,) = said("list")[1]["images"]
        assert (one["stale"], one["unknown"]) == (False, "It is away.")
        assert main.run(["image", "list"]) == 0
        assert "tool-1 may be stale: It is away." in capsys.readouterr().out

    def test_what_cannot_move_is_not_asked(
        self, said: Said, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put("one", f"docker://reg.example/tool@sha256:{'a' * 64}")
        put("two", "docker-archive:/x.tar")
        monkeypatch.setattr(image_look, "meaning", pytest.fail)
        assert [one["unknown"] for one in said("list")[1]["images"]] == ["", ""]


class TestRecipes:
    def test_dev_has_compilers_node_and_npm_on_top_of_base(self) -> None:
        base, dev = recipes.RECIPES["base"], recipes.RECIPES["dev"]
        assert set(base.packages) < set(dev.packages)
        assert {"build-essential", "nodejs", "npm"} <= set(dev.packages)
        assert build.base_source(dev) != build.base_source(base)
        assert f"--include={','.join(dev.packages)}" in packages.base_options(dev)

    def test_ones_own(self, tmp_path: Path) -> None:
        folder = tmp_path / "images"
        folder.mkdir()
        (folder / "go.yaml").write_text("from: dev\npackages: [golang, git]\n")
        (folder / "notes.txt").write_text("no recipe")
        found = find_recipe(tmp_path, "go")
        assert found.packages == (*recipes.RECIPES["dev"].packages, "golang")
        known = list(load_recipes(tmp_path))
        assert (known[:2], known[-1]) == (["base", "dev"], "go")
        assert "go" not in load_recipes(tmp_path / "none")

    @pytest.mark.parametrize(
        ("name", "text", "place"),
        [
            ("base", "packages: []", "1:1"),
            ("UP", "packages: []", "1:1"),
            ("x", "packages: golang", "1:1"),
            ("x", "packages: [1]", "1:1"),
            ("x", "from: x\npackages: [--option]", "1:1"),
            ("x", "from: dev\npackages: [-oDir::x]", "2:1"),
            ("x", "packages: ['a b']", "1:1"),
            ("x", "from: dev\nrun: rm", "2:1"),
            ("x", "[]", "1:1"),
        ],
    )
    def test_bad_ones_name_their_place(
        self, tmp_path: Path, name: str, text: str, place: str
    ) -> None:
        (tmp_path / "images").mkdir()
        path = tmp_path / "images" / f"{name}.yaml"
        path.write_text(text)
        with pytest.raises(AppError, match=f"^{path}:{place}: ") as caught:
            load_recipes(tmp_path)
        assert caught.value.code == "bad-config"

    def test_the_nearest_name_is_told(self, said: Said) -> None:
        status, found = said("build", "deb")
        assert (status, found["error"]["hint"]) == (4, "Did you mean: cloche image build dev")

    def test_one_that_is_gone_is_told(self, said: Said) -> None:
        folder = Paths.from_environment().store / "images"
        put_image(folder, name="old")
        (one,) = said("list")[1]["images"]
        assert one["reasons"][0]["text"] == "its recipe is gone"


def test_build_of_an_imported_image_only_brings_its_toolkit_up_to_date(
    said: Said, asked: list[Wish]
) -> None:
    digest = put()
    status, found = said("build", "tool-1")
    assert (status, found["image"]["digest"], asked) == (0, digest, [])


def test_a_recipe_takes_no_name_of_an_imported_image(said: Said) -> None:
    put("go")
    folder = Paths.from_environment().config / "images"
    folder.mkdir(parents=True)
    (folder / "go.yaml").write_text("packages: [golang]")
    with pytest.raises(VMError, match="was imported"):
        build.build_image(
            Paths.from_environment().store,
            recipe=find_recipe(Paths.from_environment().config, "go"),
            progress=lambda _text, _share: None,
        )


def test_for_the_host_of_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry's index leads to the image for this host, by digest all the way."""
    manifest = b'{"schemaVersion": 2, "config": {}, "layers": []}'
    inner = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    entries = [
        {"digest": one, "size": 1, "platform": {"architecture": arch, "os": "linux"}}
        for one, arch in ((f"sha256:{'1' * 64}", "arm64"), (inner, "amd64"))
    ]
    index = json.dumps({"schemaVersion": 2, "manifests": entries}).encode()
    outer = f"sha256:{hashlib.sha256(index).hexdigest()}"
    documents = {outer: index, inner: manifest}

    def document(reference: Reference, *_: object) -> bytes:
        return documents[reference.digest]

    monkeypatch.setattr(skopeo, "manifest", document)
    top = parse("reg.example/n:1").pinned(outer)
    host = Platform("linux", "amd64")
    assert imports.for_platform(top, skopeo.DIRECT, host) == inner
