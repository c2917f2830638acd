"""The script that brings a program out of a package, against a registry on loopback."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from app.agents import builtin, npm_fetch_script
from app.config import load_config
from app.services.recipes import NPM_FETCH, agents_recipes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = b'#!/bin/sh\necho "I run"\n'
ARCH = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "x64")


def package(**files: bytes) -> bytes:
    """Return a package as registries have it: everything lies in one folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"package/{name.replace('__', '/')}")
            info.size, info.mode = len(content), 0o644
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


GOOD = package(bin__tool=PROGRAM, LICENSE=b"free")


@pytest.fixture
def registry() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Serve what is put into the mapping, by path."""
    served: dict[str, bytes] = {}

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = served.get(self.path)
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/npm/", served
        server.shutdown()
        thread.join()


def publish(
    registry: tuple[str, dict[str, bytes]], name: str, versions: dict[str, bytes], latest: str
) -> None:
    """Put a package with its versions there."""
    url, served = registry
    rows: dict[str, Any] = {}
    for number, data in versions.items():
        path = f"/tar/{name}-{number}.tgz"
        served[path] = data
        digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
        dist = {"tarball": url.removesuffix("/npm/") + path, "integrity": f"sha512-{digest}"}
        rows[number] = {"version": number, "dist": dist}
    document = {"name": name, "dist-tags": {"latest": latest}, "versions": rows}
    served[f"/npm/{name.replace('/', '%2f')}"] = json.dumps(document).encode()


def fetch(
    registry: tuple[str, dict[str, bytes]], prefix: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run the script as a machine does."""
    (prefix / "lib").mkdir(parents=True, exist_ok=True)
    variables = {"PATH": os.environ["PATH"], "NPM_CONFIG_REGISTRY": registry[0]}
    return subprocess.run(
        [sys.executable, "-c", npm_fetch_script(), str(prefix), *words],
        env=variables, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def files(prefix: Path) -> list[str]:
    return sorted(str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir())


@pytest.mark.parametrize(
    ("asked", "number"),
    [
        ("@lab/tool", "10.2.0"),
        ("@lab/tool@9", "9.10.0"),
        ("@lab/tool@9.2.0", "9.2.0"),
        ("@lab/tool@{latest}-linux-{arch}", f"10.2.0-linux-{ARCH}"),
    ],
)
def test_a_program_is_fetched_and_can_be_called(
    registry: tuple[str, dict[str, bytes]], tmp_path: Path, asked: str, number: str
) -> None:
    numbers = ("9.2.0", "9.10.0", "9.11.0-beta", "10.2.0", f"10.2.0-linux-{ARCH}")
    versions = {one: package(bin__tool=PROGRAM, version=one.encode()) for one in numbers}
    publish(registry, "@lab/tool", versions, "10.2.0")
    done = fetch(registry, tmp_path / "p", asked, "bin/*", "mine")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"fetching @lab/tool {number}\n" in done.stdout
    assert files(tmp_path / "p") == ["bin/mine", "lib/mine/bin/tool", "lib/mine/version"]
    assert (tmp_path / "p/lib/mine/version").read_text() == number
    called = subprocess.check_output([tmp_path / "p/bin/mine"], text=True)
    assert called == "I run\n"
    assert os.readlink(tmp_path / "p/bin/mine") == "../lib/mine/bin/tool"


@pytest.mark.parametrize(
    ("data", "words", "said"),
    [
        (GOOD, ("tool", "bin/other", "mine"), "there is not one bin/other"),
        (GOOD, ("tool@7", "bin/tool", "mine"), "has no version 7"),
        (package(bin__tool=b"\x7fELF no program"), ("tool", "bin/tool", "mine"), "Error"),
        (GOOD, ("none", "bin/tool", "mine"), "404"),
    ],
)
def test_what_cannot_be_had_leaves_nothing(
    registry: tuple[str, dict[str, bytes]],
    tmp_path: Path,
    data: bytes,
    words: tuple[str, ...],
    said: str,
) -> None:
    publish(registry, "tool", {"1.0.0": data}, "1.0.0")
    done = fetch(registry, tmp_path / "p", *words)
    assert done.returncode != 0
    assert said in done.stderr
    assert files(tmp_path / "p") == []


def test_other_bytes_than_the_registry_names_are_refused(
    registry: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    publish(registry, "tool", {"1.0.0": GOOD}, "1.0.0")
    registry[1]["/tar/tool-1.0.0.tgz"] = package(bin__tool=b"#!/bin/sh\necho evil\n")
    done = fetch(registry, tmp_path / "p", "tool", "bin/tool", "mine")
    assert "is not what the registry says" in done.stderr
    assert files(tmp_path / "p") == []


def test_a_recipe_fetches_first_and_installs_where_that_fails(tmp_path: Path) -> None:
    found = agents_recipes(builtin().values())
    claude = found["claude-code"].command
    name = "@anthropic-ai/claude-code-linux-{arch}"
    line = f"(python3 -c \"${NPM_FETCH}\" /programs '{name}' claude claude)"
    assert claude.startswith(f"{line} || (rm -rf /programs/*; npm install -g --prefix /programs ")
    assert found["gemini"].command.count(NPM_FETCH) == 2
    assert NPM_FETCH not in found["hermes"].command
    (tmp_path / "config.yaml").write_text(
        "agents: {codex: {install: 'npm install -g --prefix {prefix} mine'}}\n"
    )
    own = agents_recipes(load_config(tmp_path).agents.values())
    assert own["codex"].command == "npm install -g --prefix /programs mine"
