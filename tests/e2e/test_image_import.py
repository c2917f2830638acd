"""Images made here: one like Alpine's, out of a real registry, and one by a line of shell."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.registry import busybox_image, configure, push, registry
from tests.e2e.sessions import World, store_of
from tests.e2e.vmlab import link_file
from vm.image import store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm


@pytest.fixture
def own(tmp_path: Path, guest_image: ImageSet) -> Iterator[World]:
    """A world with a store of its own, in which the base image is there already."""
    images = tmp_path / "store" / "images"
    home = images / store.BUILT / guest_image.digest
    home.mkdir(parents=True)
    for name in store.FILES:
        link_file(guest_image.base.parent / name, home / name)
    shutil.copy(guest_image.base.parent / store.RECORD, home / store.RECORD)
    (images / "base").symlink_to(f"{store.BUILT}/{guest_image.digest}")
    (tmp_path / "store/scratch").symlink_to(store_of(guest_image) / "scratch")
    world = World(tmp_path / "w", tmp_path / "store")
    place = world.paths.data / "store"
    place.unlink()
    (tmp_path / "store").rename(place)  # what is written to is no link, but one's own
    place.chmod(0o700)
    yield world
    world.close()


def image(world: World, *words: str, status: int = 0) -> dict[str, Any]:
    answer = world.run("image", *words, "--json")
    assert answer.status == status, (words, answer)
    return answer.json


def test_a_session_on_busybox_and_musl(own: World, tmp_path: Path) -> None:
    (tmp_path / "making").mkdir()
    layout = busybox_image(tmp_path / "making")
    with registry(tmp_path) as host:
        name = push(layout, host)
        safe = own.run("image", "import", name)
        assert safe.status == 1
        assert f"--plain-http docker://{name}" in safe.stderr.decode()
        found = image(own, "import", "--plain-http", name)
        assert found["imported"]["env"] == {"PATH": "/opt/tool:/bin", "GREETING": "hello there"}
        assert (found["imported"]["user"], found["imported"]["working_dir"]) == ("nobody", "/opt")
        _session(own, tmp_path)
        _another_under_the_same_tag(own, layout, host, name)
    offline = image(own, "list")["images"]
    assert "not fetched" in next(one for one in offline if one["name"] == "tiny-1")["unknown"]
    assert image(own, "import", "--plain-http", name, "--pull", "never")["ok"]


def _session(own: World, tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    refused = own.run("run", "shell", "--image", "no-such", cwd=workspace)
    assert (refused.status, os.path.lexists(own.paths.sessions)) == (4, False)
    words = ("run", "--json", "shell", "--image", "tiny-1", "--detach")
    started = own.run(*words, cwd=workspace)
    session = started.json["session"]
    own.wait_for(session, "state", "running", "failed")
    script = "id -u; say; echo $GREETING; echo $SHELL; cat /etc/passwd; ls /; ls /run"
    done = own.run("exec", session, "--", "sh", "-c", script)
    lines = done.stdout.decode().splitlines()
    assert lines[:4] == ["1000", "musl speaks", "hello there", "/bin/sh"]
    assert "agent:x:1000:1000:agent:/home/agent:/bin/sh" in lines
    assert "etc-is-not-there" not in lines
    assert "workspace" in lines
    own.run("send", session, 'echo "$GREETING from $(id -un)" >> a.txt; mv a.txt b.txt; touch end')
    waiting = "until [ -e end ]; do sleep 0.2; done; cat b.txt"
    done = own.run("exec", "--timeout-s", "120", session, "--", "sh", "-c", waiting)
    assert done.stdout == b"one\nhello there from agent\n"
    own.run("cp", f"{session}:/etc/passwd", str(tmp_path / "passwd"))
    assert (tmp_path / "passwd").read_text().startswith("root:")
    assert image(own, "rm", "tiny-1", status=1)["error"]["code"] == "in-use"
    own.json("stop", session)
    merged = own.json("merge", session, "--accept", "*")
    assert merged["ok"]
    assert (workspace / "b.txt").read_text() == "one\nhello there from agent\n"
    assert not (workspace / "a.txt").exists()
    own.json("rm", session)


def _another_under_the_same_tag(own: World, layout: Path, host: str, name: str) -> None:
    first = image(own, "import", "--plain-http", name)["imported"]
    assert image(own, "import", "--plain-http", name)["imported"] == first
    listed = image(own, "list")["images"]
    assert [one["stale"] for one in listed if one["name"] == "tiny-1"] == [False]
    configure(layout, "GREETING=hello again")
    push(layout, host)
    listed = image(own, "list")["images"]
    (reason,) = next(one for one in listed if one["name"] == "tiny-1")["reasons"]
    assert reason["code"] == "moved"
    kept = image(own, "import", "--plain-http", name, "--pull", "if-not-present")
    assert kept["imported"] == first
    again = image(own, *reason["command"].split()[2:])
    assert again["imported"]["env"]["GREETING"] == "hello again"
    assert again["imported"]["digest"] != first["digest"]
    pinned = f"{name.removesuffix(':1')}@{first['manifest']}"
    by_digest = image(own, "import", "--plain-http", pinned, "--name", "pinned")
    assert by_digest["imported"]["env"] == first["env"]


AGENT = r"""
agents:
  mine:
    command: [mine, one]
    from: base
    install: >-
      mkdir {prefix}/bin && printf '#!/bin/sh\nid -un; echo "$0 $1"; [ -w "$0" ] && echo open\n'
      > {prefix}/bin/mine && chmod 755 {prefix}/bin/mine && ln -s mine {prefix}/bin/other && id -un
"""


def test_an_agents_own_image_is_made_by_its_line_of_shell(own: World, tmp_path: Path) -> None:
    own.configure(AGENT)
    work = tmp_path / "project"
    work.mkdir()
    lacking = own.run("run", "mine", "--detach", cwd=work)
    assert b"cloche image build mine" in lacking.stderr
    made = image(own, "build", "mine")["image"]
    began = own.run("image", "build", "mine", "--json")
    assert began.json["image"]["digest"] == made["digest"]  # it is there already
    done = own.run("run", "mine", "--headless", "--json", cwd=work)
    assert done.json["exit_code"] == 1, done  # the last word of the script, which is not writable
    said = own.run("logs", done.json["session"]).stdout.decode().splitlines()
    assert {"agent", "/programs/bin/mine one"} <= {line.strip() for line in said}
    assert not any(line.strip() == "open" for line in said)
    assert own.json("ps")["sessions"][0]["id"] == done.json["session"]  # no sandbox is left
