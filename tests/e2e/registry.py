"""A real container registry on loopback, and an image like Alpine's made from this host's parts."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

UNPACKED = Path(__file__).resolve().parents[2] / ".tools/registry/usr/bin/docker-registry"
"""Where ./test puts the program on a host that has it not installed."""

START_S = 60.0
TRIES = 5
COMMAND_S = 120
APPLETS = ("sh", "ash", "cat", "ls", "mkdir", "mv", "rm", "echo", "id", "env", "sleep", "touch")
MUSL = "/lib/ld-musl-x86_64.so.1"
PROGRAM = """
#include <stdio.h>
int main(void) { return puts("musl speaks") < 0; }
"""


def call(*words: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, timeout=COMMAND_S, check=False
    )
    assert done.returncode == 0, (words, done.stderr)


@contextlib.contextmanager
def registry(folder: Path, auth: str = "", tls: str = "") -> Generator[str]:
    """Run a registry that speaks plain HTTP, or TLS with a login; its `host:port`.

    `auth` and `tls` are those parts of its configuration.
    """
    for _ in range(TRIES):
        port = _free_port()
        child = _begin(folder, port, auth, tls)
        try:
            if not _answers(child, port):
                continue  # somebody else has got the port meanwhile
            yield f"127.0.0.1:{port}"
            return
        finally:
            child.kill()
            child.wait()
    raise AssertionError((folder / "registry.log").read_text())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _begin(folder: Path, port: int, auth: str, tls: str) -> subprocess.Popen[bytes]:
    program = shutil.which("docker-registry") or str(UNPACKED)
    config = folder / "registry.yml"
    config.write_text(
        "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"
        f"storage: {{filesystem: {{rootdirectory: '{folder / 'registry'}'}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'{tls and f', tls: {tls}'}}}\n"
        f"{auth and f'auth: {auth}'}\n"
    )
    with (folder / "registry.log").open("wb") as log:
        return subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log)


def _answers(child: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until it serves; False when it has ended instead."""
    end = time.monotonic() + START_S
    while child.poll() is None:
        assert time.monotonic() < end
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/v2/")
            answer = connection.getresponse().status
            connection.close()
            assert answer in (200, 400)  # 400: it wants TLS
            return child.poll() is None
        time.sleep(0.05)
    return False


def busybox_image(folder: Path) -> Path:
    """Make an image of busybox and musl: no bash, no sshd, no users, no certificates; its layout.

    The second layer removes a file of the first one and links to another.
    """
    low, high = folder / "low", folder / "high"
    for part in ("bin", "lib", "opt/tool"):
        (low / part).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "busybox", low / "bin/busybox")
    for name in APPLETS:
        (low / "bin" / name).symlink_to("busybox")
    shutil.copy(os.path.realpath(MUSL), low / MUSL.lstrip("/"))
    (folder / "say.c").write_text(PROGRAM)
    call("musl-gcc", "-o", low / "opt/tool/say", folder / "say.c")
    (low / "etc-is-not-there").write_text("gone in the next layer")
    # what would lead the guest's mounts out of the agent's world
    (low / "run").symlink_to("/bin")
    (low / "workspace").symlink_to("/")
    (high / "opt").mkdir(parents=True)
    (high / ".wh.etc-is-not-there").touch()
    (high / "opt/.wh.nothing").touch()
    layout = folder / "layout"
    call("umoci", "init", "--layout", layout)
    call("umoci", "new", "--image", f"{layout}:1")
    for files in (low, high):
        tar = folder / f"{files.name}.tar"
        call("tar", "--numeric-owner", "--owner=0", "--group=0", "-C", files, "-cf", tar, ".")
        call("umoci", "raw", "add-layer", "--image", f"{layout}:1", tar)
    configure(layout, "GREETING=hello there")
    return layout


def configure(layout: Path, variable: str) -> None:
    """Give the image another variable: so it is another image under the same tag."""
    words = ("--os", "linux", "--architecture", "amd64", "--config.user", "nobody")
    env = ("--config.env", "PATH=/opt/tool:/bin", "--config.env", variable)
    call("umoci", "config", "--image", f"{layout}:1", *words, *env, "--config.workingdir", "/opt")


def push(layout: Path, host: str) -> str:
    """Push the image; its name in the registry."""
    name = f"{host}/lab/tiny:1"
    call("skopeo", "copy", "-q", "--dest-tls-verify=false", f"oci:{layout}:1", f"docker://{name}")
    return name
